"""What a client is given of a log: in frames that are not too large, and remembered, so that it is told once."""

from typing import Any

import msgspec
from msgspec import Struct

from ...ports.events import AnswerBegan, AnswerEnded, AnswerPiece, Event, PermissionAsked, TurnEnded
from .frames import Where, frame

PORTION = 1_000_000  # bytes of a history_result, unless one entry alone has more


class Portion(Struct):
    """Entries that go into one frame, and about how many bytes they are."""

    entries: list[dict[str, Any]]
    size: int = 200


def portions(entries: list[dict[str, Any]]) -> list[Portion]:
    """The same in their order, in parts that are not too large; there is one, if an empty one."""
    parts = [Portion([])]
    for entry in entries:
        length = len(msgspec.json.encode(entry))
        if parts[-1].entries and parts[-1].size + length > PORTION:
            parts.append(Portion([]))
        parts[-1].entries.append(entry)
        parts[-1].size += length
    return parts


def history_frame(where: Where, part: Portion, *, more: bool) -> dict[str, Any]:
    return frame("history_result", where, entries=part.entries, more=more)


class ReadSoFar(Struct, frozen=True):
    """What a client was given of a thread's log. Events are told later than they are committed: one that comes after
    its entry was read has nothing to say any more."""

    head: int
    answered: int  # where the last answer is
    approvals: frozenset[str]

    def tells(self, event: Event) -> bool:
        if isinstance(event, AnswerPiece):
            return event.seq < self.answered
        if isinstance(event, AnswerBegan | AnswerEnded):
            return event.message < self.answered
        if isinstance(event, PermissionAsked):
            return all(each.id in self.approvals for each in event.approvals)
        return event.seq <= self.head if isinstance(event, TurnEnded) else event.seq < self.head
