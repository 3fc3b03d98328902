"""What is remembered, written once for both databases.

Words are rows here, and not an index of the database's own: facts are short, so there are few, and both databases find
the same by the same statements.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

from ..ports.consolidation import Unconsolidated
from ..ports.fact_search import WordHolders
from ..ports.jobs import CONSOLIDATE
from ..ports.memory import (
    DOCUMENTS,
    Consolidated,
    Fact,
    FactSource,
    MemoryChange,
    MemoryDocument,
    MemoryVersion,
)
from ..readings.words import terms_of
from .codec import list_of
from .database import Ask, Database
from .memory_edits import Edit, edit_between, undone, without_words
from .spent import note_spent

PURPOSE = "memory"  # what a model was asked for
SECONDS = 1.0  # for which it is believed that nothing is remembered of somebody
STRANGERS = 10_000  # of whom that is known

_MOVE = "UPDATE threads SET consolidated = $3 WHERE id = $1 AND consolidated = $2"
_THEM = "IN (SELECT value FROM {each}($2{json}))"
FACT = (
    "id, text, thread, seq, person, said, topic, importance, since, until, replaced_by, marked, at, version "
    "FROM facts WHERE owner = $1"
)
_ADD = (
    "INSERT INTO facts(owner, id, text, thread, seq, person, said, topic, importance, since, until, replaced_by, "
    "marked, at, version) VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, {now}, $14) "
    "ON CONFLICT(owner, id) DO UPDATE SET text = excluded.text, topic = excluded.topic, "
    "importance = excluded.importance, since = excluded.since, until = excluded.until, "
    "replaced_by = excluded.replaced_by, marked = excluded.marked, version = excluded.version"
)
_HIDE = (
    "INSERT INTO hidden_entries(thread, seq, owner) SELECT id, CAST($2 AS {int}), owner FROM threads WHERE id = $1 "
    "AND (owner = $3 OR EXISTS (SELECT 1 FROM facts WHERE owner = $3 AND thread = $1 AND seq = CAST($2 AS {int}))) "
    "ON CONFLICT DO NOTHING"
)
_LEFT = "NOT EXISTS (SELECT 1 FROM sessions s WHERE s.key = t.session AND s.thread = t.id)"
_WAITING = f"""SELECT t.id, t.owner, t.session, t.consolidated, t.head, e.at, {_LEFT}
    FROM threads t JOIN entries e ON e.thread = t.id AND e.seq = t.head
    WHERE t.head > t.consolidated AND t.state = 'resting' AND t.spawned_by = '' AND t.archived <= 0
    AND (CAST($4 AS TEXT) = '' OR t.owner = $4)
    AND (t.head - t.consolidated >= CAST($2 AS {{int}}) OR e.at <= {{now}} - CAST($1 AS {{real}}) OR {_LEFT})
    AND t.id NOT IN (SELECT body FROM jobs WHERE kind = '{CONSOLIDATE}' AND state IN ('waiting', 'working'))
    ORDER BY e.at LIMIT $3"""


class MemoryRows(Database):
    async def memory_version(self, owner: str) -> int:
        rows = await self._glance("SELECT version FROM memories WHERE owner = $1", owner)
        return int(rows[0][0]) if rows else 0

    def lacks_memory(self, owner: str) -> bool:
        return self._without.get(owner, 0.0) > time.monotonic()

    async def has_memory(self, owner: str) -> bool:
        if self.lacks_memory(owner):
            return False
        if await self.memory_version(owner):
            return True
        if len(self._without) > STRANGERS:
            self._without.clear()
        self._without[owner] = time.monotonic() + SECONDS
        return False

    @cached_property
    def _without(self) -> dict[str, float]:
        """Of whom nothing was remembered when it was last looked, and until when that is believed."""
        return {}

    async def count_facts(self, owner: str) -> int:
        [(count,)] = await self._ask("SELECT count(*) FROM facts WHERE owner = $1 AND until = 0", owner)
        return int(count)

    async def remembering_groups(self) -> list[str]:
        rows = await self._ask("SELECT owner FROM memories WHERE owner LIKE 'chat:%' AND version > 0 ORDER BY owner")
        return [str(owner) for (owner,) in rows]

    async def change_memory(self, owner: str, change: MemoryChange) -> int:
        try:
            return await self._do(partial(_change, owner, change))
        finally:
            self._without.pop(owner, None)

    async def facts(
        self, owner: str, *, ids: Sequence[str] | None = None, ended: bool = False, limit: int = 1000, skip: int = 0
    ) -> list[Fact]:
        true = "" if ended else " AND until = 0"
        if ids is not None:
            rows = await self._ask(f"SELECT {FACT} AND id {_THEM}{true}", owner, list_of(ids))
            return sorted(map(fact_in, rows), key=lambda fact: list(ids).index(fact.id))
        rows = await self._ask(f"SELECT {FACT}{true} ORDER BY at DESC, id LIMIT $2 OFFSET $3", owner, limit, skip)
        return [fact_in(row) for row in rows]

    async def word_holders(self, owner: str, words: Sequence[str], limit: int) -> dict[str, WordHolders]:
        counted = f"SELECT word, count(*) FROM fact_words WHERE owner = $1 AND word {_THEM} GROUP BY word"
        counts = {word: int(count) for word, count in await self._ask(counted, owner, list_of(words))}
        telling = [word for word, count in counts.items() if count <= limit]
        telling = telling or sorted(counts, key=lambda word: (counts[word], word))[:1]
        held: defaultdict[str, list[str]] = defaultdict(list)
        holders = f"SELECT word, fact FROM fact_words WHERE owner = $1 AND word {_THEM} LIMIT $3"
        for word, fact in await self._ask(holders, owner, list_of(telling), limit * len(telling)) if telling else ():
            held[word].append(fact)
        return {word: WordHolders(counts[word], tuple(held[word])) for word in counts}

    async def document(self, owner: str, name: str) -> MemoryDocument:
        return await _document(self._ask, owner, name)

    async def document_at(self, owner: str, name: str, version: int) -> str | None:
        if not 0 < version <= await self.memory_version(owner):
            return None
        body = (await _document(self._ask, owner, name)).body
        for edit in await _edits(self._ask, owner, name, version):
            body = undone(body, edit)
        return body

    async def memory_versions(self, owner: str, *, limit: int = 50, before: int = 0) -> list[MemoryVersion]:
        rows = await self._ask(
            "SELECT version, at, author, why FROM memory_changes WHERE owner = $1 "
            "AND (CAST($2 AS {int}) = 0 OR version < $2) ORDER BY version DESC LIMIT $3",
            owner,
            before,
            limit,
        )
        changed: defaultdict[int, list[str]] = defaultdict(list)
        if rows:
            edits = "SELECT version, name FROM memory_edits WHERE owner = $1 AND version >= $2 ORDER BY name"
            for version, name in await self._ask(edits, owner, rows[-1][0]):
                changed[version].append(name)
        return [MemoryVersion(version, at, author, why, tuple(changed[version])) for version, at, author, why in rows]

    async def unconsolidated(self, quiet: float, many: int, limit: int, owner: str = "") -> list[Unconsolidated]:
        rows = await self._ask(_WAITING, quiet, many, limit, owner)
        return [
            Unconsolidated(thread, owner, session, after, head, at, bool(left))
            for thread, owner, session, after, head, at, left in rows
        ]

    async def facts_holding(self, owner: str, words: Sequence[str], limit: int, *, ended: bool = False) -> list[Fact]:
        rows = await self._ask(
            f"SELECT w.fact FROM fact_words w JOIN facts f ON f.owner = w.owner AND f.id = w.fact WHERE w.owner = $1 "
            f"AND w.word {_THEM}{'' if ended else ' AND f.until = 0'} "
            "GROUP BY w.fact ORDER BY count(*) DESC, w.fact LIMIT $3",
            owner,
            list_of(words),
            limit,
        )
        return await self.facts(owner, ids=[fact for (fact,) in rows], ended=ended) if rows else []

    async def pass_over(self, thread: str, after: int, upto: int) -> bool:
        return bool(await self._change(f"{_MOVE} RETURNING id", thread, after, upto))

    async def hidden(self, thread: str) -> set[int]:
        return {int(seq) for (seq,) in await self._ask("SELECT seq FROM hidden_entries WHERE thread = $1", thread)}

    async def consolidated(self, thread: str) -> int:
        rows = await self._ask("SELECT consolidated FROM threads WHERE id = $1", thread)
        return int(rows[0][0]) if rows else 0


async def _change(owner: str, change: MemoryChange, ask: Ask) -> int:
    await ask("INSERT INTO memories(owner, version) VALUES($1, 0) ON CONFLICT DO NOTHING", owner)
    [(last,)] = await ask("SELECT version FROM memories WHERE owner = $1{lock}", owner)
    before = {each.name: await _document(ask, owner, each.name) for each in change.documents}
    if any(before[each.name].version != each.version for each in change.documents):
        return 0
    if change.consolidated and not await _moves(ask, owner, change.consolidated):
        return 0
    version = int(last) + 1
    await ask("UPDATE memories SET version = $2 WHERE owner = $1", owner, version)
    await ask(
        "INSERT INTO memory_changes(owner, version, at, author, why) VALUES($1, $2, {now}, $3, $4)",
        owner,
        version,
        change.author,
        change.why,
    )
    for document in change.documents:
        await _write(ask, owner, version, before[document.name].body, document)
    for fact in change.facts:
        await _add(ask, owner, version, fact)
    for end in change.ended:
        await ask(
            "UPDATE facts SET until = $3, replaced_by = $4, version = $5 WHERE owner = $1 AND id = $2",
            owner,
            end.id,
            end.until,
            end.replaced_by,
            version,
        )
    await _forget(ask, owner, change)
    if change.spent and change.consolidated:
        await note_spent(ask, owner, change.consolidated.thread, change.spent, PURPOSE)
    return version


async def _moves(ask: Ask, owner: str, done: Consolidated) -> bool:
    moved = f"{_MOVE} AND owner = $4 RETURNING id"
    return bool(await ask(moved, done.thread, done.after, done.upto, done.owner or owner))


async def _write(ask: Ask, owner: str, version: int, before: str, document: MemoryDocument) -> None:
    if before == document.body:
        return
    edit = edit_between(document.body, before)
    await ask(
        "INSERT INTO memory_edits(owner, name, version, place, length, before) VALUES($1, $2, $3, $4, $5, $6)",
        owner,
        document.name,
        version,
        edit.place,
        edit.length,
        edit.before,
    )
    await _put(ask, owner, version, document)


async def _put(ask: Ask, owner: str, version: int, document: MemoryDocument) -> None:
    await ask(
        "INSERT INTO memory_documents(owner, name, version, body) VALUES($1, $2, $3, $4) "
        "ON CONFLICT(owner, name) DO UPDATE SET version = excluded.version, body = excluded.body",
        owner,
        document.name,
        version,
        document.body,
    )


async def _add(ask: Ask, owner: str, version: int, fact: Fact) -> None:
    source = fact.source
    await ask(
        _ADD,
        owner,
        fact.id,
        fact.text,
        source.thread,
        source.seq,
        source.person,
        source.at,
        fact.topic,
        fact.importance,
        fact.since,
        fact.until,
        fact.replaced_by,
        int(fact.marked),
        version,
    )
    await ask("DELETE FROM fact_words WHERE owner = $1 AND fact = $2", owner, fact.id)
    await ask("DELETE FROM fact_vectors WHERE owner = $1 AND fact = $2", owner, fact.id)
    await ask(
        "INSERT INTO fact_words(owner, word, fact) SELECT $1, value, $3 FROM {each}($2{json})",
        owner,
        list_of(terms_of(f"{fact.topic} {fact.text}")),
        fact.id,
    )


async def _forget(ask: Ask, owner: str, change: MemoryChange) -> None:
    for thread, seq in change.hidden:  # first: a fact tells what of another's conversation is its principal's
        await ask(_HIDE, thread, seq, owner)
    if change.removed:
        for table, column in (("facts", "id"), ("fact_words", "fact"), ("fact_vectors", "fact")):
            await ask(f"DELETE FROM {table} WHERE owner = $1 AND {column} {_THEM}", owner, list_of(change.removed))
        await ask("UPDATE memories SET removed = version WHERE owner = $1", owner)
        ends = f"UPDATE facts SET replaced_by = '' WHERE owner = $1 AND replaced_by {_THEM}"
        await ask(ends, owner, list_of(change.removed))
    for name in DOCUMENTS if change.forgets else ():
        await _blank(ask, owner, name, change.forgets)


async def _blank(ask: Ask, owner: str, name: str, words: Sequence[str]) -> None:
    """Write a document and the ways back to its earlier versions anew, without lines that hold these words."""
    document = await _document(ask, owner, name)
    edits = await _edits(ask, owner, name, 0)
    bodies = [document.body]
    for edit in edits:
        bodies.append(undone(bodies[-1], edit))
    if not any(without_words(body, words) != body for body in bodies):
        return
    bodies = [without_words(body, words) for body in bodies]
    await ask("DELETE FROM memory_edits WHERE owner = $1 AND name = $2", owner, name)
    for edit, body, before in zip(edits, bodies[:-1], bodies[1:], strict=True):
        await _write(ask, owner, edit.version, before, MemoryDocument(name, body))
    await _put(ask, owner, document.version, MemoryDocument(name, bodies[0]))


async def _document(ask: Ask, owner: str, name: str) -> MemoryDocument:
    rows = await ask("SELECT body, version FROM memory_documents WHERE owner = $1 AND name = $2", owner, name)
    return MemoryDocument(name, *rows[0]) if rows else MemoryDocument(name)


async def _edits(ask: Ask, owner: str, name: str, after: int) -> list[Edit]:
    """Of the versions after one, the newest first."""
    rows = await ask(
        "SELECT version, place, length, before FROM memory_edits "
        "WHERE owner = $1 AND name = $2 AND version > $3 ORDER BY version DESC",
        owner,
        name,
        after,
    )
    return [Edit(*row) for row in rows]


def fact_in(row: Any) -> Fact:
    id, text, thread, seq, person, said, topic, importance, since, until, replaced_by, marked, at, version = row
    return Fact(
        id=id,
        text=text,
        source=FactSource(thread, seq, person, said),
        topic=topic,
        importance=importance,
        since=since,
        until=until,
        replaced_by=replaced_by,
        marked=bool(marked),
        at=at,
        version=version,
    )
