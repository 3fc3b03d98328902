"""What is new in a conversation, as a model reads it that is to remember it: numbered lines, each with when and who.

What a person said in their own words stands in lines of its own, apart from what they quote, forward or send along, and
from what tools and strangers say. Which line is which is known here, from the log: nothing that stands in a line can
make it another's.
"""

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

from msgspec import Struct

from ..core.log import Compacted, Entry, ModelSaid, UserSaid
from ..core.message import Text, is_strange, text_of
from ..core.people import is_chat
from ..core.speakers import LONGEST_NAME, mark_of, unheaded
from ..core.thread import Thread
from ..ports.conversation import Written
from ..readings.compaction import shortened
from ..readings.spoken import KINDS, spoken

ROOM = 20_000  # characters of one excerpt
OWN, SAID, RESULT = 3000, 1500, 600  # characters that are shown: of a person's words, the agent's, anybody else's
TYPED = 40  # lines of a message that a person may have typed; what comes after them was hardly typed by hand
BEFORE = 6  # lines that an excerpt is understood by
BEFORE_CHARS = 2000
FORGET = "forget"  # the tool

_QUOTE = re.compile(r"\n\n\[a reply to this message: [^\]]*\]\s*\Z")
_FORWARDED = re.compile(r"(?m)^\[forwarded\b")
_MEMBERS = ("user", "admin", "owner")


class MaterialLine(Struct, frozen=True):
    """One thing that was said. `own` are the words of the `person` who said it themselves; "" for all else. `strange`:
    strangers' words may be in it."""

    seq: int
    at: float
    who: str
    text: str
    own: str = ""
    person: str = ""
    strange: bool = False
    tool: bool = False
    name: str = ""  # what they are called, where several speak

    def shown(self, number: int = 0) -> str:
        """What was said stands further in than who said it, so that no text can go on in another's name."""
        place = f"[{number}] " if number else ""
        head = f"{place}{datetime.fromtimestamp(self.at).astimezone():%Y-%m-%d %H:%M} {self.who}:"
        return "\n".join((head, *(f"    {line}" for line in unheaded(self.text).splitlines())))


class Excerpt(Struct, frozen=True):
    """The entries `after` … `upto` of a thread, of which all is about one principal. `marked`: strangers' words have
    been read in the conversation, in it or before it, so whoever reads it may have been fooled by them. `before` are
    lines that stand before it."""

    thread: str
    session: str
    owner: str  # whose conversation it is
    principal: str  # whose memory it belongs to
    after: int
    upto: int
    lines: tuple[MaterialLine, ...] = ()
    before: tuple[MaterialLine, ...] = ()
    marked: bool = False
    hides: tuple[int, ...] = ()  # entries of turns in which something was forgotten: they name it

    @property
    def at(self) -> float:
        return self.lines[-1].at if self.lines else 0.0

    @property
    def has_people(self) -> bool:
        return any(line.own for line in self.lines)

    def shown(self) -> str:
        parts = ["\n".join(line.shown(number) for number, line in enumerate(self.lines, 1))]
        if self.before:
            told = shortened("\n".join(line.shown() for line in self.before), BEFORE_CHARS)
            parts.insert(0, f"Said before, and remembered already:\n{told}\n\nWhat is new:")
        return "\n".join(parts)


def messages_in(written: Sequence[Written]) -> int:
    """How many messages stand there, as a list of conversations counts them."""
    return sum(_counts(each.entry) for each in written)


def has_people(written: Sequence[Written]) -> bool:
    """Whether a person has said something."""
    return any(isinstance(each.entry, UserSaid) and not each.entry.source and each.entry.parts for each in written)


def principal_in(written: Sequence[Written]) -> str:
    """Whose memory the first thing belongs to that somebody has said; "" where nobody has."""
    return next((_principal_of(each.entry) for each in written if isinstance(each.entry, UserSaid)), "")


def first_excerpt(
    thread: str,
    session: str,
    owner: str,
    written: Sequence[Written],
    after: int,
    room: int = ROOM,
    hidden: AbstractSet[int] = frozenset(),
) -> Excerpt:
    """The first part of what comes after an entry that fits into `room` characters and is one principal's. `written`
    begins with the entry from which the conversation can be read (1, or a compaction), and goes up to the last. What is
    `hidden` is not told again, nor are turns in which something was forgotten."""
    fold = Thread(thread, written[0].seq - 1)
    forgotten = _of_forgetting(written)
    lines: list[MaterialLine] = []
    before: list[MaterialLine] = []
    principal, upto, marked = "", after, False
    for each in written:
        fold.add(each.entry)
        told = [*_lines_of(each)] if each.seq not in hidden and each.seq not in forgotten else []
        now = _principal_of(each.entry) if isinstance(each.entry, UserSaid) else ""
        if each.seq <= after:
            if isinstance(each.entry, Compacted):
                now = each.entry.standing.principal or each.entry.standing.requester
            before = [] if now and principal not in ("", now) else before
            principal = now or principal
            before = [*before, *told][-BEFORE:]
            continue
        if lines and ((now and now != principal) or _size(lines) + _size(told) > room):
            break
        if now and now != principal:
            before, principal = [], now
        lines += told
        upto, marked = each.seq, fold.outside
    return Excerpt(
        thread,
        session,
        owner,
        principal or owner,
        after,
        upto,
        tuple(lines),
        tuple(before),
        marked or any(line.strange for line in (*before, *lines)),
        tuple(sorted(seq for seq in forgotten if after < seq <= upto)),
    )


def _of_forgetting(written: Sequence[Written]) -> set[int]:
    """The entries of turns in which something was forgotten."""
    found: set[int] = set()
    turn: list[int] = []
    for each in written:
        if isinstance(each.entry, UserSaid):
            turn = []
        turn.append(each.seq)
        if found.intersection(turn) or (
            isinstance(each.entry, ModelSaid) and any(call.name == FORGET for call in each.entry.calls)
        ):
            found.update(turn)
    return found


def own_words(entry: UserSaid) -> str:
    """What the author has said in their own words: not what they answer to, forward, quote or send along, nor what
    comes in somebody's name in whose memory they do not speak."""
    about = _principal_of(entry)
    if entry.source or (entry.brought is not None and entry.brought.outside):
        return ""
    if is_chat(about):
        if entry.speaker is None or entry.speaker.role not in _MEMBERS:
            return ""
    elif entry.author != about:
        return ""
    parts = (part.text for part in entry.parts if isinstance(part, Text) and not is_strange(part))
    text = _QUOTE.sub("", "\n".join(parts))
    if found := _FORWARDED.search(text):
        text = text[: found.start()]
    typed = [line for line in text.splitlines()[:TYPED] if not line.lstrip().startswith(">")]
    return "\n".join(typed).strip()


def _lines_of(each: Written) -> Iterator[MaterialLine]:
    entry = each.entry
    if isinstance(entry, UserSaid) and not entry.source:
        yield from _lines_of_person(each, entry)
        return
    said = spoken(entry)
    if said is None or not said.with_calls().strip():
        return
    if said.who == "tool":
        who = "the result of a tool" + (", written by strangers" if said.strange else "")
        yield MaterialLine(each.seq, each.at, who, shortened(said.text, RESULT), strange=said.strange, tool=True)
        return
    who = "everloop itself" if said.who == "house" else "the agent"
    text = shortened(said.with_calls("called "), SAID)
    yield MaterialLine(each.seq, each.at, who, text, strange=said.strange)


def _lines_of_person(each: Written, entry: UserSaid) -> Iterator[MaterialLine]:
    own, whole = own_words(entry), text_of(entry.parts).strip()
    who = _called(entry)
    if own:
        yield MaterialLine(each.seq, each.at, who, shortened(own, OWN), own, entry.author, name=_name(entry))
    if rest := whole.replace(own, "", 1).strip() if own else whole:
        who = f"with a message of {who}, not their own words"
        yield MaterialLine(each.seq, each.at, who, shortened(rest, RESULT), strange=True)


def _called(entry: UserSaid) -> str:
    if entry.speaker is None:
        return "the user"
    return f'"{_name(entry)}" ({entry.speaker.role}, #{mark_of(entry.author)})'


def _name(entry: UserSaid) -> str:
    name = unheaded(entry.speaker.name) if entry.speaker and is_chat(_principal_of(entry)) else ""
    seen = "".join(letter if letter.isprintable() else " " for letter in name)
    return " ".join(seen.split())[:LONGEST_NAME]


def _principal_of(entry: UserSaid) -> str:
    return entry.principal or entry.author


def _size(lines: Sequence[MaterialLine]) -> int:
    return sum(len(line.text) + 60 for line in lines)


def _counts(entry: Entry) -> bool:
    match KINDS[type(entry)].counted:
        case "always":
            return True
        case "with text":
            said = spoken(entry)
            return said is not None and bool(said.text)
    return False
