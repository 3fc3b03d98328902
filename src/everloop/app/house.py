"""The parts of an open everloop, in one place."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from ..memory.book import MemoryBook
from ..ports import Bus, Clock, HomeFolders, Http, Store
from ..ports.channel import Hook, Traits
from ..runtime.acknowledgements import Acknowledgements
from ..runtime.allotments import Allotments
from ..runtime.approvals import Approvals
from ..runtime.commands import SlashCommands
from ..runtime.deletions import Deletions
from ..runtime.erasures import Erasures
from ..runtime.heartbeat_desk import HeartbeatDesk
from ..runtime.inbox import Inbox
from ..runtime.lanes import Lanes
from ..runtime.mcp_answers import McpAnswers
from ..runtime.scheduled_work import ScheduledDeeds
from ..runtime.sessions import Sessions
from ..runtime.supervisor import Supervisor
from ..runtime.voice import VoiceMessages
from .backups import Backups
from .build import Builder
from .configured_channels import ConfiguredChannels
from .credentials import PersonalCredentials
from .files import FileStorage
from .live import LiveHouse
from .opening import OpenHome
from .own_keys import OwnProviderKeys


class House(Struct, frozen=True, kw_only=True):
    """What an Agent works with. All of it stays but `live.now`, which follows the settings."""

    opened: OpenHome
    bus: Bus
    storage: FileStorage
    inbox: Inbox
    commands: SlashCommands
    lanes: Lanes
    approvals: Approvals
    mcp_answers: McpAnswers
    memory: MemoryBook
    heartbeat: HeartbeatDesk
    voice: VoiceMessages
    sessions: Sessions
    deletions: Deletions
    budgets: Allotments
    erasures: Erasures
    folders: HomeFolders
    shown: Acknowledgements
    deeds: ScheduledDeeds  # runs commands that no model has asked for
    supervisor: Supervisor
    builder: Builder
    live: LiveHouse
    clock: Clock
    own_keys: OwnProviderKeys
    credentials: PersonalCredentials
    backups: Backups
    traits: Mapping[str, Traits]  # of every channel that is known here, by its name
    network: Callable[[], Http]  # to hosts that the owner has set
    configured: ConfiguredChannels | None = None  # the channels that the settings name, where they are opened
    hooks: Mapping[str, Sequence[Hook]] = {}  # what the platforms of channels call, by the channel's name

    @property
    def store(self) -> Store:
        return self.opened.store
