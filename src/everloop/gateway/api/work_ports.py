"""What the API needs of conversations, and of what runs by itself."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ...ports.conversation import Branch, Conversation, Deed, Deletion
from ...ports.remembering import OwnMemory
from ...ports.schedules import Asker, Schedule, ScheduleRow, ScheduleRun
from ...ports.skills import SkillInstaller
from ...ports.voice import PartAloud

if TYPE_CHECKING:
    from .mcp_ports import McpAnswering


class SessionFinder(Protocol):
    """Finding conversations and working out how to go on from them. Raises MailRefused."""

    async def find(self, id: str, owner: str, session: str = "") -> Conversation: ...

    async def go_to(self, conversation: Conversation, session: str, by: str) -> Deed: ...

    async def fork(self, conversation: Conversation, session: str, by: str, at: int | None = None) -> Branch: ...


class SessionDeletions(Protocol):
    async def delete(self, owner: str, conversation: Conversation) -> Deletion:
        """Delete one of the owner's conversations for good. Raises MailRefused while a turn runs in it."""
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


class ScheduleBook(Protocol):
    @property
    def desk(self) -> ScheduleMaker: ...

    async def act(self, asker: Asker, action: str, id: str, fields: Mapping[str, Any], key: str = "") -> str:
        """Do it, and say what came of it. Raises MailRefused."""
        ...


class HeartbeatKeeper(Protocol):
    """Somebody's heartbeat. Raises MailRefused."""

    async def shown(self, person: str) -> Any:
        """How it stands: `off` says why there is none, `row` what was seen, `checks` what nobody has allowed."""
        ...

    async def lines(self, person: str) -> list[str]: ...

    async def run(self, person: str) -> str: ...

    async def allow(self, asker: Asker) -> str: ...


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


class WorkDesks(Protocol):
    """What goes on in conversations and beside them."""

    @property
    def sessions(self) -> SessionFinder: ...

    @property
    def deletions(self) -> SessionDeletions: ...

    @property
    def schedules(self) -> ScheduleBook: ...

    @property
    def heartbeat(self) -> HeartbeatKeeper: ...

    @property
    def memory(self) -> OwnMemory: ...

    @property
    def skills(self) -> SkillInstaller: ...

    async def stop_task(self, thread: str, by: str) -> int:
        """End the work at a task, and all that works for it; how many were stopped."""
        ...

    @property
    def voice(self) -> SpeechHearer: ...

    @property
    def aloud(self) -> ReadsAloud: ...

    @property
    def mcp_answers(self) -> "McpAnswering": ...
