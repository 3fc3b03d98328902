"""What a turn has done to files and to the rest of the world."""

from collections.abc import Mapping, Sequence

from ..core.log import CallReturned, Entry
from ..core.tool import Effect, FileChange, ToolCall, ToolSpec
from .calls import calls_in

SHOWN = 100  # characters of a call that cannot be undone
MANY = 20


def changes_of(entries: Sequence[Entry]) -> tuple[FileChange, ...]:
    """What these entries tell of files, in the order in which it is taken back: the latest change first."""
    changes = [change for entry in entries if isinstance(entry, CallReturned) for change in entry.changes]
    return tuple(reversed(changes))


def lasting_in(first: int, entries: Sequence[Entry], tools: Mapping[str, ToolSpec]) -> tuple[str, ...]:
    """The calls that have started, may have done something, and left nothing by which it could be taken back."""
    found: list[str] = []
    for record in calls_in(first, entries):
        call, result = record.call, record.returned
        if call and record.started and result and not result.changes and _lasts(result, tools.get(call.name)):
            found.append(_shown(call))
    return tuple(found if len(found) <= MANY else [*found[:MANY], f"and {len(found) - MANY} more"])


def _lasts(result: CallReturned, tool: ToolSpec | None) -> bool:
    if tool is None:
        return True
    told = tool.undoable and result.outcome in ("done", "failed")  # of any other nobody knows what it did
    return tool.effect is not Effect.READ and not told


def _shown(call: ToolCall) -> str:
    text = f"{call.name} {call.args}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
