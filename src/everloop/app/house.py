"""The parts of an open everloop, in one place.

What the opening itself takes is made there (`app/open_house.py`). Every other part is made when it is first asked for,
so that a process makes and loads what it uses and nothing else; what the settings may have wrong is told at the
opening, by the builder.
"""

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from ..core.turn import Finished
from ..files.pictures import fit
from ..memory.recall import Recall
from ..ports import Bus, Clock, Http, Store
from ..ports.channel import Hook, Traits
from ..ports.fact_search import PaidEmbedder
from ..runtime.acknowledgements import Acknowledgements
from ..runtime.acting import Acting
from ..runtime.approvers import Approvers
from ..runtime.budgets import BudgetControl
from ..runtime.calls import Toolbox
from ..runtime.children import Children
from ..runtime.clock import MACHINE
from ..runtime.context import Gallery
from ..runtime.driver import Driver
from ..runtime.inbox import Inbox
from ..runtime.lanes import Lanes
from ..runtime.people import KnownPeople, Speakers
from ..runtime.seats import Seats
from ..runtime.supervisor import Supervisor
from ..runtime.turn_results import TurnResults
from ..settings import Settings, workspace_of
from .build import Builder, Overrides
from .credentials import PersonalCredentials
from .files import FileStorage
from .live import LiveHouse
from .opening import OpenHome
from .own_keys import OwnProviderKeys
from .personal import PersonalSecrets
from .spans import tell_a_collector
from .subagents import seat_caps, task_limits

if TYPE_CHECKING:
    from ..memory.book import MemoryBook
    from ..ports import HomeFolders
    from ..runtime.allotments import Allotments
    from ..runtime.approvals import Approvals
    from ..runtime.commands import SlashCommands
    from ..runtime.deletions import Deletions
    from ..runtime.erasures import Erasures
    from ..runtime.heartbeat import Heartbeat
    from ..runtime.heartbeat_desk import HeartbeatDesk
    from ..runtime.mcp_answers import McpAnswers
    from ..runtime.reading_aloud import AnswersAloud
    from ..runtime.scheduled_work import ScheduledDeeds
    from ..runtime.sessions import Sessions
    from ..runtime.titles import Titles
    from ..runtime.voice import VoiceMessages
    from ..tools.heartbeat_files import WatchedHeartbeats
    from .backups import Backups
    from .configured_channels import ConfiguredChannels
    from .consolidation import HouseConsolidation
    from .mcp_house import McpOfHouse
    from .open_channels import OpenChannels
    from .policies import PolicyRules
    from .scheduled_backups import ScheduledBackups
    from .skill_desk import SkillDesk

TurnNote = Callable[[str, Finished], None]


class House(Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """What an Agent works with. All of it stays but `live.now`, which follows the settings."""

    opened: OpenHome
    given: Overrides
    acting: Acting
    stack: AsyncExitStack
    made_later: AsyncExitStack  # is closed after the lanes
    people: KnownPeople
    bus: Bus
    storage: FileStorage
    supervisor: Supervisor
    personal: PersonalSecrets
    credentials: PersonalCredentials
    recall: Recall
    embedder: PaidEmbedder
    builder: Builder
    live: LiveHouse

    @property
    def store(self) -> Store:
        return self.opened.store

    @property
    def clock(self) -> Clock:
        return self.given.clock or MACHINE

    @property
    def traits(self) -> Mapping[str, Traits]:
        """Of every channel that is known here, by its name."""
        return self.builder.channels

    def settings(self) -> Settings:
        """Those that are in force."""
        return self.live.now.settings

    @cached_property
    def own_keys(self) -> OwnProviderKeys:
        return OwnProviderKeys(self.personal, self.opened.vault_of, lambda: self.live.now)

    @cached_property
    def budget_control(self) -> BudgetControl:
        return BudgetControl(self.store, lambda: self.live.now.budgets)

    @cached_property
    def toolbox(self) -> Toolbox:
        return Toolbox(self.live.kit_of, self.storage.files, self.credentials)

    @cached_property
    def driver(self) -> Driver:
        return Driver(
            self.store,
            self.bus,
            models=self.live,
            briefer=self.live,
            toolbox=self.toolbox,
            gallery=Gallery(self.storage.files, fit),
            steering=self.opened.settings.agents.defaults.steering,
            people=self.people,
            ended=self._turn_notes(),
            ended_by_itself=(self.results.note,),
            files=self.builder.prompt_files,
            clock=self.clock,
            approvers=Approvers(self.store, self.builder.channels, self.given.roles),
            budgets=self.budget_control,
            own_keys=self.own_keys,
            children=self._children(),
            facts=self.recall,
        )

    def _children(self) -> Children:
        leave = self.live.now.toolset.leave
        return Children(self.toolbox, self.bus, self.store, lambda: task_limits(self.settings().agents), leave)

    def _turn_notes(self) -> tuple[TurnNote, ...]:
        """Who is told of all turns that end."""
        opened, given = self.opened, self.given
        collector = tell_a_collector(opened.settings, opened.store, given.http, self.supervisor, self.stack)
        titled = None if given.whose else self._note_for_title  # what one person opens is over before they see a list
        return tuple(note for note in (titled, collector) if note)

    def _note_for_title(self, thread: str, turn: Finished) -> None:
        if self.live.wants_titles:
            self.titles.note(thread, turn)

    @cached_property
    def lanes(self) -> Lanes:
        settings = self.opened.settings
        return Lanes(
            self.store,
            self.bus,
            self.driver,
            self.supervisor,
            cap=settings.agents.max_concurrent_turns,
            lease_seconds=settings.store.lease_seconds,
            grace=settings.agents.shutdown_seconds,
            acting=self.acting,
            clock=self.clock,
            seats=Seats(lambda: seat_caps(self.settings().agents)),
        )

    @cached_property
    def inbox(self) -> Inbox:
        longest = self.opened.settings.agents.defaults.max_message_chars
        speakers = Speakers(self.store, self.people)
        return Inbox(self.store, self.bus, self.lanes, lambda: self.commands, longest, self._leave, speakers)

    async def _leave(self, thread: str) -> None:
        await self.consolidation.leave(thread)

    @cached_property
    def commands(self) -> "SlashCommands":
        from ..runtime.commands import SlashCommands
        from .slash_commands import CommandTable

        table = CommandTable(self)
        return SlashCommands(self.people, table.find, table.keep, lambda: self.live.now.toolset.slash)

    @cached_property
    def shown(self) -> Acknowledgements:
        return Acknowledgements(self.store)

    @cached_property
    def titles(self) -> "Titles":
        from ..runtime.titles import Titles

        return Titles(
            self.store,
            self.bus,
            self.people,
            self.clock,
            wanted=lambda: self.live.wants_titles,
            namer=self.live.title_model,
            traits=self.builder.channels,
            budgets=self.budget_control,
            own_keys=self.own_keys,
        )

    @cached_property
    def results(self) -> TurnResults:
        return TurnResults(self.store)

    @cached_property
    def deeds(self) -> "ScheduledDeeds":
        """Runs commands that no model has asked for."""
        from .schedules import scheduled_deeds

        forget, files = self.live.now.toolset.forget, self.builder.prompt_files
        return scheduled_deeds(self.store, self.bus, self.people, self.toolbox, self.settings, forget, files)

    @cached_property
    def _heartbeat_files(self) -> "WatchedHeartbeats":
        from .heartbeat import heartbeat_files

        return heartbeat_files(self.builder.watched, self.builder.own, self.settings)

    @cached_property
    def heartbeats(self) -> "Heartbeat":
        from .heartbeat import heartbeat_in

        return heartbeat_in(
            self.store,
            self.bus,
            self.clock,
            files=self._heartbeat_files,
            deeds=self.deeds,
            settings=self.settings,
            whose=self.given.whose,
        )

    @cached_property
    def consolidation(self) -> "HouseConsolidation":
        from .consolidation import HouseConsolidation

        return HouseConsolidation(
            self.live,
            self.store,
            self.people,
            self.clock,
            self.budget_control,
            self.own_keys,
            self.given.whose,
            self.builder.memory_changed,
        )

    @cached_property
    def approvals(self) -> "Approvals":
        from ..runtime.approvals import Approvals

        return Approvals(self.store, self.people, self.builder.prompt_files, self.clock)

    @cached_property
    def budgets(self) -> "Allotments":
        from ..runtime.allotments import Allotments
        from .budgets import unpriced_in

        control = self.budget_control
        return Allotments(self.store, lambda: control.rules, control.forget_limits, lambda: unpriced_in(self.live))

    @cached_property
    def memory(self) -> "MemoryBook":
        from ..memory.book import MemoryBook
        from .recall import how_recalled

        files = self.builder.memory
        assert files is not None  # it was made with the first tools
        return MemoryBook(self.store, files, self.clock, self.recall, lambda: how_recalled(self.settings()))

    @cached_property
    def skills(self) -> "SkillDesk":
        from .skill_desk import SkillDesk

        return SkillDesk(self.opened.home, self.builder.skills, self.store)

    @cached_property
    def heartbeat(self) -> "HeartbeatDesk":
        from .heartbeat import heartbeat_desk

        return heartbeat_desk(self.store, self._heartbeat_files, self.settings)

    @cached_property
    def sessions(self) -> "Sessions":
        from ..runtime.sessions import Sessions

        return Sessions(self.store, self.people, lambda: self.toolbox.specs, self.clock)

    @cached_property
    def deletions(self) -> "Deletions":
        from ..runtime.deletions import Deletions

        forget = self.live.now.toolset.forget
        return Deletions(self.store, self.storage.shelves, forget, self.bus, self.clock)

    @cached_property
    def folders(self) -> "HomeFolders":
        from .home_folders import HomeFoldersOf

        home, storage = self.opened.home, self.storage
        return HomeFoldersOf(home, workspace_of(self.opened.settings, home), storage.files, storage.shelves)

    @cached_property
    def erasures(self) -> "Erasures":
        from ..runtime.erasures import Erasures
        from ..runtime.membership import Membership

        members, forget = Membership(self.store), self.memory.forget
        return Erasures(self.store, self.folders, self.deletions, members, self.bus, self.clock, forgets=forget)

    @cached_property
    def backups(self) -> "Backups":
        from .backups import Backups

        return Backups(self.opened.home, self.store, self.opened.settings_now, self.opened.vault, self.clock)

    @cached_property
    def scheduled_backups(self) -> "ScheduledBackups":
        from .scheduled_backups import ScheduledBackups

        return ScheduledBackups(self.backups, self.store, self.opened.settings_now, self.clock)

    @cached_property
    def mcp_answers(self) -> "McpAnswers":
        """What MCP servers ask people, in this process or another, and their answers."""
        from ..runtime.mcp_answers import McpAnswers

        return McpAnswers(self.store.mcp_questions)

    @cached_property
    def mcp(self) -> "McpOfHouse":
        from .mcp_house import McpOfHouse

        return McpOfHouse(self)

    @cached_property
    def voice(self) -> "VoiceMessages":
        from ..runtime.voice import VoiceMessages

        return VoiceMessages(self.live.transcriber, self.budget_control, self.people, self.store)

    @cached_property
    def aloud(self) -> "AnswersAloud":
        from ..runtime.reading_aloud import AnswersAloud

        return AnswersAloud(self.live.speech_maker, self.budget_control, self.people, self.store)

    @cached_property
    def channels(self) -> "OpenChannels":
        from .open_channels import OpenChannels
        from .outgoing_links import OutgoingLinks

        return OpenChannels(
            self.inbox,
            self.store,
            self.storage.attachments,
            self.storage.files,
            self.bus,
            self.clock,
            self.opened.settings.store.lease_seconds,
            OutgoingLinks(self.settings, self.opened.links, self.clock),
            self.voice,
            supervisor=self.supervisor,
            traits=self.builder.channels,
            open_now=self.builder.open_channels,
        )

    @cached_property
    def admission_rules(self) -> "PolicyRules":
        from .policies import PolicyRules

        return PolicyRules(self.store, lambda: self.settings().users.strangers, self.given.roles, self.clock)

    @cached_property
    def configured(self) -> "ConfiguredChannels | None":
        """The channels that the settings name, where they are opened."""
        if not self.given.listens:
            return None
        from .configured_channels import ConfiguredChannels

        brought = frozenset(each.manifest.name for each in self.given.channels)
        return ConfiguredChannels(self.opened, self.channels, self.network, self.admission_rules.admission, brought)

    @cached_property
    def hooks(self) -> Mapping[str, Sequence[Hook]]:
        """What the platforms of channels call, by the channel's name, and programs that set off a schedule."""
        from .schedule_hooks import NAME, ScheduleHooks
        from .schedules import rules_of

        schedules = ScheduleHooks(
            self.store, self.bus, self.clock, self.opened.links, lambda: rules_of(self.settings())
        )
        own: dict[str, Sequence[Hook]] = {NAME: schedules.hooks}
        return ChainMap(own, self.channels.hooks)

    def network(self) -> Http:
        """To hosts that the owner has set."""
        return self.given.http or self._network

    @cached_property
    def _network(self) -> Http:
        from .models import network_of

        return network_of(self.opened.settings, self.made_later)
