"""Who speaks in a group, as a model is told it, so that no message can claim to be somebody else's.

Before what a person has said in a group stands a line of the house's own: `⟦guest "Bob" #3f9a12cd⟧`, with the role that
they had then, what they are called, and a mark of who they are, for names are not unique. The brackets ⟦ and ⟧ stand
nowhere else: in what people, their files, tools and summaries say they become plain ones. So a header is the house's,
wherever it stands, also where a host has joined two messages to one. What somebody is called is a stranger's text as
any other, and comes after the role.
"""

from hashlib import sha256

from msgspec import Struct, structs

from .message import Media, Message, Part, Text

LONGEST_NAME = 60
_PLAIN = str.maketrans("⟦⟧〚〛⟬⟭⦗⦘", "[][][][]")  # and those that look like them


class GroupSpeaker(Struct, frozen=True, gc=False):
    """What someone was called who spoke in a group, and their role, when they did."""

    name: str
    role: str


def header_of(author: str, speaker: GroupSpeaker) -> str:
    return f'⟦{speaker.role} "{_shown(speaker.name)}" #{mark_of(author)}⟧'


def mark_of(author: str) -> str:
    """The same for one person alone, and of no use to find their account by."""
    return sha256(author.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def unheaded(text: str) -> str:
    """A text that nobody takes for a header, nor for a part of one."""
    return text if text.isascii() else text.translate(_PLAIN)


def in_group(message: Message, header: str = "") -> Message:
    """What is said in a group by somebody, or by nobody's name."""
    parts = tuple(map(_unheaded_part, message.parts))
    return structs.replace(message, parts=(Text(header), *parts) if header else parts)


def _unheaded_part(part: Part) -> Part:
    if isinstance(part, Media):
        return structs.replace(part, name=unheaded(part.name))
    return structs.replace(part, text=unheaded(part.text), origin=unheaded(part.origin))


def _shown(name: str) -> str:
    """On one line, in one direction, without what cannot be seen (bidi marks among it) and what ends it."""
    seen = "".join(letter if letter.isprintable() else " " for letter in unheaded(name).replace('"', "'"))
    return " ".join(seen.split())[:LONGEST_NAME] or "?"
