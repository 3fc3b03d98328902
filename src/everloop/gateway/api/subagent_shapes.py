"""What the API takes and answers about sub-agents."""

from collections.abc import Sequence

from msgspec import Struct

from ...ports.tasks import TaskRow


class OfSubagent(Struct, frozen=True):
    id: str


class SubagentListing(Struct, frozen=True):
    """`session` is the id of the conversation that they work for; "": any of yours."""

    session: str = ""


class SubagentList(Struct, frozen=True):
    subagents: Sequence[TaskRow]


class SubagentsStopped(Struct, frozen=True):
    """How many: with those that worked for it."""

    stopped: int
