"""`/tasks` and `/kill`: what sub-agents work at for a conversation, what one has done, and ending it."""

from typing import Protocol

from msgspec import structs

from ..core.mail import Inbound, Said, Stop
from ..ports import Archive, Clock, Log
from ..ports.tasks import TaskRow, Tasks
from ..readings.commands import split
from ..readings.task_lines import line_of, numbered, transcript
from .typed_command import CommandEffect, TypedCommand

LISTED = 20
MOST = 6000  # characters of what one has done
NONE = "Nobody works at a task for this conversation, and nobody has."
HOW = "/tasks show N tells what one has done, /kill N ends it, /stop ends all of them and what runs here."


class TaskCommandStore(Tasks, Log, Archive, Protocol):
    """Tasks, and what was said in them."""


class TaskCommands:
    def __init__(self, store: TaskCommandStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        answer = self.tell if typed.name == "/tasks" else self.stop
        reply, stopped = await answer(typed.rest, typed.inbound, typed.letter)
        return CommandEffect(typed.inbound, "none", reply, stopped=stopped)

    async def tell(self, rest: str, inbound: Inbound, letter: Said) -> tuple[str, tuple[str, ...]]:
        """What is said to `/tasks …`, and the threads that have been stopped."""
        word, number = split(rest)
        if word == "stop":
            return await self.stop(number, inbound, letter)
        tasks = numbered(await self._tasks(inbound))
        if word == "show":
            task = _named(tasks, number)
            return (await self._shown(int(number), task), ()) if task else (_wrong(tasks, number), ())
        if word:
            return f"/tasks alone lists them. {HOW}", ()
        if not tasks:
            return NONE, ()
        now = self._clock.now()
        lines = [line_of(each, task, now) for each, task in tasks.items()]
        left = [f"… {len(lines) - LISTED} before these"] if len(lines) > LISTED else []
        return "\n".join((*left, *lines[-LISTED:], HOW)), ()

    async def stop(self, number: str, inbound: Inbound, letter: Said) -> tuple[str, tuple[str, ...]]:
        tasks = numbered(await self._tasks(inbound))
        if (task := _named(tasks, number)) is None:
            return _wrong(tasks, number), ()
        stop = structs.replace(inbound, event=f"{inbound.event}/kill", letter=Stop(letter.author))
        stopped = await self._store.stop_task(stop, task.thread)
        if not stopped:
            return f"Task {number} is over already.", ()
        more = f", and {len(stopped) - 1} that worked for it" if len(stopped) > 1 else ""
        return f"⏹ Task {number} is stopped{more}.", stopped

    async def _tasks(self, inbound: Inbound) -> list[TaskRow]:
        row = await self._store.session(str(inbound.address))
        return await self._store.tasks(row.owner, under=row.id) if row else []

    async def _shown(self, number: int, task: TaskRow) -> str:
        log = await self._store.history(task.thread)
        return f"{line_of(number, task, self._clock.now())}\n{transcript(task, log, MOST)}".strip()


def _named(tasks: dict[int, TaskRow], number: str) -> TaskRow | None:
    return tasks.get(int(number)) if number.isdecimal() and len(number) < 10 else None


def _wrong(tasks: dict[int, TaskRow], number: str) -> str:
    if not tasks:
        return NONE
    if not number:
        return f"Say which: they have the numbers 1 to {len(tasks)}. /tasks lists them."
    return f"There is no task {number[:20]!r} here; they have the numbers 1 to {len(tasks)}. /tasks lists them."
