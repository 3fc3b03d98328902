"""Builds the house from settings: the one file that knows every room."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from .. import __version__
from ..agent import Agent
from ..bus.local import LocalBus
from ..core.errors import EverloopError, HomeError
from ..core.events import CommandDone, Event, PermissionAsked, TurnEnded
from ..core.message import Part
from ..core.people import Role
from ..core.ports import Bus, Channel, Clock, Credentials, Http, Provider, Store, Vault
from ..core.tool import Tool
from ..core.turn import Finished
from ..files.enclosing import enclose
from ..files.folder import Folder
from ..files.inventory import BoundedFiles, FileInventory
from ..files.pictures import fit, take
from ..runtime.approvals import Approvals
from ..runtime.calls import Kit, Toolbox
from ..runtime.clock import MACHINE
from ..runtime.commands import SlashCommands
from ..runtime.context import Gallery
from ..runtime.driver import Driver
from ..runtime.inbox import Inbox
from ..runtime.lanes import Lanes
from ..runtime.outbox import Outbox
from ..runtime.ownership import Ownership, Work
from ..runtime.people import KnownPeople
from ..runtime.reception import AdmitAll, Reception
from ..runtime.scheduler import Scheduler
from ..runtime.sessions import Sessions
from ..runtime.supervisor import Supervisor
from ..runtime.view import View
from ..settings import Settings, home_of, load, unused, without_secrets, workspace_of
from ..tools.bootstrap import make_workspace
from ..tools.home import Home
from ..tools.tainted import Ended
from .build import Builder, Built, HouseBriefer, LiveHouse, Overrides, this_minute, watched_files
from .channels import channels_of, known, traits_in
from .models import ModelLibrary, network_of, open_models
from .presets import HouseModels, Presets
from .tidying import daily, workers
from .tools import Kits, build_tools, check_workspace, sandbox_of

if TYPE_CHECKING:
    from ..gateway.server import Gateway


@asynccontextmanager
async def open(
    home: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] = {},
    *,
    provider: Provider | None = None,
    tools: Iterable[Tool] = (),
    channels: Iterable[Channel] = (),
    http: Http | None = None,
    roles: Mapping[str, Role] = {},
    clock: Clock | None = None,
) -> AsyncIterator[Agent]:
    """Open everloop for as long as the block lasts: `async with everloop.open(home=…, settings={…}) as agent`.

    Turns that were cut off go on at once. `provider` takes the place of the configured model, `tools` are added to
    the built-in ones. `http` takes the place of the network, as `everloop.testing.Cassette` does; it is not closed.
    `roles` says what the users of the program may do (`agent.user`); who is not in it is a guest. It is looked at each
    time, so that a program may add to it. `clock` takes the place of the machine's in all that is told, kept or to
    happen later, over either database; leases go on by real time.
    Raises SettingsError, HomeError, StoreError, ModelMissing.
    """
    async with _opened(home, settings, Overrides(provider, http, (*tools,), (*channels,), roles, clock=clock)) as house:
        yield house.agent


class _House(Struct, frozen=True):
    """What is open, and what can be changed of it."""

    agent: Agent
    builder: Builder
    first: Built
    live: LiveHouse
    toolbox: Toolbox


@asynccontextmanager
async def _opened(
    home: str | os.PathLike[str] | None, settings: Mapping[str, Any], given: Overrides
) -> AsyncIterator[_House]:
    if "EVERLOOP_FAILPOINT" in os.environ or "EVERLOOP_FAILPOINT_RECORD" in os.environ:
        from ..testing import failpoints

        failpoints.from_environment()
    if not (logger := logging.getLogger("everloop")).handlers:
        logger.addHandler(logging.NullHandler())  # whoever embeds us decides what is shown
    folder = Path(home) if home is not None else home_of(os.environ)
    loaded = load(folder, os.environ, settings)
    async with AsyncExitStack() as stack:
        store = await _open_store(folder, loaded, given.clock)
        stack.push_async_callback(store.close)
        yield await _build_house(folder, loaded, store, given, stack)


@asynccontextmanager
async def open_kept(home: Path, settings: Mapping[str, Any] = {}, **given: Any) -> AsyncIterator[Agent]:
    """As `open`, with a steward, through whom the settings can be changed; so it opens also without a model."""
    from ..settings.editor import SettingsEditor
    from .reconfigure import LiveSettings

    async with _opened(home, settings, Overrides(**{**given, "waits": True, "listens": True, "whose": ""})) as house:
        agent, book = house.agent, SettingsEditor(home, os.environ, settings)
        agent.files = BoundedFiles(Folder(home / "files"), house.first.settings.gateway.bytes_per_user)
        agent.steward = LiveSettings(book, house.builder, house.first, house.live, house.toolbox, agent)
        house.builder.look_again = agent.steward.look_again
        yield agent


@asynccontextmanager
async def serve(
    home: str | os.PathLike[str] | None = None, settings: Mapping[str, Any] = {}, **given: Any
) -> "AsyncIterator[Gateway]":
    """Open everloop with its gateway, which answers as long as the block lasts. `given` is what `open` takes.

    Without a model it opens too: one can be chosen in the page. Raises what else `open` raises; SettingsError also when
    it would be reached from elsewhere without encryption.
    """
    from ..gateway.server import serve as answer
    from ..gateway.transport.listen import check_listen

    folder = Path(home) if home is not None else home_of(os.environ)
    loaded = load(folder, os.environ, settings)
    check_listen(loaded.gateway)
    grace = loaded.agents.shutdown_seconds
    async with (
        open_kept(folder, settings, **given) as agent,
        answer(agent, loaded.gateway, folder, version=__version__, grace=grace) as gateway,
    ):
        yield gateway


async def _build_house(home: Path, settings: Settings, store: Store, given: Overrides, stack: AsyncExitStack) -> _House:
    defaults = settings.agents.defaults
    workspace = workspace_of(settings, home)
    check_workspace(workspace, home)
    try:
        make_workspace(workspace)
    except OSError as error:
        raise HomeError(f"the workspace {workspace} cannot be used ({error.strerror})") from error
    files, bus = Folder(home / "files"), LocalBus()
    clock = given.clock or MACHINE
    supervisor = await stack.enter_async_context(Supervisor(clock))
    made_later = await stack.enter_async_context(AsyncExitStack())  # is closed after the lanes, too
    if given.listens:
        listening = channels_of(settings, lambda: given.http or network_of(settings, made_later))
        given = structs.replace(given, channels=(*given.channels, *listening))
    channels, traits = given.channels, traits_in(given.channels)
    builder = Builder(home, store, files, bus, given, supervisor, made_later)
    first = await builder.make(settings)
    live = LiveHouse(first)
    toolbox = Toolbox(live.kit_of, files, first.results)
    spans = (settings, store, given.http, supervisor, stack)
    ended = _tell_a_collector(*spans) if _wants_spans(settings) else None
    parts = (store, bus, live, live, toolbox, Gallery(files, fit))
    people = KnownPeople(store, given.roles)
    driver = Driver(*parts, defaults.steering, people, ended=ended, files=builder.prompt_files, clock=clock)
    lanes = Lanes(
        store,
        bus,
        driver,
        supervisor,
        cap=settings.agents.max_concurrent_turns,
        lease_seconds=settings.store.lease_seconds,
        grace=settings.agents.shutdown_seconds,
    )
    approvals = Approvals(store, people, builder.prompt_files, clock)
    sessions = Sessions(store, people, lambda: toolbox.specs, clock)
    commands = SlashCommands(store, live, approvals, sessions, people, clock)
    inbox = Inbox(store, bus, lanes, commands, defaults.max_message_chars, first.toolset.leave)
    told = (first.model.name, first.model.notice, live, first.toolset.web, without_secrets(settings))

    async def enclose_file(name: str, data: bytes, owner: str) -> Part:
        return await enclose(files, await take(name, data), owner)

    receptions = [Reception(channel, inbox, store, AdmitAll(), enclose_file) for channel in channels]
    hooks = {reception.name: reception.hooks() for reception in receptions}
    agent = Agent(
        store,
        bus,
        inbox,
        lanes,
        files,
        approvals,
        sessions,
        *told,
        hooks=hooks,
        traits=traits,
        supervisor=supervisor,
        clock=clock,
    )
    agent.missing, agent.unused = first.missing, unused(settings, known(settings))
    stack.push_async_callback(agent.close)  # after the lanes: answers of the last moment are acknowledged too
    if builder.prompt_files and builder.prompt_files.unasked:  # whoever found it was killed before it was told
        await driver.questions.ask_about_files()
    await stack.enter_async_context(lanes)
    work = {} if given.whose else workers(store, home)
    if work:
        await store.add_job(daily(clock.now()))
    scheduler = Scheduler(store, bus, clock, work, given.whose, settings.store.lease_seconds)
    # It ends after the lanes, which begin to close at once.
    supervisor.start("scheduler", scheduler.run, is_elsewhere=lambda: scheduler.is_elsewhere)
    owned = [Ownership(store, f"channel:{each.name}", settings.store.lease_seconds) for each in receptions]
    _open_channels(
        receptions, [Outbox(store, channel, clock=clock) for channel in channels], owned, bus, supervisor, stack
    )
    return _House(agent, builder, first, live, toolbox)


def _open_channels(
    receptions: list[Reception],
    outboxes: list[Outbox],
    owned: list[Ownership],
    bus: Bus,
    supervisor: Supervisor,
    stack: AsyncExitStack,
) -> None:
    """Let channels listen and send for as long as the house is open, each in one process at a time."""
    if not outboxes:
        return

    def start(name: str, work: Work, owner: Ownership) -> None:
        task = supervisor.start(name, lambda: owner.during(work), is_elsewhere=lambda: owner.is_elsewhere)
        stack.push_async_callback(task.end)

    for outbox, reception, owner in zip(outboxes, receptions, owned, strict=True):
        stack.push_async_callback(supervisor.start(f"lease {outbox.name}", owner.run).end)
        start(f"outbox {outbox.name}", outbox.run, owner)
        start(f"channel {outbox.name}", reception.run, owner)
    senders = {outbox.name: outbox for outbox in outboxes}
    telling = supervisor.start("answers", lambda: _tell_channels(bus, senders, receptions))
    stack.push_async_callback(telling.end)


async def _tell_channels(bus: Bus, senders: Mapping[str, Outbox], receptions: list[Reception]) -> None:
    """Whoever sends in a conversation is told that something is to be sent there, and nobody else."""
    async with asyncio.TaskGroup() as group:
        while True:  # a feed ends when its reader is too slow
            with bus.subscribe() as events:
                async for event in events:
                    for reception in receptions:
                        reception.live.hear(event, group)
                    for session in _answered_in(event):
                        if sender := senders.get(session.partition(":")[0]):
                            sender.nudge()


def _answered_in(event: Event) -> tuple[str, ...]:
    match event:
        case TurnEnded(finished=finished):
            return (finished.address,)
        case PermissionAsked(approvals=approvals):
            return tuple(each.session for each in approvals)
        case CommandDone(address=address):
            return (address,)
    return ()


async def _open_store(home: Path, settings: Settings, clock: Clock | None = None) -> Store:
    """On PostgreSQL the time is the server's, the same for all machines, unless a clock is handed over."""
    if settings.store.url and clock is not None:
        from ..store.clocked import ClockedPostgresStore

        return await ClockedPostgresStore.connect_by(clock, settings.store.url, settings.store.lease_seconds)
    if settings.store.url:
        from ..store.postgres import PostgresStore

        return await PostgresStore.connect(settings.store.url, settings.store.lease_seconds)
    from ..store.sqlite import SqliteStore

    return await SqliteStore.connect(home, settings.store.lease_seconds, clock=clock)


class Records(Struct, frozen=True):
    """What is kept, as it lies there: nothing in the vault has been opened yet."""

    settings: Settings
    store: Store
    vault: Vault
    approvals: Approvals
    sessions: Sessions
    files: FileInventory


@asynccontextmanager
async def open_records(home: Path | None = None) -> AsyncIterator[Records]:
    """For commands that count and tidy up, also where the vault is locked. Raises SettingsError, StoreError."""
    from ..store.vault import EncryptedVault, key_of

    folder = home or home_of(os.environ)
    settings = load(folder, os.environ, {})
    store = await _open_store(folder, settings)
    try:
        vault = EncryptedVault(store, key_of(folder, os.environ))
        watched = watched_files(
            Home(folder), settings, store, Folder(folder / "files"), _asking_a_sandbox(folder, settings)
        )
        approvals = Approvals(store, KnownPeople(store), watched)
        yield Records(settings, store, vault, approvals, Sessions(store), FileInventory(folder / "files"))
    finally:
        await store.close()


def _asking_a_sandbox(home: Path, settings: Settings) -> Ended:
    """For who has none of its own: few ever need one."""

    async def ended(thread: str, name: str) -> float | None:
        sandbox = sandbox_of(home, settings)
        try:
            return await sandbox.ended(thread, name)
        finally:
            await sandbox.close()

    return ended


@asynccontextmanager
async def open_view(home: Path | None = None) -> AsyncIterator[View]:
    """For commands that show what models are told. Raises what `open` raises."""
    folder = home or home_of(os.environ)
    settings = load(folder, os.environ, {})
    async with AsyncExitStack() as stack:
        store = await _open_store(folder, settings)
        stack.push_async_callback(store.close)
        presets = Presets(settings, (await open_models(folder, settings, store, stack)).models)
        files, workspace = Folder(folder / "files"), workspace_of(settings, folder)
        longest = settings.agents.defaults.tool_result_max_chars
        toolset = build_tools(folder, workspace, settings, files, LocalBus(), longest, store)
        stack.push_async_callback(toolset.close)
        watched = watched_files(Home(folder), settings, store, files, toolset.commands.ended)
        await watched.look()

        def make(place: Path) -> Kit:
            shared = (store, toolset.commands, None, toolset.ways)
            return build_tools(folder, place, settings, files, LocalBus(), longest, *shared).kit()

        kits = Kits(folder, workspace, toolset.kit(), make)
        briefer = HouseBriefer(settings, kits, toolset.large, watched)
        yield View(store, HouseModels(presets, this_minute(MACHINE)), briefer, KnownPeople(store), watched.names)


@asynccontextmanager
async def open_library(home: Path | None = None) -> AsyncIterator[ModelLibrary]:
    """For commands that look at models and keys without speaking to anyone. Raises what `open` raises."""
    folder = home or home_of(os.environ)
    settings = load(folder, os.environ, {})
    async with AsyncExitStack() as stack:
        store = await _open_store(folder, settings)
        stack.push_async_callback(store.close)
        yield await open_models(folder, settings, store, stack)


def _wants_spans(settings: Settings) -> bool:
    """Only then is anything of it loaded."""
    return bool(settings.telemetry.otlp_endpoint) or any(name.startswith("OTEL_EXPORTER_OTLP") for name in os.environ)


def _tell_a_collector(
    settings: Settings, store: Store, http: Http | None, supervisor: Supervisor, stack: AsyncExitStack
) -> Callable[[str, Finished], None] | None:
    """Have the spans of turns sent, beside everything else; what is returned is to be told of turns that end."""
    from ..telemetry.exporter import Exporter
    from ..telemetry.target import target_of

    wanted = settings.telemetry
    target = target_of(wanted.otlp_endpoint, wanted.otlp_headers, os.environ, __version__)
    if target is None:
        return None
    network = network_of(settings, stack) if http is None else http
    exporter = Exporter(store, network, target, __version__, wanted.content)
    stack.push_async_callback(exporter.close)
    stack.push_async_callback(supervisor.start("spans", exporter.run).end)
    return exporter.note


def token_scopes() -> tuple[str, ...]:
    """What a token of the gateway may be good for."""
    from ..gateway.access.principal import SCOPES

    return tuple(SCOPES)


async def new_token(book: Credentials, owner: str, name: str, scopes: Iterable[str], seconds: float = 0) -> str:
    """Make a token for the gateway and return it: this once, for only its hash is kept. Raises EverloopError."""
    from ..gateway.access.secrets import hash_of, new_secret

    token = new_secret("ev_")
    if not await book.keep_token(owner, name, hash_of(token), tuple(scopes), seconds):
        raise EverloopError(f"there is a token {name!r} already; revoke it first, or choose another name")
    return token


async def set_password(book: Credentials, owner: str, password: str) -> None:
    """Let this be the password of the page. All browsers are logged out. Raises EverloopError."""
    from ..gateway.access.secrets import LONGEST, SHORTEST, hash_password

    if not SHORTEST <= len(password) <= LONGEST:
        raise EverloopError(f"a password has {SHORTEST} to {LONGEST} characters; nothing was changed")
    await book.keep_login(owner, "password", await asyncio.to_thread(hash_password, password))
    await book.end_visits(owner)


async def remove_password(book: Credentials, owner: str) -> bool:
    """Whether there was one. All browsers are logged out: the link of the next start is the way in."""
    removed = await book.forget_login(owner, "password")
    await book.end_visits(owner)
    return removed
