"""To forget: what is forgotten stands in no fact, no line, no earlier version, and no search finds where it was said.

The conversation in which it was said stays as it is until a person deletes it, so they are told which one it is.
"""

from collections.abc import Sequence
from typing import Protocol

from ..ports import Archive
from ..ports.memory import MEMORY, Fact, Memory, MemoryChange, MemoryDocument
from ..ports.remembering import Forgotten, SaidIn
from .lines import without_lines

WHY = "forgotten"
AT_ONCE = 1000  # facts that are read


class ForgettingStore(Memory, Archive, Protocol):
    """What is remembered, and the conversations that it comes from."""


async def forget(store: ForgettingStore, owner: str, author: str, ids: Sequence[str]) -> Forgotten:
    """Those of the facts that are the owner's, with all that say the same in the same words."""
    while True:  # until nobody was quicker
        facts = await _meant(store, owner, set(ids))
        if not facts:
            return Forgotten()
        memory = await store.document(owner, MEMORY)
        texts = [fact.text for fact in facts]
        left = MemoryDocument(MEMORY, without_lines(memory.body, texts), memory.version)
        change = MemoryChange(
            author,
            WHY,
            removed=tuple(fact.id for fact in facts),
            forgets=tuple(dict.fromkeys(filter(None, map(_held_words, texts)))),
            hidden=tuple(dict.fromkeys((each.source.thread, each.source.seq) for each in facts if each.source.thread)),
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


async def _said_in(store: Archive, owner: str, facts: Sequence[Fact]) -> tuple[SaidIn, ...]:
    found = []
    for thread in dict.fromkeys(fact.source.thread for fact in facts if fact.source.thread):
        for each in await store.conversations(owner, id=thread, archived=True):
            found.append(SaidIn(each.id, each.session, each.title))
    return tuple(found)
