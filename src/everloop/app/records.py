"""The partial openings: for commands that look at what is kept, at what models are told, or at the models themselves.

All go the way that `open` goes, only not as far.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from msgspec import Struct, structs

from ..bus.local import LocalBus
from ..core.people import OWNER
from ..files.inventory import RecordedShelves
from ..files.quota import QuotaOf
from ..memory.book import MemoryBook
from ..memory.recall import Recall
from ..ports import Files, Store, Vault
from ..runtime.allotments import Allotments
from ..runtime.approvals import Approvals
from ..runtime.budgets import BudgetControl
from ..runtime.clock import SystemClock
from ..runtime.deletions import Deletions, Forget
from ..runtime.erasures import Erasures
from ..runtime.heartbeat_desk import HeartbeatDesk
from ..runtime.membership import Membership
from ..runtime.people import KnownPeople
from ..runtime.person_export import PersonExport
from ..runtime.sessions import Sessions
from ..runtime.supervisor import Supervisor
from ..runtime.view import View
from ..settings import Settings, workspace_of
from ..tools.home import Home
from ..tools.tainted import Ended
from .backups import Backups
from .budgets import following
from .build import Builder, Overrides, memory_files, watched_files
from .files import open_storage
from .heartbeat import heartbeat_desk, heartbeat_files
from .home_folders import HomeFoldersOf
from .models import ModelLibrary, open_models
from .opening import opened_home
from .recall import NO_EMBEDDER, how_recalled
from .tools import sandbox_of


class Records(Struct, frozen=True):
    """What is kept, as it lies there: nothing in the vault has been opened yet."""

    home: Path
    settings: Settings
    store: Store
    vault: Vault
    vault_of: Callable[[str], Vault]  # of what is a person's alone
    approvals: Approvals
    memory: MemoryBook
    heartbeat: HeartbeatDesk
    sessions: Sessions
    files: RecordedShelves
    kept: Files
    quota_of: QuotaOf  # 0: no limit
    deletions: Deletions
    members: Membership
    budgets: Allotments
    erasures: Erasures
    export: PersonExport
    backups: Backups


@asynccontextmanager
async def open_records(home: Path | None = None) -> AsyncIterator[Records]:
    """For commands that count and tidy up, also where the vault is locked. Raises SettingsError, StoreError."""
    async with opened_home(home) as opened:
        folder, settings, store = opened.home, opened.settings, opened.store
        storage = await open_storage(opened, KnownPeople(store))
        own = Home(folder)
        watched = watched_files(own, settings, store, storage.files, asking_a_sandbox(folder, settings))
        hearts = heartbeat_files(lambda: watched, own, lambda: settings)
        clock, finder = SystemClock(), Recall(store, NO_EMBEDDER)  # whoever looks once does not load an embedder
        views = memory_files(folder, settings, store, watched, clock)
        memory = MemoryBook(store, views, clock, finder, lambda: how_recalled(settings))
        approvals = Approvals(store, KnownPeople(store), watched)
        deletions = Deletions(store, storage.shelves, _forgetting(folder, settings))
        sessions, members = Sessions(store), Membership(store)
        folders = HomeFoldersOf(folder, workspace_of(settings, folder), storage.files, storage.shelves)
        budgets = Allotments(store, following(lambda: settings.users.budgets))
        yield Records(
            home=folder,
            settings=settings,
            store=store,
            vault=opened.vault,
            vault_of=opened.vault_of,
            approvals=approvals,
            memory=memory,
            heartbeat=heartbeat_desk(store, hearts, lambda: settings),
            sessions=sessions,
            files=storage.shelves,
            kept=storage.files,
            quota_of=storage.bounded.quota_of,
            deletions=deletions,
            members=members,
            budgets=budgets,
            erasures=Erasures(store, folders, deletions, members, forgets=memory.forget),
            export=PersonExport(store, sessions, folders, storage.files),
            backups=Backups(folder, store, lambda: settings, opened.vault, clock),
        )


@asynccontextmanager
async def open_view(home: Path | None = None) -> AsyncIterator[View]:
    """For commands that show what models are told. Raises what `open` raises."""
    async with opened_home(home) as opened, Supervisor(SystemClock()) as supervisor, AsyncExitStack() as stack:
        given = Overrides(waits=True, warms=False, embeds=False)
        storage = await open_storage(opened, KnownPeople(opened.store))
        builder = Builder(opened, storage, LocalBus(), given, supervisor, stack)
        built = await builder.make(opened.settings)
        assert builder.prompt_files is not None  # with the memory, they were made just now
        assert builder.memory is not None
        await builder.memory.sync(OWNER)
        people, facts = KnownPeople(opened.store), Recall(opened.store, NO_EMBEDDER)
        yield View(opened.store, built.models, built.briefer, people, builder.prompt_files.names, facts)


@asynccontextmanager
async def open_library(home: Path | None = None) -> AsyncIterator[ModelLibrary]:
    """For commands that look at models and keys without speaking to anyone. Raises what `open` raises."""
    async with opened_home(home) as opened, AsyncExitStack() as stack:
        library = await open_models(opened.home, opened.settings, opened.vault, stack)
        yield structs.replace(library, budgets=BudgetControl(opened.store))


def asking_a_sandbox(home: Path, settings: Settings) -> Ended:
    """For who has none of its own: few ever need one."""

    async def ended(thread: str, name: str) -> float | None:
        sandbox = sandbox_of(home, settings)
        try:
            return await sandbox.ended(thread, name)
        finally:
            await sandbox.close()

    return ended


def _forgetting(home: Path, settings: Settings) -> Forget:
    """As above, for what commands have said."""

    async def forget(thread: str) -> None:
        sandbox = sandbox_of(home, settings)
        try:
            await sandbox.forget(thread)
        finally:
            await sandbox.close()

    return forget
