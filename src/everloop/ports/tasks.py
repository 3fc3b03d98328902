"""Tasks, each a conversation of its own, as rows: those that turns have handed on to sub-agents, and turns that people
have sent to the background of their chat."""

from typing import Literal, Protocol

from msgspec import Struct

from ..core.mail import Inbound
from ..core.task import Task

CHILD = "child"  # in the place of a channel, in the session keys of conversations that work for a call

# queued: nobody has begun with it; waiting: for a person's answer, or for a task of its own.
TaskStage = Literal["queued", "running", "waiting", "done", "failed", "stopped"]
OPEN_STAGES: tuple[TaskStage, ...] = ("queued", "running", "waiting")


def session_of(task: Task) -> str:
    """Where it is worked at."""
    return f"{CHILD}:{task.call}"


def in_background(front: str, number: int) -> str:
    """What the conversation of a background turn works for: the one in front of it, as no answer's call (those begin
    with the entry 1), with its number in that chat."""
    return f"{front}:0:{number}"


def background_number(spawned_by: str) -> int:
    """The number of a turn in the background; 0: it is none."""
    _, _, call = spawned_by.partition(":")
    return int(call.removeprefix("0:")) if call.startswith("0:") else 0


class TaskRow(Struct, frozen=True):
    """A task as it stands. `spawned_by` is the call that it works for, as thread:answer:place, or `in_background`;
    `steps` are the model calls that it has made, `cost` what these have cost (None: a price is not known)."""

    thread: str
    owner: str
    spawned_by: str
    title: str
    stage: TaskStage
    created: float  # of a turn in the background: when it began
    active: float  # when something last happened in it
    steps: int = 0
    cost: float | None = 0.0

    @property
    def parent(self) -> str:
        return self.spawned_by.partition(":")[0]

    @property
    def is_open(self) -> bool:
        return self.stage in OPEN_STAGES

    @property
    def number(self) -> int:
        """That of a turn in the background; 0: it was handed on to a sub-agent."""
        return background_number(self.spawned_by)


class Tasks(Protocol):
    """Raises StoreError."""

    async def tasks(self, owner: str = "", under: str = "", id: str = "") -> list[TaskRow]:
        """In the order in which they began: somebody's, or anyone's; of all that works for a thread; whose
        ids begin so."""

    async def open_tasks(self, owner: str) -> int:
        """How many of somebody's are not over."""

    async def stop_task(self, inbound: Inbound, thread: str) -> tuple[str, ...]:
        """Put a stop into the inbox of a thread and of all that works for it, in one transaction; once per event. Those
        that are stopped: whose work is not over."""
