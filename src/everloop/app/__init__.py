"""Builds the house from settings: the one file that knows every room."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from .. import __version__
from ..bus.local import LocalBus
from ..core.errors import HomeError
from ..core.events import CommandDone, Event, PermissionAsked, TurnEnded
from ..core.message import Part
from ..core.people import Role
from ..core.ports import Bus, Channel, Clock, Http, Provider, Store, ToolSource
from ..core.tool import Tool
from ..core.turn import Finished
from ..files.enclosing import enclose
from ..files.folder import Folder
from ..files.pictures import fit, take
from ..runtime.acknowledgements import Acknowledgements
from ..runtime.acting import Acting, ForEveryone, ForOne, ForSpeakers
from ..runtime.approvals import Approvals
from ..runtime.calls import Toolbox
from ..runtime.clock import MACHINE
from ..runtime.commands import SlashCommands
from ..runtime.context import Gallery
from ..runtime.driver import Driver
from ..runtime.inbox import Inbox
from ..runtime.lanes import Lanes
from ..runtime.outbox import Outbox
from ..runtime.ownership import Ownership
from ..runtime.people import KnownPeople
from ..runtime.reception import AdmitAll, Reception
from ..runtime.scheduler import Scheduler
from ..runtime.sessions import Sessions
from ..runtime.supervisor import Supervisor
from ..runtime.titles import KIND, Titles
from ..settings import Settings, home_of, load, workspace_of
from ..tools.bootstrap import make_workspace
from .agent import Agent
from .build import Builder, Overrides
from .channels import channels_of, traits_in
from .house import House
from .live import LiveHouse
from .models import network_of
from .opening import OpenHome, opened_home
from .tidying import daily, workers
from .tools import check_workspace

if TYPE_CHECKING:
    from ..gateway.server import Gateway
    from .desk import GatewayDesk

TurnListener = Callable[[str, Finished], None]


@asynccontextmanager
async def open(
    home: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] = {},
    *,
    provider: Provider | None = None,
    tools: Iterable[Tool | ToolSource] = (),
    channels: Iterable[Channel] = (),
    http: Http | None = None,
    roles: Mapping[str, Role] = {},
    clock: Clock | None = None,
) -> AsyncIterator[Agent]:
    """Open everloop for as long as the block lasts: `async with everloop.open(home=…, settings={…}) as agent`.

    Turns that were cut off go on at once: the owner's, and those of whom the program acts for, which is everyone whom
    `roles` or `agent.user` names, who speaks through it, or writes in one of its `channels`. `provider` takes the place
    of the configured model, `tools` are added to the built-in ones; a ToolSource among them is asked for its tools when
    a turn begins. `http` takes the place of the network, as `everloop.testing.Cassette` does; it is not closed.
    `roles` says what the users of the program may do (`agent.user`); who is not in it is a guest. It is looked at each
    time, so that a program may add to it. `clock` takes the place of the machine's in all that is told, kept or to
    happen later, over either database; leases go on by real time.
    Raises SettingsError, HomeError, StoreError, ModelMissing.
    """
    given = Overrides(provider, http, (*tools,), (*channels,), roles, clock=clock)
    acting = ForSpeakers(roles, [channel.manifest.name for channel in given.channels])
    async with _opened_house(home, settings, given, acting) as house:
        yield Agent(house)


@asynccontextmanager
async def open_for_owner(
    home: Path | None = None, settings: Mapping[str, Any] = {}, **given: Any
) -> AsyncIterator[Agent]:
    """As `open`, for the owner who sits at a terminal: nobody else's turn goes on there. `given` is what `open` takes.
    Raises what `open` raises."""
    async with _opened_house(home, settings, Overrides(**given), ForOne()) as house:
        yield Agent(house)


@asynccontextmanager
async def open_desk(home: Path, settings: Mapping[str, Any] = {}, **given: Any) -> "AsyncIterator[GatewayDesk]":
    """As `open`, for a process that drives everyone's threads and through which settings can be changed; so it opens
    also without a model. `given` is what `open` takes."""
    from ..files.inventory import BoundedFiles
    from ..settings.editor import SettingsEditor
    from .desk import GatewayDesk
    from .reconfigure import LiveSettings

    overrides = Overrides(**{**given, "waits": True, "listens": True, "whose": ""})
    async with _opened_house(home, settings, overrides, ForEveryone()) as house:
        bounded = BoundedFiles(Folder(home / "files"), house.opened.settings.gateway.bytes_per_user)
        book = SettingsEditor(home, os.environ, settings)
        yield GatewayDesk(structs.replace(house, files=bounded), LiveSettings(book, house.builder, house.live))


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
        open_desk(folder, settings, **given) as desk,
        answer(desk, loaded.gateway, folder, version=__version__, grace=grace) as gateway,
    ):
        yield gateway


@asynccontextmanager
async def _opened_house(
    home: str | os.PathLike[str] | None, settings: Mapping[str, Any], given: Overrides, acting: Acting
) -> AsyncIterator[House]:
    if "EVERLOOP_FAILPOINT" in os.environ or "EVERLOOP_FAILPOINT_RECORD" in os.environ:
        from ..testing import failpoints

        failpoints.from_environment()
    if not (logger := logging.getLogger("everloop")).handlers:
        logger.addHandler(logging.NullHandler())  # whoever embeds us decides what is shown
    async with opened_home(home, settings, given.clock) as opened, AsyncExitStack() as stack:
        yield await _build_house(opened, given, acting, stack)


async def _build_house(opened: OpenHome, given: Overrides, acting: Acting, stack: AsyncExitStack) -> House:
    home, settings, store = opened.home, opened.settings, opened.store
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
    builder = Builder(opened, files, bus, given, supervisor, made_later)
    live = LiveHouse(opened, builder, await builder.make(settings))
    toolbox = Toolbox(live.kit_of, files)
    spans = (settings, store, given.http, supervisor, stack)
    people = KnownPeople(store, given.roles)
    titles = Titles(
        store,
        bus,
        people,
        clock,
        wanted=lambda: live.wants_titles,
        namer=live.title_model,
        traits=traits,
    )
    # A chat at a terminal, or a program, is over before anyone looks at a list.
    told: list[TurnListener] = [] if given.whose else [titles.note]
    if _wants_spans(settings) and (note := _tell_a_collector(*spans)):
        told.append(note)
    parts = (store, bus, live, live, toolbox, Gallery(files, fit))
    driver = Driver(*parts, defaults.steering, people, ended=_telling(told), files=builder.prompt_files, clock=clock)
    lanes = Lanes(
        store,
        bus,
        driver,
        supervisor,
        cap=settings.agents.max_concurrent_turns,
        lease_seconds=settings.store.lease_seconds,
        grace=settings.agents.shutdown_seconds,
        acting=acting,
    )
    approvals = Approvals(store, people, builder.prompt_files, clock)
    sessions = Sessions(store, people, lambda: toolbox.specs, clock)
    commands = SlashCommands(store, live, approvals, sessions, people, clock)
    inbox = Inbox(store, bus, lanes, commands, defaults.max_message_chars, live.now.toolset.leave)

    async def enclose_file(name: str, data: bytes, owner: str) -> Part:
        return await enclose(files, await take(name, data), owner)

    receptions = [Reception(channel, inbox, store, AdmitAll(), enclose_file) for channel in channels]
    hooks = {reception.name: reception.hooks() for reception in receptions}
    house = House(
        opened=opened,
        bus=bus,
        files=files,
        inbox=inbox,
        lanes=lanes,
        approvals=approvals,
        sessions=sessions,
        shown=Acknowledgements(store),
        supervisor=supervisor,
        builder=builder,
        live=live,
        clock=clock,
        hooks=hooks,
        traits=traits,
    )
    stack.push_async_callback(house.shown.settle)  # after the lanes: answers of the last moment are acknowledged too
    if builder.prompt_files and builder.prompt_files.unasked:  # whoever found it was killed before it was told
        await driver.questions.ask_about_files()
    await stack.enter_async_context(lanes)
    work = {} if given.whose else {**workers(store, home), KIND: titles.work}
    if work:
        await store.add_job(daily(clock.now()))
        stack.push_async_callback(supervisor.start("titles", titles.run).end)
    scheduler = Scheduler(store, bus, clock, work, given.whose, settings.store.lease_seconds)
    # It ends after the lanes, which begin to close at once.
    supervisor.start("scheduler", scheduler.run, is_elsewhere=lambda: scheduler.is_elsewhere)
    if live.now.library:
        stack.push_async_callback(supervisor.start("keys", live.watch_keys).end)
    owned = [Ownership(store, f"channel:{each.name}", settings.store.lease_seconds) for each in receptions]
    _open_channels(
        receptions, [Outbox(store, channel, clock=clock) for channel in channels], owned, bus, supervisor, stack
    )
    return house


def _open_channels(
    receptions: list[Reception],
    outboxes: list[Outbox],
    owned: list[Ownership],
    bus: Bus,
    supervisor: Supervisor,
    stack: AsyncExitStack,
) -> None:
    """Let channels listen, each in one process at a time, and send, for as long as the house is open. An answer is
    claimed by who sends it: broken off because a lease was lost, it would wait for its claim to run out."""
    if not outboxes:
        return

    def listen(reception: Reception, owner: Ownership) -> None:
        name, run = f"channel {reception.name}", lambda: owner.during(reception.run)
        stack.push_async_callback(supervisor.start(name, run, is_elsewhere=lambda: owner.is_elsewhere).end)

    for outbox, reception, owner in zip(outboxes, receptions, owned, strict=True):
        stack.push_async_callback(supervisor.start(f"lease {outbox.name}", owner.run).end)
        stack.push_async_callback(supervisor.start(f"outbox {outbox.name}", outbox.run).end)
        listen(reception, owner)
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


def _telling(listeners: list[TurnListener]) -> TurnListener | None:
    """All of them, as one; None if there is nobody."""
    if len(listeners) < 2:
        return listeners[0] if listeners else None

    def tell(thread: str, turn: Finished) -> None:
        for listener in listeners:
            listener(thread, turn)

    return tell


def _wants_spans(settings: Settings) -> bool:
    """Only then is anything of it loaded."""
    return bool(settings.telemetry.otlp_endpoint) or any(name.startswith("OTEL_EXPORTER_OTLP") for name in os.environ)


def _tell_a_collector(
    settings: Settings, store: Store, http: Http | None, supervisor: Supervisor, stack: AsyncExitStack
) -> TurnListener | None:
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
