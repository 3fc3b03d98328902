"""To forget: what is forgotten stands in no fact, no line, no earlier version, and no search finds where it was said.

The conversation in which it was said stays as it is until a person deletes it, so they are told which one it is.
"""

from collections.abc import Sequence
from typing import Protocol

from ..core.log import UserSaid
from ..ports import Archive, Log
from ..ports.fact_search import FactWords
from ..ports.memory import HISTORY, MEMORY, Fact, Memory, MemoryChange, MemoryDocument
from ..ports.remembering import Forgotten, SaidIn
from ..readings.spoken import spoken
from .alike import tells_all, tells_of
from .lines import without_lines

WHY = "forgotten"
AT_ONCE = 1000  # facts that are read
ANSWERED = 200  # entries after the one that says something, in which it may be said again


class ForgettingStore(Memory, FactWords, Archive, Log, Protocol):
    """What is remembered, and the conversations that it comes from."""


async def forget(
    store: ForgettingStore, owner: str, author: str, ids: Sequence[str], hides: Sequence[tuple[str, int]] = ()
) -> Forgotten:
    """Those of the facts that are the owner's, with all that say the same in the same words. `hides` are further
    entries that name them, such as the one that asks for it."""
    while True:  # until nobody was quicker
        facts = await _meant(store, owner, set(ids))
        if not facts:
            return Forgotten()
        memory = await store.document(owner, MEMORY)
        texts, told = [fact.text for fact in facts], await _told_of(store, owner, facts)
        places = [place for fact in facts for place in await _places(store, owner, fact)]
        left = MemoryDocument(MEMORY, without_lines(memory.body, texts), memory.version)
        change = MemoryChange(
            author,
            WHY,
            removed=tuple(fact.id for fact in facts),
            forgets=tuple(dict.fromkeys(filter(None, map(_held_words, [*texts, *told])))),
            hidden=tuple(dict.fromkeys([*hides, *places])),
            documents=(left,) if left.body != memory.body else (),
        )
        if version := await store.change_memory(owner, change):
            return Forgotten(tuple(facts), version, await _said_in(store, owner, facts))


async def all_facts(store: Memory, owner: str, *, ended: bool = True) -> list[Fact]:
    found: list[Fact] = []
    while page := await store.facts(owner, ended=ended, limit=AT_ONCE, skip=len(found)):
        found += page
        if len(page) < AT_ONCE:
            break
    return found


async def _meant(store: Memory, owner: str, ids: set[str]) -> list[Fact]:
    every = await all_facts(store, owner) if ids else []
    said = {fact.text.casefold() for fact in every if fact.id in ids}
    return [fact for fact in every if fact.text.casefold() in said]


def _held_words(text: str) -> str:
    """As they may stand within a line; a full stop does not belong to what is said."""
    return text.strip().rstrip(".!;,").strip()


async def _told_of(store: Memory, owner: str, facts: Sequence[Fact]) -> list[str]:
    """Lines of HISTORY.md that tell of it in other words: of a conversation in which it was said."""
    threads = {fact.source.thread[:8]: fact.text for fact in facts if fact.source.thread}
    lines = (await store.document(owner, HISTORY)).body.splitlines() if threads else []
    ends = {f" {thread})": text for thread, text in threads.items()}
    return [line for line in lines for end, text in ends.items() if line.endswith(end) and tells_of(text, line)]


async def _places(store: ForgettingStore, owner: str, fact: Fact) -> list[tuple[str, int]]:
    """Where it was said: the entry that it is known from, what was answered to it in words that tell it again, and what
    holds all its words in any other conversation."""
    thread, seq = fact.source.thread, fact.source.seq
    hits = await store.search(owner, fact.text, limit=ANSWERED)
    found = [(hit.thread, hit.seq) for hit in hits if tells_all(fact.text, hit.text)]
    if not thread:
        return found
    found.append((thread, seq))
    for each in await store.history(thread, seq, ANSWERED):
        said = spoken(each.entry)
        if isinstance(each.entry, UserSaid):
            break
        if said and tells_of(fact.text, said.with_calls()):
            found.append((thread, each.seq))
    return found


async def _said_in(store: Archive, owner: str, facts: Sequence[Fact]) -> tuple[SaidIn, ...]:
    found = []
    for thread in dict.fromkeys(fact.source.thread for fact in facts if fact.source.thread):
        for each in await store.conversations(owner, id=thread, archived=True):
            tells = any(tells_of(fact.text, each.title) for fact in facts)  # the first thing that was said, mostly
            found.append(SaidIn(each.id, each.session, "" if tells else each.title))
    return tuple(found)
