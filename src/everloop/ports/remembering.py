"""Somebody's memory as they look into it and change it themselves: by a command, in a chat, in the page."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from ..errors import MailRefused
from .memory import DOCUMENTS, MEMORY, Fact, FactHit, MemoryVersion

TOLD = 10  # conversations
NOTHING = "There is nothing such to forget."
STILL_THERE = (
    "The conversations in which it was said keep their words until they are deleted: {}. No search or recall finds "
    "those words any more; `everloop sessions delete ID` deletes a conversation for good."
)


class SaidIn(Struct, frozen=True):
    """A conversation in which something was said that is forgotten now."""

    thread: str
    session: str
    title: str


class Forgotten(Struct, frozen=True):
    """`version` is that of the memory without it; 0: there was nothing such."""

    facts: tuple[Fact, ...] = ()
    version: int = 0
    said_in: tuple[SaidIn, ...] = ()

    def told(self) -> str:
        """What a person should know of it; the facts themselves are not repeated."""
        if not self.facts:
            return NOTHING
        many = len(self.facts)
        done = f"{many} fact{'s are' if many > 1 else ' is'} forgotten, also in earlier versions of the memory."
        if not self.said_in:
            return done
        names = [f"{each.thread[:8]} ({each.title or each.session})" for each in self.said_in[:TOLD]]
        more = [f"and {len(self.said_in) - TOLD} more"] if len(self.said_in) > TOLD else []
        return f"{done} {STILL_THERE.format(', '.join([*names, *more]))}"


class MemoryOverview(Struct, frozen=True):
    """What is known of somebody's memory: `facts` are true, `ended` no longer; `marked` are strangers' words among
    them. `left_out` lines of MEMORY.md do not fit into prompts. `recall` says how facts are found."""

    version: int
    facts: int
    ended: int
    marked: int
    lines: int
    left_out: int
    folder: str
    problems: tuple[str, ...]
    recall: str
    changed: MemoryVersion | None = None


class OwnMemory(Protocol):
    """Nothing is told or changed but by its principal. Raises MailRefused, StoreError."""

    async def overview(self, owner: str) -> MemoryOverview: ...

    async def versions(self, owner: str, *, limit: int = 50, before: int = 0) -> list[MemoryVersion]: ...

    async def text(self, owner: str, name: str, version: int = 0) -> str:
        """What a document holds, or held at a version of the memory."""
        ...

    async def difference(self, owner: str, name: str, old: int, new: int = 0) -> str:
        """From one version to another, or to the last; with `old` 0, what the last change of it did."""
        ...

    async def edit(self, owner: str, author: str, name: str, text: str, base: str) -> int:
        """Take over what somebody has made of the text `base`, with what was changed meanwhile; its version."""
        ...

    async def restore(self, owner: str, author: str, version: int, name: str = MEMORY) -> int:
        """Have a document hold again what it held at a version, as a new one; 0: it does already."""
        ...

    async def facts(self, owner: str, *, ended: bool = False, limit: int = 100, skip: int = 0) -> list[Fact]: ...

    async def search(self, owner: str, words: str, limit: int = 20) -> list[FactHit]: ...

    async def meant(self, owner: str, said: str) -> list[Fact]:
        """The facts that somebody names: by their ids, or how those begin; else all that hold every one of the words,
        also those that are true no longer."""
        ...

    async def forget(self, owner: str, author: str, ids: Sequence[str]) -> Forgotten: ...


def document_named(name: str) -> str:
    """As somebody types it. Raises MailRefused."""
    for each in DOCUMENTS:
        if name.casefold().removesuffix(".md") == each.casefold().removesuffix(".md"):
            return each
    raise MailRefused(f"there is no document {name[:40]!r}: it is MEMORY or HISTORY")
