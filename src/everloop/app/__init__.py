"""Builds the house from settings: the one file that knows every room."""

import logging
import os
from collections import ChainMap
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..bus.local import LocalBus
from ..core.people import Role
from ..core.turn import Finished
from ..errors import HomeError
from ..files.pictures import fit
from ..memory.book import MemoryBook
from ..memory.embedding import KIND as EMBED
from ..memory.embedding import FactEmbedding
from ..memory.recall import Recall
from ..ports import Bus, Channel, Clock, Http, Provider, ToolSource
from ..ports.channel import Hook, traits_of
from ..ports.heartbeat import HEARTBEAT
from ..ports.jobs import DELETE, ERASE
from ..ports.schedules import COMMAND, POLL
from ..ports.tools import Tool
from ..runtime.acknowledgements import Acknowledgements
from ..runtime.acting import Acting, ForEveryone, ForOne, ForSpeakers
from ..runtime.allotments import Allotments
from ..runtime.approvals import Approvals
from ..runtime.approvers import Approvers
from ..runtime.budgets import BudgetControl
from ..runtime.calls import Toolbox
from ..runtime.children import Children
from ..runtime.clock import MACHINE
from ..runtime.commands import SlashCommands
from ..runtime.context import Gallery
from ..runtime.deletions import Deletions
from ..runtime.driver import Driver
from ..runtime.elicitation import Elicitations
from ..runtime.erasures import Erasures
from ..runtime.inbox import Inbox
from ..runtime.lanes import Lanes
from ..runtime.mcp_answers import McpAnswers
from ..runtime.membership import Membership
from ..runtime.people import KnownPeople, Speakers
from ..runtime.scheduler import Scheduler, Worker
from ..runtime.seats import Seats
from ..runtime.sessions import Sessions
from ..runtime.supervisor import Supervisor
from ..runtime.titles import KIND, Titles
from ..runtime.voice import VoiceMessages
from ..settings import Settings, home_of, load, workspace_of
from ..tools.bootstrap import make_workspace
from .agent import Agent
from .backups import Backups
from .budgets import following, unpriced_in
from .build import Builder, Overrides
from .configured_channels import ConfiguredChannels
from .consolidation import HouseConsolidation
from .credentials import PersonalCredentials
from .files import open_storage
from .heartbeat import heartbeat_desk, heartbeat_files, heartbeat_in
from .home_folders import HomeFoldersOf
from .house import House
from .listening import lease_of
from .live import LiveHouse
from .models import network_of
from .open_channels import OpenChannels
from .opening import OpenHome, opened_home
from .outgoing_links import OutgoingLinks
from .own_keys import OwnProviderKeys
from .personal import PersonalSecrets
from .policies import PolicyRules, policy_of
from .recall import HouseEmbedder, how_recalled
from .schedule_hooks import NAME as SCHEDULES
from .schedule_hooks import ScheduleHooks
from .scheduled_backups import ScheduledBackups
from .schedules import rules_of, scheduled_deeds
from .skill_desk import SkillDesk
from .spans import tell_a_collector
from .subagents import seat_caps, task_limits
from .tidying import daily, workers
from .tools import check_workspace
from .whereabouts import listening_at

if TYPE_CHECKING:
    from ..gateway.server import Gateway
    from ..runtime.sampling import SampledAnswers
    from .desk import GatewayDesk


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
    home, settings, store = opened.home, opened.settings, opened.store
    lease_seconds = settings.store.lease_seconds
    _make_workspace(settings, home)
    people, bus = KnownPeople(store, given.roles), LocalBus()
    storage = await open_storage(opened, people, lambda: live.now.settings)
    files = storage.files
    clock = given.clock or MACHINE
    supervisor = await stack.enter_async_context(Supervisor(clock))
    made_later = await stack.enter_async_context(AsyncExitStack())  # is closed after the lanes, too
    personal = PersonalSecrets(store)
    await personal.look()
    credentials = PersonalCredentials(personal, opened.vault_of)
    embedder = HouseEmbedder(lambda: live.now, store, lambda: budgets, people, loads=given.embeds)
    recall = Recall(store, embedder)

    def sampled() -> "SampledAnswers":
        """Who answers what an MCP server may have a model asked: few have one that does."""
        from ..runtime.sampling import SampledAnswers

        return SampledAnswers(live.small_or_usual, budgets, store, people, own_keys)

    async def is_served(channel: str) -> bool:
        """Whether what is said there is sent, here or by another process, or fetched."""
        here = channel in builder.open_channels or traits_of(channel, builder.channels).polled
        return here or lease_of(channel) in await store.listening()

    elicitations = Elicitations(store, bus, lambda inbound, text: inbox.answer(inbound, text), is_served)
    mcp_answers = McpAnswers(store)
    builder = Builder(opened, storage, bus, given, supervisor, made_later, credentials, recall, sampled, elicitations)
    live = LiveHouse(opened, builder, await builder.make(settings))
    traits = builder.channels
    own_keys = OwnProviderKeys(personal, opened.vault_of, lambda: live.now)

    async def look_at_own() -> None:
        await own_keys.look()
        credentials.tidy()
        await builder.mcp.look()

    toolbox = Toolbox(live.kit_of, files, credentials)
    budgets = BudgetControl(store, following(lambda: live.now.settings.users.budgets))
    allotments = Allotments(store, lambda: budgets.rules, budgets.forget_limits, lambda: unpriced_in(live))
    titles = Titles(
        store,
        bus,
        people,
        clock,
        wanted=lambda: not given.whose and live.wants_titles,  # what one person opens is over before they see a list
        namer=live.title_model,
        traits=traits,
        budgets=budgets,
        own_keys=own_keys,
    )
    leave = live.now.toolset.leave
    children = Children(toolbox, bus, store, lambda: task_limits(live.now.settings.agents), leave)
    forget, prompt_files = live.now.toolset.forget, builder.prompt_files
    deeds = scheduled_deeds(store, bus, people, toolbox, lambda: live.now.settings, forget, prompt_files)
    hearts = heartbeat_files(builder.watched, builder.own, lambda: live.now.settings)
    heartbeat = heartbeat_in(
        store, bus, clock, files=hearts, deeds=deeds, settings=lambda: live.now.settings, whose=given.whose
    )
    heartbeats = heartbeat_desk(store, hearts, lambda: live.now.settings)
    driver = Driver(
        store,
        bus,
        models=live,
        briefer=live,
        toolbox=toolbox,
        gallery=Gallery(files, fit),
        steering=settings.agents.defaults.steering,
        people=people,
        ended=_together(
            _together(titles.note, _together(deeds.note, heartbeat.note)),
            tell_a_collector(settings, store, given.http, supervisor, stack),
        ),
        files=prompt_files,
        clock=clock,
        approvers=Approvers(store, traits, given.roles),
        budgets=budgets,
        own_keys=own_keys,
        children=children,
        facts=recall,
    )
    lanes = Lanes(
        store,
        bus,
        driver,
        supervisor,
        cap=settings.agents.max_concurrent_turns,
        lease_seconds=lease_seconds,
        grace=settings.agents.shutdown_seconds,
        acting=acting,
        clock=clock,
        seats=Seats(lambda: seat_caps(live.now.settings.agents)),
    )
    approvals = Approvals(store, people, builder.prompt_files, clock)
    assert builder.memory is not None  # it was made with the first tools
    memory = MemoryBook(store, builder.memory, clock, recall, lambda: how_recalled(live.now.settings))
    sessions = Sessions(store, people, lambda: toolbox.specs, clock)
    deletions = Deletions(store, storage.shelves, live.now.toolset.forget, bus, clock)
    folders = HomeFoldersOf(home, workspace_of(settings, home), storage.files, storage.shelves)
    erasures = Erasures(store, folders, deletions, Membership(store), bus, clock, forgets=memory.forget)
    commands = SlashCommands(
        store,
        live,
        approvals,
        sessions,
        people,
        deletions,
        clock,
        budgets=allotments,
        personas=lambda: live.now.personas,
        kept=personal.names,
        channels=lambda: sorted(builder.open_channels),
        memory=memory,
        skills=SkillDesk(home, builder.skills, store),
        schedules=builder.schedules,
        heartbeat=heartbeats,
        tasks=lambda: task_limits(live.now.settings.agents),
        mcp=builder.mcp,
        brought=lambda: live.now.toolset.slash,
        mcp_answers=mcp_answers,
    )
    longest = settings.agents.defaults.max_message_chars
    consolidation = HouseConsolidation(
        live, store, people, clock, budgets, own_keys, given.whose, builder.memory_changed
    )
    inbox = Inbox(store, bus, lanes, commands, longest, consolidation.leave, Speakers(store, people))
    rules = PolicyRules(store, lambda: live.now.settings.users.strangers, given.roles, clock)
    links = OutgoingLinks(lambda: live.now.settings, opened.links, clock)
    voice = VoiceMessages(live.transcriber, budgets, people, store)
    channels = OpenChannels(
        inbox,
        store,
        storage.attachments,
        files,
        bus,
        clock,
        lease_seconds,
        links,
        voice,
        supervisor=supervisor,
        traits=traits,
        open_now=builder.open_channels,
    )
    shown = Acknowledgements(store)
    stack.push_async_callback(shown.settle)  # after the lanes: answers of the last moment are acknowledged too
    if builder.prompt_files and builder.prompt_files.unasked:  # whoever found it was killed before it was told
        await driver.questions.ask_about_files()
    # It ends after the lanes, which begin to close at once.
    stack.push_async_callback(supervisor.start("keys", partial(live.watch_keys, look_at_own)).end)
    await stack.enter_async_context(lanes)
    embedding = FactEmbedding(store, embedder, clock, given.whose)
    scheduled = {COMMAND: deeds.run_command, POLL: deeds.look, HEARTBEAT: heartbeat.look}
    backups = Backups(home, store, opened.settings_now, opened.vault, clock)
    scheduled_backups = ScheduledBackups(backups, store, opened.settings_now, clock)
    work = {**workers(store, home, deletions, erasures, scheduled_backups), KIND: titles.work, **scheduled}
    if given.whose:
        work = {DELETE: deletions.work, ERASE: erasures.work, **scheduled}
    if given.embeds:
        work[EMBED] = embedding.work
        supervisor.start("fact vectors", embedding.run)  # as the scheduler, it ends after the lanes
    await _start_scheduler(opened, given.whose, work, bus, clock, supervisor)
    supervisor.start("memory", partial(consolidation.run, work))  # these end after the lanes, too
    if not given.whose:
        await scheduled_backups.follow()
    supervisor.start("schedules", deeds.run)
    supervisor.start("heartbeat", heartbeat.run)
    if not given.whose:
        stack.push_async_callback(supervisor.start("titles", titles.run).end)
    stack.push_async_callback(channels.close)
    is_copy = await store.restored() is not None
    for each in () if is_copy else given.channels:
        channels.start(each, rules.admission(each, policy_of(settings, each.manifest.name), brought=True))
    builder.mcp.start(supervisor, stack)
    configured, network = None, cache(lambda: given.http or network_of(settings, made_later))
    if given.listens:
        names = frozenset(each.manifest.name for each in given.channels)
        configured = ConfiguredChannels(opened, channels, network, rules.admission, names)
        await stack.enter_async_context(configured.open())
        stack.push_async_callback(supervisor.start("channels", configured.watch).end)
    schedule_hooks = ScheduleHooks(store, bus, clock, opened.links, lambda: rules_of(live.now.settings))
    own_hooks: dict[str, Sequence[Hook]] = {SCHEDULES: schedule_hooks.hooks}
    return House(
        opened=opened,
        bus=bus,
        storage=storage,
        inbox=inbox,
        commands=commands,
        lanes=lanes,
        approvals=approvals,
        mcp_answers=mcp_answers,
        memory=memory,
        heartbeat=heartbeats,
        voice=voice,
        sessions=sessions,
        deletions=deletions,
        budgets=allotments,
        erasures=erasures,
        folders=folders,
        shown=shown,
        deeds=deeds,
        supervisor=supervisor,
        builder=builder,
        live=live,
        clock=clock,
        own_keys=own_keys,
        credentials=credentials,
        backups=backups,
        hooks=ChainMap(own_hooks, channels.hooks),
        traits=traits,
        configured=configured,
        network=network,
    )


def _make_workspace(settings: Settings, home: Path) -> None:
    workspace = workspace_of(settings, home)
    check_workspace(workspace, home)
    try:
        make_workspace(workspace)
    except OSError as error:
        raise HomeError(f"the workspace {workspace} cannot be used ({error.strerror})") from error


def _together(
    first: Callable[[str, Finished], None], second: Callable[[str, Finished], None] | None
) -> Callable[[str, Finished], None]:
    """Whoever is to be told of turns that end, as one."""
    if second is None:
        return first

    def tell(thread: str, turn: Finished) -> None:
        first(thread, turn)
        second(thread, turn)

    return tell


async def _start_scheduler(
    opened: OpenHome, whose: str, work: Mapping[str, Worker], bus: Bus, clock: Clock, supervisor: Supervisor
) -> None:
    """It ends after the lanes, which begin to close at once."""
    if not whose:
        await opened.store.add_job(daily(clock.now()))
    scheduler = Scheduler(opened.store, bus, clock, work, whose, opened.settings.store.lease_seconds)
    supervisor.start("scheduler", scheduler.run, is_elsewhere=lambda: scheduler.is_elsewhere)
