"""What becomes of a log that is not theirs when a person is erased, such as a group's: every entry keeps its place, and
what the person said is blank.

So is all that was said and done in the turns that they had begun, for an answer tells what it answers. A summary that
covers any of it goes as a whole, since nobody can say whose words it is made of. What others said stays, word for word.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import structs

from ..core import log
from ..core.exits import Exits
from ..core.log import (
    AgentTold,
    Asked,
    CallReturned,
    Compacted,
    Entry,
    Standing,
    Stopped,
    TakenBack,
    Undoing,
    UserSaid,
)
from ..core.mail import Address
from ..core.message import Message
from ..core.people import ERASED
from ..core.thread import Thread
from ..ports.conversation import Written
from .keys import is_of_two
from .spoken import blank_message, blanked

NO_SUMMARY = "[What was summarised here is gone: somebody who had spoken in it was erased.]"
NOT_RUN = "This was not run: whoever had asked for it was erased."


class Blanking:
    """Takes in a log from its beginning and gives it back without the words of these people. `touched` are the places
    that were blanked, `mails` the letters that were taken in there."""

    def __init__(self, people: Collection[str]) -> None:
        self._people = frozenset(people)
        self._before, self._after = Thread(), Thread()
        self.touched: set[int] = set()
        self.mails: set[int] = set()

    def add(self, entry: Entry) -> Entry:
        kept = self._kept(entry)
        if kept is not entry:
            self.touched.add(self._before.seq + 1)
        if kept is not entry and isinstance(entry, UserSaid | AgentTold | Undoing) and entry.mail:
            self.mails.add(entry.mail)
        self._before.add(entry)
        self._after.add(kept)
        named: Entry = unnamed(kept, self._people)
        return named

    @property
    def is_theirs(self) -> bool:
        """Whether a turn is open that one of them has begun."""
        return self._before.owes_reply and self._before.turn.requester in self._people

    def closing(self) -> list[Entry]:
        """What is to be written after the last entry. An open turn of theirs ends. Where the conversation rests, it
        goes on from a compaction that covers nothing: whoever remembers the words in a process reads it anew."""
        thread, found = self._after, list[Entry]()
        if self.is_theirs:
            open_calls = [CallReturned(thread.answer, place, NOT_RUN, "cancelled") for place in thread.open_calls]
            found = [*open_calls, Stopped(ERASED)]
            thread.extend(found)
        if thread.rests:
            standing = unnamed(structs.replace(_standing(thread.standing), began=-1), self._people)
            covers = (1, thread.covered) if thread.covered else (0, 0)
            kept = thread.transcript.messages[int(thread.condensed) :]
            found.append(Compacted(thread.summary, tuple(kept), standing, thread.facts, covers))
        return found

    def _kept(self, entry: Entry) -> Entry:
        if isinstance(entry, Compacted):
            return self._summary(entry) if self.touched else entry
        if isinstance(entry, Asked) and any(each.person in self._people for each in entry.told):
            entry = structs.replace(entry, told=tuple(each for each in entry.told if each.person not in self._people))
        return blanked(entry) if self._is_of_theirs(entry) else entry

    def _is_of_theirs(self, entry: Entry) -> bool:
        if isinstance(entry, UserSaid | AgentTold):
            return author_of(entry) in self._people
        if isinstance(entry, Undoing):
            return entry.by in self._people or entry.whose in self._people
        if isinstance(entry, TakenBack):
            undoing = self._before.undoing
            return undoing is not None and self._is_of_theirs(undoing.entry)
        return self._before.turn.requester in self._people

    def _summary(self, entry: Compacted) -> Compacted:
        standing = _standing(entry.standing) if entry.standing.requester in self._people else entry.standing
        summary = NO_SUMMARY if entry.summary or entry.facts else ""
        return structs.replace(entry, summary=summary, facts=(), standing=standing, kept=tuple(self._twins(entry.kept)))

    def _twins(self, kept: Sequence[Message]) -> Iterable[Message]:
        """What is kept word for word, as it stands in the blanked log; what is not found there is blank."""
        at, before, after = 0, self._before.transcript.messages, self._after.transcript.messages
        for message in kept:
            found = next((place for place in range(at, len(before)) if before[place] == message), -1)
            if found < 0 or found >= len(after):
                yield blank_message(message)
                continue
            at = found + 1
            yield after[found]


def author_of(entry: Entry) -> str:
    """Whose words it is, if they are somebody's: a person's own, or what the agent told elsewhere as they had it do."""
    if isinstance(entry, UserSaid):
        return entry.author
    return entry.by if isinstance(entry, AgentTold) else ""


def is_of_theirs_alone(session: str, written: Iterable[Written], people: Collection[str]) -> bool:
    """Whether it is a place of two, at which nobody else has ever spoken: through a bot it belongs to whose bot it is,
    and is the person's nevertheless."""
    authors = {each.entry.author for each in written if isinstance(each.entry, UserSaid)}
    return is_of_two(Address.parse(session)) and authors <= set(people)


def blanked_log(written: Iterable[Written], people: Collection[str]) -> tuple[dict[int, Entry], Blanking]:
    """The entries of a log that are not as they were, by their places."""
    blanking, changed = Blanking(people), dict[int, Entry]()
    for each in written:
        if (kept := blanking.add(each.entry)) != each.entry:
            changed[each.seq] = kept
    return changed, blanking


def names(body: str, people: Collection[str]) -> bool:
    """Whether one of these people is named in a stored text: as a whole value, and not somewhere in a sentence."""
    return any(_quoted(person) in body for person in people)


def unnamed(value: Any, people: Collection[str]) -> Any:
    """An entry, or a part of one, in which nobody of these is named any more."""
    body = msgspec.json.encode(value).decode()
    if not names(body, people):
        return value
    kind: Any = Standing if isinstance(value, Standing) else log.Entry
    return msgspec.json.decode(msgspec.json.encode(_without(msgspec.json.decode(body), people)), type=kind)


def _without(value: Any, people: Collection[str]) -> Any:
    match value:
        case str():
            return ERASED if value in people else value
        case list():
            return [_without(each, people) for each in value]
        case dict():
            return {_without(key, people): _without(each, people) for key, each in value.items()}
        case _:
            return value


def _quoted(person: str) -> str:
    return msgspec.json.encode(person).decode()


def _standing(standing: Standing) -> Standing:
    return structs.replace(standing, files=(), unknown=(), brought=None, exits=Exits())
