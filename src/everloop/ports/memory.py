"""What is remembered for a principal: facts, each with where it is known from, and two documents that people may read
and edit. Every change is one version of the whole, with who made it and why.

A fact that stands in MEMORY.md is a line of it, word for word; one that does not is found when it is meant. Whoever
changes one of the two changes both, in one transaction (memory/lines.py says how).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Struct

from .rows import Spent

MEMORY, HISTORY = "MEMORY.md", "HISTORY.md"
DOCUMENTS = (MEMORY, HISTORY)
LEAST, USUAL, MOST = 1, 3, 5  # importance


class FactSource(Struct, frozen=True):
    """Where a fact is known from: an entry of a conversation, or none where it was written down by hand; whose words
    those are ("": the agent's own, or a tool's), and when they were said."""

    thread: str = ""
    seq: int = 0
    person: str = ""
    at: float = 0.0


class Fact(Struct, frozen=True):
    """One sentence. `topic` is the heading that it stands under in MEMORY.md; "": it does not stand there. `since` and
    `until` say when it was true, as far as anybody knows (0: nobody does, or it still is). `marked`: it comes from
    strangers' words, is told as theirs, and never stands in MEMORY.md."""

    id: str
    text: str
    source: FactSource = FactSource()
    topic: str = ""
    importance: int = USUAL
    since: float = 0.0
    until: float = 0.0
    replaced_by: str = ""
    marked: bool = False
    at: float = 0.0  # when it was written down; told by the store
    version: int = 0  # of the memory, with which it was changed last; told by the store


class FactEnd(Struct, frozen=True):
    """A fact that is true no longer, and the one that took its place. With `until` 0 it is true again."""

    id: str
    until: float
    replaced_by: str = ""


class MemoryDocument(Struct, frozen=True):
    """`version` is that of the memory with which it was changed last; 0: it has never been written."""

    name: str
    body: str = ""
    version: int = 0


class Consolidated(Struct, frozen=True):
    """A conversation whose entries `after` … `upto` are now part of the memory. `owner` is whose conversation it is,
    where that is somebody else: whose bot has brought it."""

    thread: str
    after: int
    upto: int
    owner: str = ""


class MemoryChange(Struct, frozen=True):
    """All of it or nothing, as one version. `documents` are what they are to hold; each names the version of it that
    it was made from, and where that is no longer the last, nothing is changed. `removed` are facts that leave no trace:
    with them go their words and vectors, and what earlier versions of the documents held (`forgets`: these very words
    are blanked in all of them). `hidden` are entries (thread, seq) that no search and no recall finds any more."""

    author: str  # a person's id, or "" for everloop itself
    why: str  # in words that tell nothing of what is remembered
    facts: tuple[Fact, ...] = ()
    ended: tuple[FactEnd, ...] = ()
    removed: tuple[str, ...] = ()
    forgets: tuple[str, ...] = ()
    hidden: tuple[tuple[str, int], ...] = ()
    documents: tuple[MemoryDocument, ...] = ()
    consolidated: Consolidated | None = None
    spent: Spent | None = None  # on a model that had it changed
    job: str = ""  # which had it changed, once


class MemoryVersion(Struct, frozen=True):
    version: int
    at: float
    author: str
    why: str
    documents: tuple[str, ...]  # that it has changed


class Memory(Protocol):
    """Nothing is asked or changed but by its principal. Raises StoreError."""

    async def memory_version(self, owner: str) -> int:
        """Of the last change; 0: nothing was ever remembered."""
        ...

    async def remembering_groups(self) -> list[str]:
        """The principals of groups that have a memory, and nothing of what it holds."""
        ...

    async def change_memory(self, owner: str, change: MemoryChange) -> int:
        """Its version; 0: a document was changed meanwhile, or those entries are consolidated already (or the thread is
        gone), and nothing was written."""
        ...

    async def facts(
        self, owner: str, *, ids: Sequence[str] | None = None, ended: bool = False, limit: int = 1000, skip: int = 0
    ) -> list[Fact]:
        """The newest first; with `ended` also those that are true no longer."""
        ...

    async def document(self, owner: str, name: str) -> MemoryDocument: ...

    async def document_at(self, owner: str, name: str, version: int) -> str | None:
        """What it held at a version of the memory; None where there was no such version."""
        ...

    async def memory_versions(self, owner: str, *, limit: int = 50, before: int = 0) -> list[MemoryVersion]:
        """The newest first; `before` a version, where it is not 0."""
        ...


class FactHit(Struct, frozen=True):
    """A fact that is likely meant. `score` compares the hits of one question: the higher, the more likely."""

    fact: Fact
    score: float


class FactFinder(Protocol):
    """By words and, where there is an embedder, by meaning."""

    async def find(self, owner: str, query: str, limit: int) -> list[FactHit]:
        """The facts of a principal that a question means and that are still true, the likeliest first; none rather than
        what only stands near. Raises StoreError."""
        ...


class FactTeller(Protocol):
    """What is remembered and meant by what people have just said, for the tail of a prompt."""

    def lacks(self, owner: str) -> bool:
        """Whether it was found a moment ago that nothing is remembered of somebody; known at once."""
        ...

    def knows(self, owner: str) -> Awaitable[bool]:
        """Whether anything is remembered of somebody, as of a second ago. Raises StoreError."""
        ...

    async def told(
        self, owner: str, said: Sequence[str], shown: Callable[[], str], room: int, *, strangers: bool = False
    ) -> str:
        """In so many characters, each fact with where it is known from; "" if there is nothing. What is `shown`
        already is left out, and so is what strangers wrote, unless `strangers`' words were read in this conversation:
        they would be in it without anybody knowing. For a principal of whom nothing is remembered, nothing is done.
        Raises StoreError."""
        ...
