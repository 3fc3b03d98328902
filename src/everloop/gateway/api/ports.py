"""What the page's API needs of the everloop it stands in front of, beside what every door does."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import Protocol

from ...core.people import Role
from ...ports import FileRecord, WorkspaceFiles
from ...ports.backup import BackupShown, BackupsStanding
from ...ports.doctor import Doctor
from ...ports.house_status import TellsStatus
from ...ports.importing import ImportStanding, ImportUpload, ImportWanted
from ...ports.log_lines import LogWatch
from ...readings.commands import SlashCommand
from ..ports import GatewayAgent, McpAgent, SignsLinks
from .people_ports import PeopleDesks
from .settings_ports import SettingsDesks
from .work_ports import WorkDesks


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


class FileDesks(Protocol):
    """What somebody keeps: files, and a workspace."""

    @property
    def largest_file(self) -> int: ...

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


class ApiAgent(GatewayAgent, SignsLinks, TellsStatus, PeopleDesks, SettingsDesks, WorkDesks, FileDesks, Protocol):
    """What the page's API needs beside."""

    @property
    def notice(self) -> str:
        """What a person should know about the model."""
        ...

    @property
    def missing(self) -> str:
        """Why nobody can answer, if that is so."""
        ...

    def commands_for(self, role: Role) -> list[SlashCommand]: ...

    @property
    def backups(self) -> BackupBook: ...

    @property
    def imports(self) -> Importer: ...

    @property
    def doctor(self) -> Doctor: ...

    @property
    def log(self) -> LogWatch: ...


class ServedAgent(ApiAgent, McpAgent, Protocol):
    """What every door together needs."""
