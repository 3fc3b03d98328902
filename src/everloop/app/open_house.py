"""Opens the house from settings, and has it do what it does by itself."""

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..bus.local import LocalBus
from ..core.people import Role
from ..errors import HomeError
from ..memory.recall import Recall
from ..ports import Channel, Clock, Http, Provider, ToolSource
from ..ports.fact_search import PaidEmbedder
from ..ports.tools import Tool
from ..runtime.acting import Acting, ForEveryone, ForOne, ForSpeakers
from ..runtime.clock import MACHINE
from ..runtime.people import KnownPeople
from ..runtime.scheduler import Scheduler, Worker
from ..runtime.supervisor import Supervisor
from ..settings import Settings, home_of, load, workspace_of
from ..tools.bootstrap import make_workspace
from .agent import Agent
from .build import Builder, Overrides
from .credentials import PersonalCredentials
from .files import open_storage
from .house import House
from .live import LiveHouse
from .opening import OpenHome, opened_home
from .personal import PersonalSecrets
from .recall import NO_EMBEDDER, HouseEmbedder
from .tidying import daily, work_of
from .workspaces import check_workspace

if TYPE_CHECKING:
    from ..gateway.server import Gateway
    from .desk import GatewayDesk

MINUTE = 60.0


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
    from ..settings.editor import SettingsEditor
    from .desk import GatewayDesk
    from .reconfigure import LiveSettings

    overrides = Overrides(**{**given, "waits": True, "listens": True, "whose": ""})
    async with _opened_house(home, settings, overrides, ForEveryone()) as house:
        book = SettingsEditor(home, os.environ, settings)
        live_settings = LiveSettings(book, house.builder, house.live, house.store)
        yield GatewayDesk(house, live_settings)


@asynccontextmanager
async def open_own_desk(home: Path, **given: Any) -> "AsyncIterator[GatewayDesk]":
    """As `open_desk`, for the owner alone, whose threads it drives and nobody else's: no channel listens."""
    from ..settings.editor import SettingsEditor
    from .desk import GatewayDesk
    from .reconfigure import LiveSettings

    async with _opened_house(home, {}, Overrides(**{**given, "waits": True}), ForOne()) as house:
        live_settings = LiveSettings(SettingsEditor(home, os.environ, {}), house.builder, house.live, house.store)
        yield GatewayDesk(house, live_settings)


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
    from .whereabouts import listening_at

    folder = Path(home) if home is not None else home_of(os.environ)
    loaded = load(folder, os.environ, settings)
    check_listen(loaded.gateway)
    grace = loaded.agents.shutdown_seconds
    async with (
        open_desk(folder, settings, **given) as desk,
        answer(desk, loaded.gateway, folder, version=__version__, grace=grace) as gateway,
    ):
        with listening_at(folder, gateway.url):
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
    house: House  # what is made before it looks at it later
    store = opened.store
    _make_workspace(opened.settings, opened.home)
    people, bus = KnownPeople(store, given.roles), LocalBus()
    storage = await open_storage(opened, people, lambda: house.settings())
    supervisor = await stack.enter_async_context(Supervisor(given.clock or MACHINE))
    made_later = await stack.enter_async_context(AsyncExitStack())  # is closed after the lanes, too
    personal = PersonalSecrets(store)
    await personal.look()
    credentials = PersonalCredentials(personal, opened.vault_of)
    embedder: PaidEmbedder = NO_EMBEDDER
    if given.embeds:
        embedder = HouseEmbedder(lambda: house.live.now, store, lambda: house.budget_control, people)
    recall = Recall(store, embedder)
    builder = Builder(
        opened, storage, bus, given, supervisor, made_later, credentials, recall, lambda: house.mcp.connect()
    )
    house = House(
        opened=opened,
        given=given,
        acting=acting,
        stack=stack,
        made_later=made_later,
        people=people,
        bus=bus,
        storage=storage,
        supervisor=supervisor,
        personal=personal,
        credentials=credentials,
        recall=recall,
        embedder=embedder,
        builder=builder,
        live=LiveHouse(opened, builder, await builder.make(opened.settings)),
    )
    await _start(house)
    return house


async def _start(house: House) -> None:
    """Have the house do what it does by itself. Most of it ends after the lanes, which begin to close at once."""
    given, stack, supervisor = house.given, house.stack, house.supervisor

    async def look_at_own() -> None:
        await house.own_keys.look()
        house.credentials.tidy()
        await house.builder.mcp.look()

    lanes = house.lanes  # made first: a collector is told last, when all is acknowledged
    stack.push_async_callback(house.shown.settle)  # answers of the last moment are acknowledged too
    if house.builder.watched().unasked:  # whoever found it was killed before it was told
        await house.driver.questions.ask_about_files()
    stack.push_async_callback(supervisor.start("keys", partial(house.live.watch_keys, look_at_own)).end)
    await stack.enter_async_context(lanes)
    work = work_of(house)
    if given.embeds:
        from ..memory.embedding import KIND as EMBED
        from ..memory.embedding import FactEmbedding

        embedding = FactEmbedding(house.store, house.embedder, house.clock, given.whose)
        work[EMBED] = embedding.work
        supervisor.start("fact vectors", embedding.run)
    await _start_scheduler(house, work)
    supervisor.start("memory", lambda: _unasked(house, lambda: house.consolidation.run(work)))
    supervisor.start("schedules", house.results.run)
    supervisor.start("heartbeat", lambda: _unasked(house, lambda: house.heartbeats.run()))
    if not given.whose:
        stack.push_async_callback(supervisor.start("titles", house.titles.run).end)
    if given.channels or given.listens:
        await _open_channels(house)
    house.builder.mcp.start(supervisor, stack)


async def _unasked(house: House, run: Callable[[], Awaitable[None]]) -> None:
    """What one person opens is mostly over in a moment: what nobody has asked for is made and begins later there, and a
    model that it asks is not paid for nothing."""
    if house.given.whose:
        await house.clock.sleep(MINUTE)
    await run()


async def _open_channels(house: House) -> None:
    from .policies import policy_of

    stack, settings, rules = house.stack, house.opened.settings, house.admission_rules
    stack.push_async_callback(house.channels.close)
    is_copy = await house.store.restored() is not None
    for each in () if is_copy else house.given.channels:
        house.channels.start(each, rules.admission(each, policy_of(settings, each.manifest.name), brought=True))
    if house.configured:
        await stack.enter_async_context(house.configured.open())
        stack.push_async_callback(house.supervisor.start("channels", house.configured.watch).end)


def _make_workspace(settings: Settings, home: Path) -> None:
    workspace = workspace_of(settings, home)
    check_workspace(workspace, home)
    try:
        make_workspace(workspace)
    except OSError as error:
        raise HomeError(f"the workspace {workspace} cannot be used ({error.strerror})") from error


async def _start_scheduler(house: House, work: Mapping[str, Worker]) -> None:
    store, clock, whose = house.store, house.clock, house.given.whose
    if not whose:
        await store.add_job(daily(clock.now()))
        await house.scheduled_backups.follow()
    scheduler = Scheduler(store, house.bus, clock, work, whose, house.opened.settings.store.lease_seconds)
    house.supervisor.start("scheduler", scheduler.run, is_elsewhere=lambda: scheduler.is_elsewhere)
