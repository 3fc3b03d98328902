"""Who says what in an entry, told once: for searching, recalling, listing, exporting, and for counting messages.

An entry of a new kind is decided on in `spoken`, and has a row in `COUNTED` if anything is said in it.
"""

from collections.abc import Mapping
from typing import Literal, assert_never

from msgspec import Struct

from ..core.log import (
    AgentTold,
    Answered,
    Asked,
    CallReturned,
    CallStarted,
    Compacted,
    CompactionAsked,
    Entry,
    GaveUp,
    ModelCalled,
    ModelChosen,
    ModelFailed,
    ModelSaid,
    Removed,
    Resumed,
    Stopped,
    TakenBack,
    Undoing,
    UserSaid,
)
from ..core.message import Part, Text, text_of
from ..core.tool import ToolCall

Speaker = Literal["user", "assistant", "tool", "house"]

# The kinds of entries in which something is said, and when one counts as a message of its conversation.
COUNTED: Mapping[str, Literal["always", "with text", "never"]] = {
    "user_said": "always",
    "model_said": "with text",
    "call_returned": "never",
    "gave_up": "always",
    "agent_told": "always",
}


class Utterance(Struct, frozen=True, gc=False):
    """What is said in an entry. `author` is the person, if it is one. `origin` is whose words a result tells, if they
    are a stranger's; `strange` says that strangers' words may be in it, whoever says it."""

    who: Speaker
    parts: tuple[Part, ...]
    calls: tuple[ToolCall, ...] = ()
    author: str = ""
    origin: str = ""
    strange: bool = False

    @property
    def text(self) -> str:
        return text_of(self.parts)

    def with_calls(self, mark: str = "") -> str:
        """The text, and a line for each call."""
        return "\n".join((*filter(None, [self.text]), *(f"{mark}{call.name} {call.args}" for call in self.calls)))


def spoken(entry: Entry) -> Utterance | None:
    """None of an entry in which nothing is said to anyone."""
    match entry:
        case UserSaid(parts=parts, author=author, brought=brought):
            return Utterance("user", parts, author=author, strange=brought is not None and brought.outside)
        case ModelSaid(text=text, calls=calls):
            return Utterance("assistant", (Text(text),), calls)
        case CallReturned(text=text, origin=origin):
            return Utterance("tool", (Text(text),), origin=origin, strange=bool(origin))
        case GaveUp(text=text):
            return Utterance("house", (Text(text),))
        case AgentTold(text=text, outside=outside):
            return Utterance("assistant", (Text(text),), strange=outside)
        case (
            ModelCalled()
            | ModelFailed()
            | CallStarted()
            | Asked()
            | Answered()
            | ModelChosen()
            | Stopped()
            | Resumed()
            | Compacted()
            | CompactionAsked()
            | Undoing()
            | TakenBack()
            | Removed()
        ):
            return None
        case _:
            assert_never(entry)
