"""What an event of a turn means to whoever looks on, at whichever front: one reading for the plain chat and the drawn
one, which show it each in its way."""

from typing import assert_never

from msgspec import Struct

from ..core.thread import STOPPED
from ..ports.events import (
    AnswerBegan,
    AnswerEnded,
    AnswerGiven,
    AnswerPiece,
    CallMeasured,
    CommandDone,
    ConversationDeleted,
    Event,
    HeartbeatTicked,
    LetterTaken,
    OutcomeUnknown,
    PermissionAsked,
    ScheduleFired,
    SubagentCompleted,
    SubagentProgress,
    SubagentSpawned,
    SummaryBegan,
    SummaryWritten,
    TitleGiven,
    ToolCalled,
    ToolOutput,
    ToolReturned,
    TurnBegan,
    TurnEnded,
    TurnMoved,
    Warned,
)
from ..readings.visible import in_one_line


class Noted(Struct, frozen=True):
    """A line beside the answer."""

    text: str


class Doing(Struct, frozen=True):
    """What goes on, until something else does."""

    text: str


Piecemeal = AnswerPiece | AnswerBegan | AnswerEnded | ToolCalled | ToolOutput | ToolReturned | SubagentProgress


def read_event(event: Event) -> Piecemeal | Noted | Doing | None:
    """Itself where a front shows it in a way of its own; None: there is nothing to be seen."""
    match event:
        case AnswerPiece() | AnswerBegan() | AnswerEnded():
            return event
        case ToolCalled() | ToolOutput() | ToolReturned() | SubagentProgress():
            return event
        case SummaryBegan():
            return Doing("summarising what was said before")
        case SummaryWritten(before=before, after=after):
            return Noted(f"(earlier parts are now a summary: about {after:,} tokens instead of {before:,})")
        case SubagentSpawned(title=title):
            return Noted(f"(a task is under way: {in_one_line(title)})")
        case SubagentCompleted(reason=reason):
            return Noted(f"(a task is over{f': {in_one_line(reason)}' if reason else ''})")
        case Warned(reason=reason, text=text):
            return Noted(f"({text})") if reason in ("window", "spent") else None  # others are told as the turn's end
        case LetterTaken() | TurnBegan() | CallMeasured() | CommandDone() | TitleGiven() | ConversationDeleted():
            return None
        case TurnMoved() | ScheduleFired() | HeartbeatTicked():
            return None  # what it tells is shown where it is told
        case PermissionAsked() | OutcomeUnknown() | TurnEnded() | AnswerGiven():
            return None  # whoever has asked shows these
        case _:
            assert_never(event)


def left_of_stop(result: str) -> str:
    """What the result of a call that was stopped tells beside that."""
    return result.removeprefix(STOPPED).removeprefix("; ")
