"""What is true of each kind of entry, told once: who says what in it, which files it tells of, whether it counts as a
message, what a branch makes of it, what is left of it when a person is erased. Searching, recalling, listing,
exporting, branching, erasing and the store's SQL ask here.

An entry of a new kind has a row in `KINDS` and a case in `spoken` and `blanked`; see docs/log.md.
"""

from collections.abc import Mapping
from typing import Literal, assert_never

from msgspec import Struct, structs

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
from ..core.message import Media, Message, Part, Text, enclosed, is_strange, said, text_of
from ..core.overrun import Overrun
from ..core.people import ERASED
from ..core.tool import FileChange, Risk, ToolCall
from ..core.wording import cut_short

Speaker = Literal["user", "assistant", "tool", "house"]
BLANK = "[erased]"  # in the place of what an erased person said


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


def blanked(entry: Entry) -> Entry:
    """An entry that says nothing any more, and means the same for where the conversation stands."""
    match entry:
        case UserSaid():
            parts, before = said(BLANK) if entry.parts else (), tuple(map(blank_message, entry.before))
            return structs.replace(entry, parts=parts, before=before, brought=None, speaker=None)
        case ModelCalled():
            return structs.replace(entry, tail="")
        case ModelSaid():
            calls = tuple(map(_blank_call, entry.calls))
            return structs.replace(entry, text=_blank(entry.text), calls=calls, reasoning="", opaque=())
        case ModelFailed() | GaveUp():
            return structs.replace(entry, text=_blank(entry.text), cut=_blank(entry.cut), reasoning="")
        case CallReturned():
            gone = {"file": "", "media": (), "changes": (), "made": ()}
            return structs.replace(entry, text=BLANK, origin=_blank(entry.origin), **gone)
        case Asked():
            overrun = Overrun((), BLANK, BLANK, entry.overrun.calls) if entry.overrun else None
            return structs.replace(entry, digest="", risk=Risk(entry.risk.level), grounds=(), told=(), overrun=overrun)
        case Stopped():
            return structs.replace(entry, text=_blank(entry.text), reasoning="")
        case Undoing():
            changes = tuple(FileChange(BLANK, "not kept", "gone") for _ in entry.changes)
            return structs.replace(entry, said=BLANK, changes=changes, lasting=())
        case TakenBack():
            return structs.replace(entry, left=_blank(entry.left))
        case AgentTold():
            return structs.replace(entry, text=BLANK, files=(), sender=ERASED)
        case Compacted():
            return structs.replace(entry, summary=_blank(entry.summary), facts=(), kept=())
        case CallStarted() | Answered() | ModelChosen() | PersonaChosen() | Resumed() | CompactionAsked() | Removed():
            return entry
        case _:
            assert_never(entry)


def _blank(text: str) -> str:
    return BLANK if text.strip() else text


def _blank_call(call: ToolCall) -> ToolCall:
    return structs.replace(call, args="{}")


def blank_message(message: Message) -> Message:
    """Its place alone."""
    parts = (Text(BLANK),) if message.parts else ()
    return Message(message.role, parts, tuple(map(_blank_call, message.calls)), message.answers)
