"""Tasks that turns have handed on, each a conversation of its own, as rows."""

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


class TaskRow(Struct, frozen=True):
    """A task as it stands. `spawned_by` is the call that it works for, as thread:answer:place; `steps` are the model
    calls that it has made, `cost` what these have cost (None: a price is not known)."""

    thread: str
    owner: str
    spawned_by: str
    title: str
    stage: TaskStage
    created: float
    active: float  # when something last happened in it
    steps: int = 0
    cost: float | None = 0.0

    @property
    def parent(self) -> str:
        return self.spawned_by.partition(":")[0]

    @property
    def is_open(self) -> bool:
        return self.stage in OPEN_STAGES


class Tasks(Protocol):
    """Raises StoreError."""

    async def tasks(self, owner: str = "", under: str = "", id: str = "") -> list[TaskRow]:
        """In the order in which they were handed on: somebody's, or anyone's; of all that works for a thread; whose
        ids begin so."""

    async def open_tasks(self, owner: str) -> int:
        """How many of somebody's are not over."""

    async def stop_task(self, inbound: Inbound, thread: str) -> tuple[str, ...]:
        """Put a stop into the inbox of a thread and of all that works for it, in one transaction; once per event. Those
        that are stopped: whose work is not over."""
