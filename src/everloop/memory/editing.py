"""What becomes of facts when a person changes MEMORY.md: each line that is gone ends its fact, each new one is a fact.

A line that comes back is the fact that it was. All this is thought out from two texts and the facts that there are.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct, structs

from ..ports.memory import Fact, FactEnd, FactSource, MemoryVersion
from .forgetting import WHY as FORGOTTEN
from .lines import Line, changed_lines, lines_of, one_line

BY_HAND, EDITED, RESTORED, AGAIN = "edited by hand", "edited", "version {} again", " again"
NO_HEADING = "Memory"
REWORDED = 50  # lines at once
ALIKE = 0.6  # from which on a line is taken for another wording of one that is gone


def is_by_person(made: MemoryVersion) -> bool:
    """Whether somebody has changed the memory themselves, and nobody learnt something."""
    return made.why in (BY_HAND, EDITED, FORGOTTEN) or made.why.endswith(AGAIN)


class Followed(Struct, frozen=True):
    """What is to be changed of the facts."""

    facts: tuple[Fact, ...] = ()
    ended: tuple[FactEnd, ...] = ()


def followed(
    before: str, after: str, known: Sequence[Fact], *, person: str, now: float, new_id: Callable[[], str]
) -> Followed:
    """`known` are all facts, also those that are true no longer; `person` has written it ("": nobody knows who)."""
    gone, come = changed_lines(before, after)
    standing = {fact.text: fact for fact in reversed(known) if fact.topic and not fact.until}
    said = _said(known)
    new: dict[str, Fact] = {}
    again: list[FactEnd] = []
    replacing: dict[str, str] = {}  # the fact that a line is now, by what it said
    for line in come:
        if not (text := one_line(line.text)) or text in new:
            continue
        found = said.get(text)
        if found is None:
            new[text] = _fact(line, text, new_id(), person, now)
        elif found.until:
            again.append(FactEnd(found.id, 0.0))
        elif not found.topic:
            new[text] = structs.replace(found, topic=_topic(line))
        if old := _reworded(text, line, gone, come):
            replacing.setdefault(old, found.id if found else new[text].id)
    told = {one_line(line.text) for line in lines_of(after)}
    ended = [
        FactEnd(standing[text].id, now, replacing.get(text, ""))
        for text in dict.fromkeys(one_line(line.text) for line in gone)
        if text in standing and text not in told
    ]
    return Followed((*new.values(), *_moved(after, standing, {end.id for end in ended})), (*ended, *again))


def _said(known: Sequence[Fact]) -> dict[str, Fact]:
    """The fact that says something, rather one that is true; what strangers said is not what a person writes."""
    ours = [fact for fact in known if not fact.marked]
    return {fact.text: fact for fact in sorted(ours, key=lambda fact: fact.until == 0)}


def _fact(line: Line, text: str, id: str, person: str, now: float) -> Fact:
    return Fact(id, text, FactSource(person=person, at=now), _topic(line))


def _topic(line: Line) -> str:
    return line.topic or NO_HEADING


def _moved(after: str, standing: dict[str, Fact], ended: set[str]) -> list[Fact]:
    """Facts that stand under another heading now."""
    topics = {one_line(line.text): _topic(line) for line in reversed(lines_of(after))}
    return [
        structs.replace(fact, topic=topics[text])
        for text, fact in standing.items()
        if text in topics and topics[text] != fact.topic and fact.id not in ended
    ]


def _reworded(text: str, line: Line, gone: Sequence[Line], come: Sequence[Line]) -> str:
    """What a line said before, where it is likely the same one: it stood under the same heading, and is alike. Whoever
    writes much anew rewords nothing."""
    if not gone or max(len(gone), len(come)) > REWORDED:
        return ""
    from difflib import SequenceMatcher

    old = [one_line(each.text) for each in gone if each.topic == line.topic]
    likely = [(SequenceMatcher(None, each, text).ratio(), each) for each in old]
    ratio, best = max(likely, default=(0.0, ""))
    return best if ratio >= ALIKE else ""
