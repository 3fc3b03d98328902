"""What is said: messages and the parts they are made of."""

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Raw, Struct

from .tool import ToolCall


class Text(Struct, frozen=True, gc=False, omit_defaults=True, tag="text"):
    """`origin` names the stranger whose words it holds; `public` are those that may be searched for: a
    page's, and those of a file that came with a message."""

    text: str
    origin: str = ""
    public: bool = False


class Media(Struct, frozen=True, gc=False, tag="media"):
    """An image or a document, kept in the files room and named here by its reference."""

    file: str
    mime: str
    name: str = ""
    owner: str = ""  # whose file it is


Part = Text | Media


class Made(Struct, frozen=True, gc=False):
    """A file that came of a turn, and the entry that tells of it: whoever may read that may have the file."""

    media: Media
    seq: int


class Opaque(Struct, frozen=True, gc=False):
    """A block that only its provider can read (signed thinking and the like), kept exactly as it came."""

    dialect: str
    block: Raw


class Message(Struct, frozen=True, gc=False, omit_defaults=True):
    """One message of a conversation as a model is shown it."""

    role: Literal["user", "assistant", "tool"]
    parts: tuple[Part, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    answers: str = ""  # on a tool message: the provider's id of the call it answers
    reasoning: str = ""
    opaque: tuple[Opaque, ...] = ()

    @property
    def text(self) -> str:
        return text_of(self.parts)


def text_of(parts: tuple[Part, ...]) -> str:
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return "\n".join(part.text if isinstance(part, Text) else f"[{part.name or part.mime}]" for part in parts)


# How the text of a file begins that came with a message: its name, and what read_file reads it by.
# Bounded, for a stranger may have made the text to be slow to search.
_ENCLOSED = re.compile(r"\[([^\n]{1,1000}), kept as (file:[0-9a-f]{12})[^\n]{0,200}\](?:\n|$)")


def enclosed(part: Part, owner: str = "") -> Media | None:
    """The file that came with a message, if the part is one and not what was said; of a text the kind is left open."""
    if isinstance(part, Media):
        return part
    found = _ENCLOSED.match(part.text)
    return Media(found[2], "", found[1], owner) if found else None


def said(text: str, origin: str = "", public: bool = False) -> tuple[Part, ...]:
    return (Text(text, origin, public),)


def is_strange(part: Part) -> bool:
    """Whether a part of a message is not what somebody said, but what a stranger may have made: a file that came with
    it. Older logs know it by how its text begins."""
    return isinstance(part, Media) or bool(part.origin) or enclosed(part) is not None


def last_said(messages: Sequence[Message]) -> int:
    """The place of the last that somebody has said; -1 if nobody has."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role == "user":
            return at
    return -1


def said_in_turn(messages: Sequence[Message], began: int) -> list[int]:
    """The places of what people have said in the turn that runs."""
    return [at for at in range(began, len(messages)) if messages[at].role == "user"] if began >= 0 else []
