"""The calls of a log, each with whether it has begun and what came of it."""

from collections.abc import Sequence

from msgspec import Struct

from ..core.log import CallReturned, CallStarted, Entry, ModelSaid
from ..core.tool import ToolCall


class CallRecord(Struct):
    """A call by its answer and its place therein. `call` is None when the answer is not among the entries; `started` is
    where it was begun, the last time (0: it was not), `returned` what came of it."""

    answer: int
    place: int
    call: ToolCall | None = None
    started: int = 0
    returned: CallReturned | None = None


def calls_in(first: int, entries: Sequence[Entry]) -> list[CallRecord]:
    """In the order of the answers, and in these of their places; `first` is the seq of the first entry."""
    found: dict[tuple[int, int], CallRecord] = {}
    for seq, entry in enumerate(entries, first):
        if isinstance(entry, ModelSaid):
            found |= {(seq, place): CallRecord(seq, place, call) for place, call in enumerate(entry.calls)}
        elif isinstance(entry, CallStarted | CallReturned):
            at = entry.answer, entry.place
            record = found.setdefault(at, CallRecord(*at))
            if isinstance(entry, CallReturned):
                record.returned = entry
            else:
                record.started = seq
    return list(found.values())
