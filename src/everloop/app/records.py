"""The partial openings: for commands that look at what is kept, at what models are told, or at the models themselves.

All go the way that `open` goes, only not as far. As in `House`, a part is made and loaded when it is first asked for.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from ..core.people import OWNER
from ..ports import Clock, Files, Store, Vault
from ..runtime.clock import SystemClock
from ..runtime.people import KnownPeople
from ..settings import Settings, workspace_of
from .files import FileStorage, open_storage
from .opening import OpenHome, opened_home

if TYPE_CHECKING:
    from ..files.inventory import RecordedShelves
    from ..files.quota import QuotaOf
    from ..memory.book import MemoryBook
    from ..runtime.allotments import Allotments
    from ..runtime.approvals import Approvals
    from ..runtime.deletions import Deletions, Forget
    from ..runtime.erasures import Erasures
    from ..runtime.heartbeat_desk import HeartbeatDesk
    from ..runtime.membership import Membership
    from ..runtime.person_export import PersonExport
    from ..runtime.sessions import Sessions
    from ..runtime.view import View
    from ..tools.home import Home
    from ..tools.house_prompt_files import HousePromptFiles
    from ..tools.tainted import Ended
    from .backups import Backups
    from .home_folders import HomeFoldersOf
    from .models import ModelLibrary


class Records(Struct, frozen=True, dict=True, eq=False):
    """What is kept, as it lies there: nothing in the vault has been opened yet."""

    opened: OpenHome
    storage: FileStorage
    people: KnownPeople

    @property
    def home(self) -> Path:
        return self.opened.home

    @property
    def settings(self) -> Settings:
        return self.opened.settings

    @property
    def store(self) -> Store:
        return self.opened.store

    @property
    def vault(self) -> Vault:
        return self.opened.vault

    @property
    def vault_of(self) -> Callable[[str], Vault]:
        """Of what is a person's alone."""
        return self.opened.vault_of

    @property
    def files(self) -> "RecordedShelves":
        return self.storage.shelves

    @property
    def kept(self) -> Files:
        return self.storage.files

    @property
    def quota_of(self) -> "QuotaOf":
        """0: no limit."""
        return self.storage.bounded.quota_of

    @property
    def _clock(self) -> Clock:
        return SystemClock()

    @cached_property
    def _own(self) -> "Home":
        from ..tools.home import Home

        return Home(self.home)

    @cached_property
    def _watched(self) -> "HousePromptFiles":
        from .prompt_files import watched_files

        ended = asking_a_sandbox(self.home, self.settings)
        return watched_files(self._own, self.settings, self.store, self.kept, ended)

    @cached_property
    def approvals(self) -> "Approvals":
        from ..runtime.approvals import Approvals

        return Approvals(self.store, self.people, self._watched)

    @cached_property
    def memory(self) -> "MemoryBook":
        from ..memory.book import MemoryBook
        from ..memory.recall import Recall
        from .prompt_files import memory_files
        from .recall import NO_EMBEDDER, how_recalled  # whoever looks once does not load an embedder

        views = memory_files(self.home, self.settings, self.store, self._watched, self._clock)
        finder = Recall(self.store, NO_EMBEDDER)
        return MemoryBook(self.store, views, self._clock, finder, lambda: how_recalled(self.settings))

    @cached_property
    def heartbeat(self) -> "HeartbeatDesk":
        from .heartbeat import heartbeat_desk, heartbeat_files

        hearts = heartbeat_files(lambda: self._watched, self._own, lambda: self.settings)
        return heartbeat_desk(self.store, hearts, lambda: self.settings)

    @cached_property
    def sessions(self) -> "Sessions":
        from ..runtime.sessions import Sessions

        return Sessions(self.store)

    @cached_property
    def deletions(self) -> "Deletions":
        from ..runtime.deletions import Deletions

        return Deletions(self.store, self.files, _forgetting(self.home, self.settings))

    @cached_property
    def members(self) -> "Membership":
        from ..runtime.membership import Membership

        return Membership(self.store)

    @cached_property
    def budgets(self) -> "Allotments":
        from ..runtime.allotments import Allotments
        from .budgets import following

        return Allotments(self.store, following(lambda: self.settings.users.budgets))

    @cached_property
    def _folders(self) -> "HomeFoldersOf":
        from .home_folders import HomeFoldersOf

        return HomeFoldersOf(self.home, workspace_of(self.settings, self.home), self.kept, self.files)

    @cached_property
    def erasures(self) -> "Erasures":
        from ..runtime.erasures import Erasures

        return Erasures(self.store, self._folders, self.deletions, self.members, forgets=self.memory.forget)

    @cached_property
    def export(self) -> "PersonExport":
        from ..runtime.person_export import PersonExport

        return PersonExport(self.store, self.sessions, self._folders, self.kept)

    @cached_property
    def backups(self) -> "Backups":
        from .backups import Backups

        return Backups(self.home, self.store, lambda: self.settings, self.vault, self._clock)


@asynccontextmanager
async def open_records(home: Path | None = None) -> AsyncIterator[Records]:
    """For commands that count and tidy up, also where the vault is locked. Raises SettingsError, StoreError."""
    async with opened_home(home) as opened:
        people = KnownPeople(opened.store)
        yield Records(opened, await open_storage(opened, people), people)


@asynccontextmanager
async def open_view(home: Path | None = None) -> AsyncIterator["View"]:
    """For commands that show what models are told. Raises what `open` raises."""
    from ..bus.local import LocalBus
    from ..memory.recall import Recall
    from ..runtime.supervisor import Supervisor
    from ..runtime.view import View
    from .build import Builder, Overrides
    from .recall import NO_EMBEDDER

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
async def open_library(home: Path | None = None) -> AsyncIterator["ModelLibrary"]:
    """For commands that look at models and keys without speaking to anyone. Raises what `open` raises."""
    from ..runtime.budgets import BudgetControl
    from .models import open_models

    async with opened_home(home) as opened, AsyncExitStack() as stack:
        library = await open_models(opened.home, opened.settings, opened.vault, stack)
        yield structs.replace(library, budgets=BudgetControl(opened.store))


def asking_a_sandbox(home: Path, settings: Settings) -> "Ended":
    """For who has none of its own: few ever need one."""

    async def ended(thread: str, name: str) -> float | None:
        from .tools import sandbox_of

        sandbox = sandbox_of(home, settings)
        try:
            return await sandbox.ended(thread, name)
        finally:
            await sandbox.close()

    return ended


def _forgetting(home: Path, settings: Settings) -> "Forget":
    """As above, for what commands have said."""

    async def forget(thread: str) -> None:
        from .tools import sandbox_of

        sandbox = sandbox_of(home, settings)
        try:
            await sandbox.forget(thread)
        finally:
            await sandbox.close()

    return forget
