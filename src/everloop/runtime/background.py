"""`/bg` and `/fg`: a turn goes on in the background of its chat, and comes back.

A session points at one conversation. To send a turn to the background is to move that pointer to a branch from before
the turn: what runs is not touched, so that no call is made twice and nothing that was said is lost. To take it back is
to move the pointer to it. Both are one transaction of the store, which gives the task its number.
"""

from collections.abc import Callable
from typing import Literal, Protocol

from msgspec import structs

from ..core.decide import APPROVER
from ..core.mail import Inbound, Said
from ..core.message import enclosed, said
from ..core.people import Role
from ..errors import MailRefused
from ..ports import Archive
from ..ports.conversation import BackgroundDeed, BeginInBackground, BringToFront, SendToBackground
from ..ports.rows import COUNT, ThreadRow
from ..ports.tasks import TaskRow, Tasks
from ..readings.task_lines import numbered
from .children import TaskLimits
from .reports import title_of
from .sessions import Sessions
from .typed_command import CommandEffect, TypedCommand

NOTHING = "Nothing runs here. /bg TEXT begins with something in the background; /tasks shows what there is."
OVER = "It has just ended, so nothing goes on in the background."
SENT = (
    f"This goes on in the background as task {COUNT}; you are told here when it is done. Go on talking. "
    "/tasks shows it, /fg takes it back, /kill ends it."
)

BEGUN = f"Task {COUNT} has begun in the background; you are told here when it is done. /tasks shows it, /kill ends it."
NONE = "Nothing of this chat is in the background. /bg sends there what runs here; /tasks shows what there is."
ELSEWHERE = "It is not in the background any more. /tasks shows what is."

Outcome = tuple[BackgroundDeed | Literal["none"], str, str]  # what is to be done, what is said, and said otherwise


class BackgroundStore(Archive, Tasks, Protocol):
    """Conversations, and the tasks of each."""


class BackgroundCommands:
    def __init__(self, store: BackgroundStore, sessions: Sessions, limits: Callable[[], TaskLimits]) -> None:
        self._store = store
        self._sessions = sessions
        self._limits = limits

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        act = self.send if typed.name == "/bg" else self.bring
        return CommandEffect(typed.inbound, *await act(typed.rest, typed.inbound, typed.letter, typed.role))

    async def send(self, text: str, inbound: Inbound, letter: Said, role: Role) -> Outcome:
        """What `/bg` comes to: with a text a turn begins there, else the one that runs here goes on there."""
        row = await self._store.session(str(inbound.address))
        try:
            await self._check_room(inbound.owner)
            if text:
                return await self._begin(text, inbound, letter, row), BEGUN, ELSEWHERE
            return await self._send(row, letter.author, role), SENT, OVER
        except MailRefused as error:
            return "none", str(error), ""

    async def bring(self, number: str, inbound: Inbound, letter: Said, role: Role) -> Outcome:
        """What `/fg` comes to."""
        row = await self._store.session(str(inbound.address))
        try:
            if row is None:
                raise MailRefused(NONE)
            return await self._bring(number.removeprefix("#"), row, letter.author, role)
        except MailRefused as error:
            return "none", str(error), ""

    async def _check_room(self, owner: str) -> None:
        most = self._limits().open
        if await self._store.open_tasks(owner) >= most:
            raise MailRefused(f"{most} tasks are open already, as many as may be. /tasks shows them, /kill N ends one.")

    async def _send(self, row: ThreadRow | None, by: str, role: Role) -> BackgroundDeed:
        running = await self._sessions.running(row) if row else None
        if row is None or running is None:
            raise MailRefused(NOTHING)
        if by != running.requester and role < APPROVER:
            raise MailRefused(f"This is for {running.requester} to send to the background, who has asked for it.")
        return SendToBackground(running.turn, await self._sessions.before(row, running, by))

    async def _begin(self, text: str, inbound: Inbound, letter: Said, row: ThreadRow | None) -> BackgroundDeed:
        """In a branch of what has been said here, without what runs just now."""
        files = tuple(part for part in letter.parts if enclosed(part))
        words = structs.replace(letter, parts=(*said(text), *files), literal=True, due=0.0)
        running = await self._sessions.running(row) if row else None
        branch = await self._sessions.before(row, running, letter.author) if row else self._sessions.empty()
        branch = structs.replace(branch, title=title_of(text), stay=True, letter=words)
        return BeginInBackground(branch, f"{inbound.event}/bg")

    async def _bring(self, number: str, row: ThreadRow, by: str, role: Role) -> Outcome:
        task = _chosen(numbered(await self._store.tasks(row.owner, under=row.id)), number)
        running = await self._sessions.running(row)
        if running and by != running.requester and role < APPROVER:
            raise MailRefused(f"What runs here is {running.requester}'s, so it stays here until it is over.")
        goes_on = "It still runs." if task.is_open else "It is over; go on with it as you like."
        told = f"Here we go on with task {task.number}, “{task.title}”. {goes_on}"
        if running:
            told += " What ran here goes on in the background: /tasks shows it."
        elif row.head:
            told += f" Back to what was here: /session resume {row.id[:8]}"
        return BringToFront(task.thread, running.turn if running else None), told, ELSEWHERE


def _chosen(tasks: dict[int, TaskRow], number: str) -> TaskRow:
    """Raises MailRefused."""
    behind = {each: task for each, task in tasks.items() if task.number}
    if not number:
        if not behind:
            raise MailRefused(NONE)
        return max(behind.values(), key=lambda task: (task.is_open, task.number))
    wanted = int(number) if number.isdecimal() and len(number) < 10 else 0
    if wanted in tasks and wanted not in behind:
        raise MailRefused(f"Task {wanted} is a sub-agent's, who works alone. /tasks show {wanted} tells what it does.")
    if wanted not in behind:
        raise MailRefused(
            f"There is no task {number[:20]!r} in the background of this chat. /tasks shows what there is."
        )
    return behind[wanted]
