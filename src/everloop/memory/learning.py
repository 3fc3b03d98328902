"""What is remembered of an excerpt: which facts, under which heading, in place of which; and the change that it makes.

In a conversation in which strangers' words were read, whoever extracts the facts may have been fooled by them. So what
stands in MEMORY.md of it is what a person said, word for word, whole sentences, under a heading that was there before;
all else that is extracted is kept as a marked fact, which is told as strangers' words and ends no other.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from hashlib import sha256

from msgspec import Struct, structs

from ..ports.memory import HISTORY, MEMORY, USUAL, Consolidated, Fact, FactEnd, FactSource, MemoryChange, MemoryDocument
from ..ports.rows import Spent
from ..readings.compaction import shortened
from ..readings.words import terms_of, words_of
from .alike import share_in, tells_of
from .extraction import ENTRY, TOPIC, SavedFact, SavedMemory, since_of
from .lines import LONGEST, lines_of, one_line, replaced_line, with_line
from .material import Excerpt, MaterialLine

NOTES = "Notes"  # the heading of what has no other
TITLE = "# History\n\n"
FULL = 60_000  # characters of MEMORY.md, after which further facts are found when they are meant, and stand not there
LONG = 400_000  # characters of HISTORY.md
DAY = 86400.0
WHY = "a conversation was consolidated"
WHY_RAW = "a conversation was kept as it was said: no model could tell what to remember of it"
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")

Redact = Callable[[str], str]
Changed = Callable[[str], Awaitable[None]]  # somebody's memory was changed here


async def tell_nobody(owner: str) -> None:
    pass


class Lesson(Struct, frozen=True):
    """A fact that is to be remembered; `replaces` is the id of the one that is no longer true by it."""

    fact: Fact
    replaces: str = ""


class MemoryState(Struct, frozen=True):
    """What is remembered at the moment: the documents, and the facts that a change may be about."""

    memory: MemoryDocument
    history: MemoryDocument
    facts: Sequence[Fact] = ()


def learned(saved: SavedMemory, excerpt: Excerpt, known: Sequence[Fact], topics: Sequence[str]) -> list[Lesson]:
    """`known` are the facts as they were shown, `topics` the headings that there are."""
    found = []
    for place, each in enumerate(saved.facts):
        line = excerpt.lines[each.entry - 1]
        old = known[each.replaces - 1] if each.replaces else None
        fact = _fact(each, line, excerpt, topics, place)
        comes_later = fact.since > line.at + DAY  # until then the other is true
        ends = old is not None and not comes_later and _may_replace(fact, old, excerpt)
        found.append(Lesson(fact, old.id if old and ends else ""))
    return found


def history_text(saved: SavedMemory | None, excerpt: Excerpt) -> str:
    """What HISTORY.md says of it: people's own words, where strangers may have had a say in any other."""
    if saved and not excerpt.marked:
        return one_line(saved.history_entry)[:ENTRY]
    said = [f"{line.who}: {' '.join(line.own.split())}" for line in excerpt.lines if line.own]
    return " ".join(shortened(" / ".join(said), ENTRY).split())


def change_for(
    excerpt: Excerpt,
    lessons: Sequence[Lesson],
    history: str,
    state: MemoryState,
    *,
    raw: bool,
    redact: Redact,
    spent: Spent | None = None,
    job: str = "",
) -> MemoryChange:
    """All that comes of an excerpt, as one change of the memory as it is now."""
    body, facts, ended = state.memory.body, list[Fact](), list[FactEnd]()
    told = {_sameness(fact.text) for fact in state.facts} | {_sameness(line.text) for line in lines_of(body)}
    true = {fact.id: fact for fact in state.facts if not fact.until}
    for lesson in lessons:
        fact = _redacted(lesson.fact, redact)
        if not fact.text or _sameness(fact.text) in told:
            continue
        told.add(_sameness(fact.text))
        old = true.pop(lesson.replaces, None)
        if old:
            ended.append(FactEnd(old.id, fact.since or fact.source.at, fact.id))
        if len(body) > FULL and not old:
            fact = structs.replace(fact, topic="")
        if fact.topic:
            body = (
                replaced_line(body, old.text, fact.text, fact.topic) if old else with_line(body, fact.text, fact.topic)
            )
        facts.append(fact)
    documents = [MemoryDocument(MEMORY, body, state.memory.version)] if body != state.memory.body else []
    if entry := _entry(excerpt, redact(history)):
        past = state.history
        documents.append(MemoryDocument(HISTORY, shorter(past.body or TITLE) + entry, past.version))
    owner = excerpt.owner if excerpt.owner != excerpt.principal else ""
    return MemoryChange(
        author="",
        why=WHY_RAW if raw else WHY,
        facts=tuple(facts),
        ended=tuple(ended),
        documents=tuple(documents),
        hidden=tuple((excerpt.thread, seq) for seq in excerpt.hides),
        consolidated=Consolidated(excerpt.thread, excerpt.after, excerpt.upto, owner),
        spent=spent,
        job=job,
    )


def shorter(history: str) -> str:
    """Without its oldest entries, where there are very many: they stand in earlier versions."""
    if len(history) <= LONG:
        return history
    return TITLE + history[-LONG // 2 :].partition("\n")[2]


def said_so(fact: str, own: str, who: str = "") -> str:
    """The sentence in which a person has said this, word for word; "" if there is none."""
    sentences = [each for each in _SENTENCE.split(own) if len(" ".join(each.split())) <= LONGEST]
    best = max(sentences, key=lambda sentence: share_in(fact, sentence, who), default="")
    return one_line(best) if best and tells_of(fact, best, who) else ""


def _fact(each: SavedFact, line: MaterialLine, excerpt: Excerpt, topics: Sequence[str], place: int) -> Fact:
    text, topic, marked, person = one_line(each.text), _heading(each.topic), False, line.person
    if excerpt.marked:
        sentence = said_so(each.text, line.own, line.who) if line.own else ""
        said = f"{line.name}: {sentence}" if line.name else sentence
        marked, text = not sentence, one_line(said) if sentence else text
        topic = next((known for known in topics if known.casefold() == topic.casefold()), NOTES)
    if marked or line.tool or line.strange:
        topic = ""
    if not line.own:
        person = ""
    return Fact(
        id=sha256(f"{excerpt.thread}:{excerpt.after}:{excerpt.upto}:{place}".encode()).hexdigest()[:16],
        text=text,
        source=FactSource(excerpt.thread, line.seq, person, line.at),
        topic=topic,
        importance=each.importance if not marked else min(each.importance, USUAL),
        since=since_of(each),
        marked=marked,
    )


def _may_replace(fact: Fact, old: Fact, excerpt: Excerpt) -> bool:
    """What strangers say ends nothing; and where they may have fooled whoever read it, a person ends what they have
    said themselves, or wrote down."""
    if fact.marked:
        return old.marked
    return not excerpt.marked or old.source.person in ("", fact.source.person)


def _heading(topic: str | None) -> str:
    return one_line(topic or "")[:TOPIC].strip() or NOTES


def _redacted(fact: Fact, redact: Redact) -> Fact:
    return structs.replace(fact, text=one_line(redact(fact.text)), topic=redact(fact.topic))


def _entry(excerpt: Excerpt, text: str) -> str:
    if not text:
        return ""
    at = datetime.fromtimestamp(excerpt.at).astimezone()
    return f"[{at:%Y-%m-%d %H:%M}] {text} ({excerpt.session} {excerpt.thread[:8]})\n"


def _sameness(text: str) -> tuple[str, ...]:
    """Two facts that are the same but for case, accents and marks."""
    return tuple(words_of(text))


def topics_in(body: str) -> list[str]:
    return list(dict.fromkeys(line.topic for line in lines_of(body) if line.topic))


def nearest(facts: Iterable[Fact], excerpt: Excerpt, most: int) -> list[Fact]:
    """Those that an excerpt is most likely about; of equals the newest, which come first."""
    words = set(terms_of(" ".join(line.text for line in excerpt.lines)))
    return sorted(facts, key=lambda fact: -len(words & set(terms_of(fact.text))))[:most]
