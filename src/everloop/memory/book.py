"""Somebody's memory as they look into it and change it themselves: by a command, in a chat, in the page.

All of it takes the principal first. Files are read before anything is told, and follow what is changed.
"""

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from ..errors import MailRefused
from ..ports import Archive, Clock, Log
from ..ports.fact_search import FactWords
from ..ports.memory import (
    MEMORY,
    Fact,
    FactFinder,
    FactHit,
    Memory,
    MemoryChange,
    MemoryDocument,
    MemoryVersion,
)
from ..ports.remembering import Forgotten, MemoryOverview
from ..readings.held import compared
from ..readings.sections import left_out_of
from ..readings.words import terms_of
from .editing import EDITED, RESTORED, Followed, followed
from .forgetting import all_facts, forget
from .merging import merged, prints_of
from .section import memory_section
from .views import LONGEST

LEAST_ID = 4  # characters by which a fact is named
CHANGED = "the memory was changed meanwhile; look at it again"


class BookStore(Memory, FactWords, Archive, Log, Protocol):
    """What is remembered, and the conversations that it comes from."""


class MemoryViews(Protocol):
    """The files that show a memory."""

    async def sync(self, owner: str) -> None: ...

    async def changed(self, owner: str) -> None: ...

    def problems(self, owner: str) -> list[str]: ...

    def folder(self, owner: str) -> Path: ...


class MemoryBook:
    """The OwnMemory port."""

    def __init__(
        self, store: BookStore, views: MemoryViews, clock: Clock, finder: FactFinder, how: Callable[[], str]
    ) -> None:
        """`how` facts are found, in a sentence."""
        self._how = how
        self._store = store
        self._views = views
        self._clock = clock
        self._finder = finder

    async def overview(self, owner: str) -> MemoryOverview:
        await self._views.sync(owner)
        facts = await all_facts(self._store, owner)
        true = [fact for fact in facts if not fact.until]
        body = (await self._store.document(owner, MEMORY)).body
        section = memory_section(body, true)
        return MemoryOverview(
            version=await self._store.memory_version(owner),
            facts=len(true),
            ended=len(facts) - len(true),
            marked=sum(fact.marked for fact in true),
            lines=sum(1 for line in body.split("\n") if line.strip()),
            left_out=left_out_of(section) if section else 0,
            folder=str(self._views.folder(owner) / "memory"),
            problems=tuple(self._views.problems(owner)),
            recall=self._how(),
            changed=next(iter(await self._store.memory_versions(owner, limit=1)), None),
        )

    async def versions(self, owner: str, *, limit: int = 50, before: int = 0) -> list[MemoryVersion]:
        await self._views.sync(owner)
        return await self._store.memory_versions(owner, limit=limit, before=before)

    async def text(self, owner: str, name: str, version: int = 0) -> str:
        """What a document holds, or held at a version of the memory. Raises MailRefused."""
        if not version:
            await self._views.sync(owner)
            return (await self._store.document(owner, name)).body
        found = await self._store.document_at(owner, name, version)
        if found is None:
            raise MailRefused(f"there is no version {version} of this memory")
        return found

    async def difference(self, owner: str, name: str, old: int, new: int = 0) -> str:
        """What has changed from one version to another, or to the last; "" if nothing has. With `old` 0, what the
        last version that changed it did. Raises MailRefused."""
        if not old:
            changing = [each.version for each in await self.versions(owner) if name in each.documents]
            old, new = (changing[0] - 1, changing[0]) if changing else (0, 0)
        before = await self.text(owner, name, old) if old else ""
        after = await self.text(owner, name, new)
        return "\n".join(compared(_lines(before), _lines(after)))

    async def facts(self, owner: str, *, ended: bool = False, limit: int = 100, skip: int = 0) -> list[Fact]:
        await self._views.sync(owner)
        return await self._store.facts(owner, ended=ended, limit=limit, skip=skip)

    async def search(self, owner: str, words: str, limit: int = 20) -> list[FactHit]:
        await self._views.sync(owner)
        return await self._finder.find(owner, words, limit)

    async def meant(self, owner: str, said: str) -> list[Fact]:
        """The facts that somebody names: by their ids, or how those begin; else all that hold every one of the words,
        also those that are true no longer."""
        await self._views.sync(owner)
        every, names = await all_facts(self._store, owner), said.split()
        named = [[fact for fact in every if len(name) >= LEAST_ID and fact.id.startswith(name)] for name in names]
        if names and all(len(found) == 1 for found in named):
            return list({found[0].id: found[0] for found in named}.values())
        terms = set(terms_of(said))
        return [fact for fact in every if terms and terms <= set(terms_of(f"{fact.topic} {fact.text}"))]

    async def forget(self, owner: str, author: str, ids: Sequence[str]) -> Forgotten:
        forgotten = await forget(self._store, owner, author, ids)
        await self._views.changed(owner)
        return forgotten

    async def edit(self, owner: str, author: str, name: str, text: str, base: str) -> int:
        """Take over what somebody has made of a text, with what was changed meanwhile; the version that it is. Raises
        MailRefused."""
        if len(text.encode(errors="replace")) > LONGEST[name]:
            raise MailRefused(f"{name} would be longer than {LONGEST[name]:,} bytes; make it shorter")
        await self._views.sync(owner)
        while True:  # until nobody was quicker
            document = await self._store.document(owner, name)
            new = merged(prints_of(base), document.body, text)
            if new == document.body:
                return await self._store.memory_version(owner)
            if version := await self._write(owner, author, EDITED, document, new):
                return version

    async def restore(self, owner: str, author: str, version: int, name: str = MEMORY) -> int:
        """Have a document hold again what it held at a version, as a new one; facts follow. 0: it does already.
        Raises MailRefused."""
        await self._views.sync(owner)
        text = await self.text(owner, name, version)
        document = await self._store.document(owner, name)
        if document.body == text:
            return 0
        if made := await self._write(owner, author, RESTORED.format(version), document, text):
            return made
        raise MailRefused(CHANGED)

    async def _write(self, owner: str, author: str, why: str, document: MemoryDocument, text: str) -> int:
        follows = Followed()
        if document.name == MEMORY:
            known = await all_facts(self._store, owner)
            follows = followed(
                document.body, text, known, person=author, now=self._clock.now(), new_id=lambda: secrets.token_hex(8)
            )
        version = await self._store.change_memory(
            owner,
            MemoryChange(
                author,
                why,
                facts=follows.facts,
                ended=follows.ended,
                documents=(MemoryDocument(document.name, text, document.version),),
            ),
        )
        if version:
            await self._views.changed(owner)
        return version


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []
