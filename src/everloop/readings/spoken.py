"""What is true of each kind of entry, told once: who says what in it, which files it tells of, whether it counts as a
message, what a branch makes of it. Searching, recalling, listing, exporting, branching and the store's SQL ask here.

An entry of a new kind has a row in `KINDS` and a case in `spoken`; see docs/log.md.
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
    PersonaChosen,
    Removed,
    Resumed,
    Stopped,
    TakenBack,
    Undoing,
    UserSaid,
)
from ..core.message import Media, Part, Text, enclosed, is_strange, text_of
from ..core.tool import ToolCall
from ..core.wording import cut_short

Speaker = Literal["user", "assistant", "tool", "house"]


class Kind(Struct, frozen=True):
    """Of all entries of a kind. `counted` is when one is a message of its conversation; None: nothing is said in it.

    `branched` is what it becomes in another thread that begins with it: the same, the same without its letter and at
    the new address, or nothing, for its own thread does or has done what it says.
    """

    counted: Literal["always", "with text", "never"] | None = None
    branched: Literal["same", "readdressed", "removed"] = "same"


KINDS: Mapping[type[Entry], Kind] = {
    UserSaid: Kind("always", "readdressed"),
    ModelCalled: Kind(),
    ModelSaid: Kind("with text"),
    ModelFailed: Kind(),
    CallStarted: Kind(),
    CallReturned: Kind("never"),
    Asked: Kind(),
    Answered: Kind(),
    ModelChosen: Kind(),
    PersonaChosen: Kind(),
    Stopped: Kind("never"),
    Resumed: Kind(),
    GaveUp: Kind("always"),
    Compacted: Kind(),
    CompactionAsked: Kind(branched="removed"),
    Undoing: Kind(branched="removed"),
    TakenBack: Kind(branched="removed"),
    AgentTold: Kind("always", "readdressed"),
    Removed: Kind(),
}


def name_of(kind: type[Entry]) -> str:
    """How an entry of this kind begins, as it is stored."""
    return str(kind.__struct_config__.tag)


# The kinds in which something is said, by their stored names.
COUNTED = {name_of(kind): traits.counted for kind, traits in KINDS.items() if traits.counted}


class Utterance(Struct, frozen=True, gc=False):
    """What is said in an entry. `author` is the person, if it is one. `origin` is whose words a result tells, if they
    are a stranger's; `strange` says that strangers' words may be in it, whoever says it. `beside` are the files that it
    tells of beside its parts, `owner` is whose folder those of its parts lie in, if not the author's."""

    who: Speaker
    parts: tuple[Part, ...]
    calls: tuple[ToolCall, ...] = ()
    author: str = ""
    origin: str = ""
    strange: bool = False
    beside: tuple[Media, ...] = ()
    owner: str = ""

    @property
    def text(self) -> str:
        return text_of(self.parts)

    @property
    def files(self) -> tuple[Media, ...]:
        """All files that it tells of: also those that came with what a person said."""
        parts = self.parts if self.who == "user" else ()
        return (*(media for part in parts if (media := enclosed(part, self.owner or self.author))), *self.beside)

    def with_calls(self, mark: str = "") -> str:
        """The text, and a line for each call."""
        return "\n".join((*filter(None, [self.text]), *(f"{mark}{call.name} {call.args}" for call in self.calls)))


def spoken(entry: Entry) -> Utterance | None:
    """None of an entry in which nothing is said to anyone."""
    match entry:
        case UserSaid(parts=parts, source=source) if source:
            return Utterance("house", parts, strange=any(map(is_strange, parts)))
        case UserSaid(parts=parts, author=author, brought=brought, principal=owner):
            strange = brought is not None and brought.outside
            return Utterance("user", parts, author=author, strange=strange, owner=owner)
        case ModelSaid(text=text, calls=calls):
            return Utterance("assistant", (Text(text),), calls)
        case CallReturned(text=text, origin=origin, file=file, media=media, made=made):
            whole = (Media(file, "text/plain", "result.txt"),) if file else ()
            files = (*made, *media, *whole)
            return Utterance("tool", (Text(text),), origin=origin, strange=bool(origin), beside=files)
        case GaveUp(text=text, cut=cut):
            return Utterance("house", (Text(cut_short(cut, text)),))
        case Stopped(text=text):
            return Utterance("assistant", (Text(text),)) if text else None
        case AgentTold(text=text, outside=outside, files=files):
            return Utterance("assistant", (Text(text),), strange=outside, beside=files)
        case (
            ModelCalled()
            | ModelFailed()
            | CallStarted()
            | Asked()
            | Answered()
            | ModelChosen()
            | PersonaChosen()
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
