"""What the page's API needs of the everloop it stands in front of, beside what every door does."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...core.overrun import Per
from ...core.people import Role
from ...core.personas import PersonaChoice
from ...ports import FileRecord, WorkspaceFiles
from ...ports.backup import BackupShown, BackupsStanding
from ...ports.channel import Probed, Setup, SetupField
from ...ports.conversation import Branch, Conversation, Deed, Deletion
from ...ports.credential import CredentialRow, KeptCredential
from ...ports.directory import Person, StandingCode
from ...ports.doctor import Doctor
from ...ports.house_status import TellsStatus
from ...ports.importing import ImportStanding, ImportUpload, ImportWanted
from ...ports.listening import ChannelRow
from ...ports.log_lines import LogWatch
from ...ports.remembering import OwnMemory
from ...ports.schedules import Asker, Schedule, ScheduleRow, ScheduleRun
from ...ports.skills import SkillInstaller
from ...ports.voice import PartAloud
from ...readings.commands import SlashCommand
from ...readings.personas import Persona, Personas
from ..ports import GatewayAgent, McpAgent

if TYPE_CHECKING:
    from .mcp_ports import McpAnswering, McpBook


class Members(Protocol):
    """Who is known, and who may change that: `by` is the role of whoever asks. Raises MailRefused, StoreError."""

    async def everybody(self) -> list[Person]: ...

    async def waiting(self) -> list[StandingCode]: ...

    async def find(self, who: str) -> Person: ...

    async def add(self, name: str, role: Role, by: Role, account: str = "") -> Person: ...

    async def pair(self, code: str, role: Role, by: Role, name: str = "") -> Person: ...

    async def change(
        self, who: str, by: Role, *, name: str | None = None, role: Role | None = None, blocked: bool | None = None
    ) -> Person: ...

    async def invitable(self, who: str, by: Role) -> Person: ...

    async def link(self, who: str, account: str, by: Role) -> Person: ...

    async def unlink(self, account: str, by: Role, of: str = "") -> None: ...


class BudgetState(Protocol):
    """A limit in tokens and dollars, what was spent and is held of it, and when that begins anew."""

    @property
    def per(self) -> str: ...


class PeoplesBudgets(Protocol):
    """What people may spend; `by` is the role of whoever asks. Raises MailRefused, StoreError."""

    async def of(self, owner: str, role: Role) -> Sequence[BudgetState]: ...

    async def show(self, who: str) -> tuple[str, Sequence[BudgetState]]: ...

    async def limit(self, who: str, per: Per, by: Role, tokens: int | None, money: float | None) -> str: ...

    async def change(self, who: str, per: Per, by: Role, limit: None) -> str: ...

    async def begin_anew(self, who: str, per: Per, by: Role) -> str: ...

    def notes_on(self, money: float | None) -> list[str]:
        """What whoever limits money has to know."""
        ...


class OwnKeyKeeper(Protocol):
    """Keys of model providers that people have of their own. Raises EverloopError; no key is ever told."""

    async def keys(self, person: str) -> Sequence[Any]:
        """`provider`, `at`, and what the `problem` with it is."""
        ...

    def providers(self) -> list[str]:
        """For whom one may be given."""
        ...

    async def keep(self, person: str, provider: str, key: str) -> list[str]:
        """What is to be known about it."""
        ...

    async def forget(self, person: str, provider: str) -> None: ...


class CredentialKeeper(Protocol):
    """Credentials that people keep for their tools. Raises EverloopError; no value is ever told."""

    async def rows(self, person: str) -> Sequence[CredentialRow]: ...

    async def keep(self, person: str, name: str, kept: KeptCredential) -> CredentialRow: ...

    async def forget(self, person: str, name: str) -> None: ...


class PersonaBook(Protocol):
    """Who the agent is, and at which places. Raises MailRefused, SettingsError, ModelMissing, HomeError."""

    file_names: tuple[str, ...]

    async def all(self) -> Personas: ...

    async def tools(self) -> list[str]: ...

    def files(self, name: str) -> dict[str, str]: ...

    async def add(self, name: str, fields: Mapping[str, Any], files: Mapping[str, str]) -> Persona: ...

    async def edit(self, name: str, fields: Mapping[str, Any], files: Mapping[str, str]) -> Persona: ...

    async def remove(self, name: str) -> str: ...

    async def use(self, name: str, place: str) -> str: ...

    async def answering(self, thread: str, session: str, person: str, role: Role) -> PersonaChoice: ...


class AddedChannel(Protocol):
    """A channel that was set up."""

    @property
    def row(self) -> ChannelRow: ...

    @property
    def probed(self) -> Probed | None: ...


class ChannelBook(Protocol):
    """Channels, and how they are set up. Raises EverloopError with a way out, and StoreError; no secret is told."""

    async def is_there(self, name: str) -> bool: ...

    async def rows(self) -> Sequence[ChannelRow]: ...

    async def row(self, name: str) -> ChannelRow: ...

    def setup(self, name: str) -> Setup: ...

    def login_fields(self, name: str) -> Sequence[SetupField]: ...

    async def test(self, name: str) -> Probed | None: ...

    async def add(self, name: str, given: Mapping[str, Any], *, test: bool = True) -> AddedChannel: ...

    async def log_in(self, name: str, answers: Mapping[str, str]) -> AddedChannel: ...

    async def remove(self, name: str) -> list[str]: ...


class SessionFinder(Protocol):
    """Finding conversations and working out how to go on from them. Raises MailRefused."""

    async def find(self, id: str, owner: str, session: str = "") -> Conversation: ...

    async def go_to(self, conversation: Conversation, session: str, by: str) -> Deed: ...

    async def fork(self, conversation: Conversation, session: str, by: str, at: int | None = None) -> Branch: ...


class SessionDeletions(Protocol):
    async def delete(self, owner: str, conversation: Conversation) -> Deletion:
        """Delete one of the owner's conversations for good. Raises MailRefused while a turn runs in it."""
        ...


class PersonErasures(Protocol):
    """Raises MailRefused, StoreError, HomeError."""

    async def find(self, who: str, by: Role) -> Person:
        """Somebody who may be erased by someone of this role."""
        ...

    async def somebody(self, who: str) -> Person:
        """One who is known, or a stranger of whom something is kept under this id."""
        ...

    async def erase(self, person: Person) -> dict[str, int]:
        """Remove all that is theirs; what that was."""
        ...


class ChangeableSettings(Protocol):
    """The settings and keys of a house, as they can be changed while it is open."""

    async def look(self) -> Any:
        """`version`, `file`, `rows`, and what is `waiting` for the next start. Raises SettingsError."""
        ...

    def scopes_for(self, asked: Mapping[str, Any]) -> set[str]:
        """What a change needs beside `admin`. Raises SettingsError."""
        ...

    async def change(self, asked: Mapping[str, Any], version: str = "") -> Any:
        """As `look`, afterwards. Raises SettingsError, SettingsMoved, HomeError; then nothing has changed."""
        ...

    async def keys(self) -> Sequence[Any]: ...

    async def keep_key(self, name: str, key: str) -> list[str]:
        """What is to be known about it. Raises EverloopError."""
        ...

    async def forget_key(self, name: str) -> None: ...

    async def try_model(self, name: str) -> tuple[str, Sequence[Any]]:
        """Its name, and how it went. Raises ModelMissing."""
        ...


class EmbeddedDownload(Protocol):
    """How the weights of the model of this machine come here."""

    @property
    def state(self) -> Any:
        """`state`, `done` and `total` bytes, `what` is being done, the seconds `left`, and `why` it failed."""
        ...

    def start(self) -> None: ...

    async def leave(self) -> None:
        """What has come is kept."""
        ...


class Connector(Protocol):
    """Connecting a model. What it raises is an EverloopError with a way out."""

    @property
    def download(self) -> EmbeddedDownload | None:
        """None where there is no model of this machine."""
        ...

    @property
    def is_embedded(self) -> bool:
        """Whether it is the one of this machine that answers."""
        ...

    async def providers(self) -> Sequence[Any]: ...

    def changes(self, provider: str, address: str, model: str) -> dict[str, Any]:
        """The settings that connecting changes."""
        ...

    async def look(self, provider: str, address: str, key: str) -> Any:
        """Raises ProviderError where the host does."""
        ...

    async def connect(self, provider: str, address: str, key: str, model: str) -> Any: ...


class OfferedModels(Protocol):
    """The models that can be chosen."""

    def facts(self, name: str) -> Any:
        """What is known of a model or preset without asking anyone: `window`, `answer`, `input`, `output`, `local`."""
        ...

    def hosts(self) -> Sequence[Any]:
        """Hosts that can be asked for their models: `name`, and whether somebody has `configured` it."""
        ...

    async def of(self, name: str) -> Any:
        """What a host offers: its `models`, or a `state` in short and `why`. None if it is not one of the hosts."""
        ...


class ScheduleMaker(Protocol):
    """Makes and changes schedules for people. Raises MailRefused."""

    async def create(self, asker: Asker, fields: Mapping[str, Any], key: str = "") -> ScheduleRow: ...

    async def edit(self, asker: Asker, id: str, fields: Mapping[str, Any]) -> ScheduleRow: ...

    async def enable(self, asker: Asker, id: str, enabled: bool) -> ScheduleRow: ...

    async def remove(self, asker: Asker, id: str) -> Schedule: ...

    async def listed(self, asker: Asker) -> list[ScheduleRow]: ...

    async def find(self, asker: Asker, id: str) -> ScheduleRow: ...

    async def log(self, asker: Asker, id: str, limit: int = 20) -> list[ScheduleRun]: ...

    def next_times(self, row: ScheduleRow, count: int = 3) -> list[float]: ...

    async def monthly_cost(self, row: ScheduleRow) -> str: ...


class SpeechHearer(Protocol):
    """Who transcribes what people speak, at their expense."""

    async def longest(self) -> float:
        """Seconds of it; 0: nobody."""
        ...

    async def hear(self, data: bytes, author: str) -> str:
        """Raises MailRefused."""
        ...


class ReadsAloud(Protocol):
    """Who reads answers aloud, at the expense of who listens."""

    async def longest(self) -> int:
        """Characters of one; 0: nobody."""
        ...

    async def read(self, markdown: str, part: int, *, listener: str, thread: str) -> PartAloud | None:
        """None: it has fewer parts. Raises MailRefused."""
        ...


class BackupBook(Protocol):
    """The owner's backups. Raises BackupError, SettingsError, VaultLocked, MailRefused."""

    async def standing(self) -> BackupsStanding: ...

    async def create(self) -> BackupShown: ...

    async def schedule(self, every: str, keep: int) -> None: ...

    async def adopt(self) -> None: ...

    async def download(self, name: str) -> tuple[int, AsyncIterator[bytes]]:
        """How many bytes it has, and these."""
        ...


class Importer(Protocol):
    """Takes over what another agent or a service has kept for the owner. Raises MailRefused, NoRoom."""

    async def receive(self, pieces: AsyncIterator[bytes]) -> ImportUpload: ...

    def begin(self, wanted: ImportWanted) -> ImportStanding: ...

    def standing(self) -> ImportStanding: ...


class HeartbeatKeeper(Protocol):
    """Somebody's heartbeat. Raises MailRefused."""

    async def shown(self, person: str) -> Any:
        """How it stands: `off` says why there is none, `row` what was seen, `checks` what nobody has allowed."""
        ...

    async def lines(self, person: str) -> list[str]: ...

    async def run(self, person: str) -> str: ...

    async def allow(self, asker: Asker) -> str: ...


class ScheduleBook(Protocol):
    @property
    def desk(self) -> ScheduleMaker: ...

    async def act(self, asker: Asker, action: str, id: str, fields: Mapping[str, Any], key: str = "") -> str:
        """Do it, and say what came of it. Raises MailRefused."""
        ...


class ApiAgent(GatewayAgent, TellsStatus, Protocol):
    """What the page's API needs beside."""

    @property
    def notice(self) -> str:
        """What a person should know about the model."""
        ...

    @property
    def missing(self) -> str:
        """Why nobody can answer, if that is so."""
        ...

    async def stop_task(self, thread: str, by: str) -> int:
        """End the work at a task, and all that works for it; how many were stopped."""
        ...

    def commands_for(self, role: Role) -> list[SlashCommand]: ...

    @property
    def live_settings(self) -> ChangeableSettings: ...

    @property
    def connector(self) -> Connector: ...

    @property
    def offers(self) -> OfferedModels: ...

    @property
    def sessions(self) -> SessionFinder: ...

    @property
    def memory(self) -> OwnMemory: ...

    @property
    def largest_file(self) -> int: ...

    @property
    def link_seconds(self) -> int:
        """For how long a signed link to a file holds."""
        ...

    async def link_key(self) -> bytes | None:
        """By which it is signed. None where the vault is locked."""
        ...

    async def file_quota(self, owner: str) -> int:
        """0: no limit."""
        ...

    async def remove_file(self, owner: str, ref: str) -> bool:
        """Whether the owner had it."""
        ...

    async def keep_file(self, owner: str, pieces: AsyncIterable[bytes], name: str) -> FileRecord:
        """Keep a file that comes in piece by piece. Raises NoRoom."""
        ...

    def workspace(self, person: str) -> WorkspaceFiles:
        """Somebody's own, and nobody else's."""
        ...

    @property
    def members(self) -> Members: ...

    @property
    def budgets(self) -> PeoplesBudgets: ...

    @property
    def personas(self) -> PersonaBook: ...

    @property
    def skills(self) -> SkillInstaller: ...

    @property
    def schedules(self) -> ScheduleBook: ...

    @property
    def heartbeat(self) -> HeartbeatKeeper: ...

    @property
    def voice(self) -> SpeechHearer: ...

    @property
    def aloud(self) -> ReadsAloud: ...

    @property
    def backups(self) -> BackupBook: ...

    @property
    def imports(self) -> Importer: ...

    @property
    def channels(self) -> ChannelBook: ...

    @property
    def mcp(self) -> "McpBook": ...

    @property
    def mcp_answers(self) -> "McpAnswering": ...

    @property
    def own_keys(self) -> OwnKeyKeeper: ...

    @property
    def credentials(self) -> CredentialKeeper: ...

    @property
    def doctor(self) -> Doctor: ...

    @property
    def log(self) -> LogWatch: ...

    @property
    def deletions(self) -> SessionDeletions: ...

    @property
    def erasures(self) -> PersonErasures: ...

    def export(self, person: Person) -> AsyncGenerator[bytes]:
        """All that is theirs, as a zip file that is made while it is read."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that is set, with secrets left out."""
        ...


class ServedAgent(ApiAgent, McpAgent, Protocol):
    """What every door together needs."""
