"""What the API needs of those who set a house up."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...core.people import Role
from ...core.personas import PersonaChoice
from ...ports.channel import Probed, Setup, SetupField
from ...ports.listening import ChannelRow
from ...readings.personas import Persona, Personas

if TYPE_CHECKING:
    from .mcp_ports import McpBook


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


class SettingsDesks(Protocol):
    """What a house is set to, and how that is changed."""

    @property
    def live_settings(self) -> ChangeableSettings: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that is set, with secrets left out."""
        ...

    @property
    def connector(self) -> Connector: ...

    @property
    def offers(self) -> OfferedModels: ...

    @property
    def personas(self) -> PersonaBook: ...

    @property
    def channels(self) -> ChannelBook: ...

    @property
    def mcp(self) -> "McpBook": ...
