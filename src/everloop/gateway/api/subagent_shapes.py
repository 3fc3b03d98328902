"""What the API takes and answers about sub-agents, and turns in the background."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from ...ports.tasks import TaskRow, TaskStage


class OfSubagent(Struct, frozen=True):
    id: str


class SubagentListing(Struct, frozen=True):
    """`session` is the id of the conversation that they work for; "": any of yours."""

    session: str = ""


class SubagentList(Struct, frozen=True):
    subagents: Sequence[TaskRow]


class BackgroundListing(Struct, frozen=True):
    """`session` is the id of the conversation that they work for; "": any of yours. The last `limit` of them."""

    session: str = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 200


class ShownTask(Struct, frozen=True):
    """A turn in the background, with its number in its chat, or what a sub-agent works at (0). `parent` is the
    conversation in front of it, or that it works for; `steps` and `cost` are its model calls, since it `began`."""

    id: str
    kind: Literal["turn", "agent"]
    number: int
    title: str
    stage: TaskStage
    steps: int
    cost: float | None
    began: float
    active: float
    parent: str

    @classmethod
    def of(cls, row: TaskRow) -> "ShownTask":
        return cls(
            id=row.thread,
            kind="turn" if row.number else "agent",
            number=row.number,
            title=row.title,
            stage=row.stage,
            steps=row.steps,
            cost=row.cost,
            began=row.created,
            active=row.active,
            parent=row.parent,
        )


class BackgroundList(Struct, frozen=True):
    """`open` are all of them that are not over."""

    tasks: Sequence[ShownTask]
    open: int


class SubagentsStopped(Struct, frozen=True):
    """How many: with those that worked for it."""

    stopped: int
