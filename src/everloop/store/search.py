"""Words found again in conversations, written once for both databases but for how a database matches them.

What would cost a turn something is done here, when someone looks: entries are indexed when something is searched for, a
batch at a time so that turns can go on in between.
"""

import asyncio
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

from msgspec import Struct, structs

from ..core import log
from ..ports.conversation import Recalled, SearchHit, Written
from ..readings.words import best_of, is_question, rarity, uncommon, words_of
from .database import Ask, Database
from .words import is_strange_in, snippet, spoken_in

BATCH = 1000
MORE = 4  # times as many places are looked at as are told, for those that hold a query word for word
WORDS = 16  # of a query
HOLDERS = 500  # entries that are looked at for each word of a query, the newest first; if more hold it, it tells little
FEW = 200  # entries; in a conversation that is shorter, a word that is held by three is rare all the same
KIN = 50  # threads that are named in a query
SHORT = 20  # entries; conversations of which so few are not indexed yet are indexed together,
TOGETHER = 100  # so many at a time

# Which threads tell what stood in a branch, each up to where it was left. What was copied is not indexed again.
_KIN = """WITH RECURSIVE kin(id, parent, cut, last) AS (
    SELECT id, parent, parent_seq, 9223372036854775807 FROM threads WHERE id = $1
    UNION ALL
    SELECT t.id, t.parent, {least}(t.parent_seq, k.cut), k.cut FROM kin k JOIN threads t ON t.id = k.parent)"""
_KIN_ROW = "t.id, t.indexed, t.head, t.owner"
_MOVED = "UPDATE threads SET indexed = $3 WHERE id = $1 AND indexed = $2 RETURNING id"
_OF_KIN = "EXISTS(SELECT 1 FROM kin k WHERE k.id = s.thread AND s.seq <= k.last)"


class _Where(Struct, frozen=True):
    """In whose conversations something is looked for: all, those of a session, or one and what it branched from."""

    thread: str
    owner: str
    session: str = ""


class _Kin(Struct, frozen=True):
    """A thread that is looked through up to its entry `last`."""

    id: str
    indexed: int
    head: int
    owner: str
    last: int


class _Behind(Struct, frozen=True):
    """A thread of which the index does not have all."""

    id: str
    indexed: int
    head: int


class IndexedEntry(Struct, frozen=True):
    """An entry's words on their way into the index."""

    seq: int
    who: str
    words: str


class SearchRows(Database):
    """What a store does with words; a database gives it its way to match them."""

    MATCHES: ClassVar[str]  # FROM said s … WHERE …, of the query $1
    NEWEST: ClassVar[str]

    @abstractmethod
    def _query(self, words: Sequence[str], begin: bool) -> str:
        """All of the words, or with `begin` words that begin so."""
        ...

    @abstractmethod
    async def _holding(self, words: Sequence[str], threads: Sequence[str]) -> list[list[int]]:
        """Which rows of the index hold each word, the newest first; all of these threads, and perhaps of others."""
        ...

    @abstractmethod
    async def _add_words(self, ask: Ask, thread: str, owner: str, lines: Sequence[IndexedEntry]) -> None: ...

    async def search(
        self, owner: str, words: str, *, thread: str = "", session: str = "", limit: int = 20
    ) -> list[SearchHit]:
        every = words_of(words)
        wanted = (uncommon(every) or every)[:WORDS]
        if not wanted:
            return []
        await self._index(owner, thread)
        where = _Where(thread, owner, session)
        [best] = await self._rows_with([self._query(wanted, begin=False)], where)
        if not best:
            [best] = await self._rows_with([self._query(wanted, begin=True)], where)
        best = best[: limit * MORE]
        weights, some = dict.fromkeys(wanted, 1.0), list[int]()
        if thread or not best:
            holders = await self._rows_with([self._query([word], begin=True) for word in wanted], where)
            weights, ranked = _weighed(wanted, holders, HOLDERS * MORE, limit * MORE)
            some = [id for id in ranked if id not in best]
        rows = [row for part in (best, some) for row in _in_order(await self._told(part), words)]
        found = [_found(row, weights) for row in rows[:limit]]
        return [structs.replace(each, thread=thread or await self._living(each)) for each in found]

    async def recall(self, thread: str, words: Sequence[str], until: int, limit: int) -> Recalled:
        wanted = list(words)[:WORDS]
        family = await self._family(thread) if wanted else []
        for each in family:  # what was covered since the last time; of what is older a part each time
            if each.indexed < min(until, each.head):
                await self._index_some(each.id, each.owner, each.indexed, min(until, each.head))
        holders = await self._holding(wanted, [each.id for each in family]) if family else []
        if not any(holders):
            return Recalled()
        if any(0 < len(ids) < HOLDERS for ids in holders):
            holders = [ids if len(ids) < HOLDERS else [] for ids in holders]  # beside rare words these tell nothing
        ours = await self._ours({id for ids in holders for id in ids}, family, until)
        theirs = [[id for id in ids if id in ours] for ids in holders]
        weights, best = _weighed(wanted, theirs, min(HOLDERS * MORE, max(FEW, until)), limit)
        rows = await self._told(best)
        return Recalled(weights, [Written(seq, at, log.decode(body)) for _, seq, at, _, body in rows])

    async def _family(self, thread: str) -> list[_Kin]:
        """A thread and those that tell what stood in it before it branched off."""
        own = await self._ask(f"SELECT {_KIN_ROW}, {1 << 62}, t.parent FROM threads t WHERE t.id = $1", thread)
        if not own or not own[0][5]:
            return [_Kin(*row[:5]) for row in own]
        rows = await self._ask(f"{_KIN} SELECT {_KIN_ROW}, k.last FROM kin k JOIN threads t ON t.id = k.id", thread)
        return [_Kin(*row) for row in rows]

    async def _ours(self, ids: set[int], family: Sequence[_Kin], until: int) -> set[int]:
        """Those of these rows of the index that belong to the family, up to an entry."""
        rows = await self._ask(f"SELECT id, thread, seq FROM said WHERE id IN ({', '.join(map(str, ids))})")
        last = {each.id: min(each.last, until) for each in family}
        return {id for id, thread, seq in rows if seq <= last.get(thread, 0)}

    async def _living(self, found: SearchHit) -> str:
        """The thread that someone wants to go on with: what was replaced by a branch lives on there."""
        thread = found.thread
        replaced: Sequence[Any] = [(thread,)]
        while replaced:
            thread = replaced[0][0]
            replaced = await self._ask(
                "SELECT b.id FROM threads t JOIN threads b ON b.id = t.replaced WHERE t.id = $1 AND b.parent_seq >= $2",
                thread,
                found.seq,
            )
        return thread

    async def _rows_with(self, queries: Sequence[str], where: _Where) -> list[list[int]]:
        """Which rows of the index hold what each query wants, the newest first."""
        theirs = _OF_KIN if where.thread else "CAST($1 AS TEXT) = ''"
        asked = [
            f"SELECT * FROM (SELECT {place} AS place, s.id AS id {self.MATCHES.replace('$1', f'${place + 4}')} "
            "AND s.owner = $2 AND (CAST($3 AS TEXT) = '' "
            "OR EXISTS(SELECT 1 FROM threads t WHERE t.id = s.thread AND t.session = $3)) "
            f"AND {theirs} ORDER BY {self.NEWEST} LIMIT {HOLDERS}) AS holders{place}"
            for place in range(len(queries))
        ]
        values = where.thread, where.owner, where.session
        rows = await self._ask(f"{_KIN if where.thread else ''} {' UNION ALL '.join(asked)}", *values, *queries)
        found: list[list[int]] = [[] for _ in queries]
        for place, id in rows:
            found[place].append(id)
        return found

    async def _told(self, ids: Sequence[int]) -> list[Any]:
        """These rows of the index with what they are about, in this order."""
        if not ids:
            return []
        rows = await self._ask(
            "SELECT s.id, s.thread, s.seq, e.at, s.who, e.body FROM said s JOIN entries e "
            f"ON e.thread = s.thread AND e.seq = s.seq WHERE s.id IN ({', '.join(map(str, ids))}) "
            "AND NOT EXISTS(SELECT 1 FROM hidden_entries h WHERE h.thread = s.thread AND h.seq = s.seq)"
        )
        by_id = {row[0]: tuple(row)[1:] for row in rows}
        return [by_id[id] for id in ids if id in by_id]

    async def _index(self, owner: str, thread: str) -> None:
        behind = "SELECT id, indexed, head FROM threads WHERE owner = $1 AND indexed < head"
        if thread:
            kin = f"{_KIN} SELECT t.id, t.indexed, t.head FROM threads t WHERE t.id IN (SELECT id FROM kin) "
            rows = await self._ask(f"{kin} AND t.owner = $2 AND t.indexed < t.head", thread, owner)
        else:
            rows = await self._ask(behind, owner)
        missing = [_Behind(*row) for row in rows]
        short = [each for each in missing if each.head - each.indexed <= SHORT]
        for first in range(0, len(short), TOGETHER):
            await self._index_together(owner, short[first : first + TOGETHER])
        for each in missing:
            indexed = each.indexed
            while indexed < each.head and each.head - each.indexed > SHORT:
                indexed = await self._index_some(each.id, owner, indexed, each.head)

    async def _index_together(self, owner: str, threads: Sequence[_Behind]) -> None:
        """Index the rest of short conversations in one transaction: of thousands, the commits would take longest."""
        wanted = " OR ".join(
            f"thread = ${n} AND seq > ${n + 1} AND seq <= ${n + 2}" for n in range(1, 3 * len(threads), 3)
        )
        values = [value for each in threads for value in (each.id, each.indexed, each.head)]
        rows = await self._ask(f"SELECT thread, seq, body FROM entries WHERE {wanted} ORDER BY thread, seq", *values)
        lines = await asyncio.to_thread(_lines_by_thread, rows)

        async def work(ask: Ask) -> None:
            for each in threads:
                if await ask(_MOVED, each.id, each.indexed, each.head):
                    await self._add_words(ask, each.id, owner, lines.get(each.id, ()))

        await self._do(work)

    async def _index_some(self, thread: str, owner: str, indexed: int, head: int) -> int:
        """Index the next entries of a thread, unless another process has been quicker; says up to where."""
        rows = await self._ask(
            "SELECT seq, body FROM entries WHERE thread = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4",
            thread,
            indexed,
            head,
            BATCH,
        )
        lines = await asyncio.to_thread(_lines, rows, thread)
        until = int(rows[-1][0]) if rows else head

        async def work(ask: Ask) -> None:
            if await ask(_MOVED, thread, indexed, until):
                await self._add_words(ask, thread, owner, lines)

        await self._do(work)
        return until


def _lines(rows: Sequence[Any], thread: str) -> list[IndexedEntry]:
    """Each entry has the mark of its thread among its words, so that a common word is not looked for in all others."""
    told = ((seq, spoken_in(body)) for seq, body in rows)
    words = ((seq, said[0], words_of(said[1])) for seq, said in told if said)
    return [IndexedEntry(seq, who, " ".join((*each, mark_of(thread)))) for seq, who, each in words if each]


def _lines_by_thread(rows: Sequence[Any]) -> dict[str, list[IndexedEntry]]:
    return {
        thread: _lines([(seq, body) for _, seq, body in theirs], thread)
        for thread, theirs in groupby(rows, key=lambda row: row[0])
    }


def mark_of(thread: str) -> str:
    return f"thread{''.join(letter for letter in thread.lower() if letter.isascii() and letter.isalnum())}"


def _weighed(
    words: Sequence[str], holders: Sequence[Sequence[int]], of: int, most: int
) -> tuple[dict[str, float], list[int]]:
    """How much each word tells, and the rows of the index that hold the most telling ones, best and newest first."""
    weights = {word: rarity(len(ids), of) for word, ids in zip(words, holders, strict=True) if ids}
    held: defaultdict[int, set[str]] = defaultdict(set)
    for word, ids in zip(words, holders, strict=True):
        for id in ids:
            held[id].add(word)
    return weights, best_of(sorted(held.items(), reverse=True), weights, most)


def _in_order(rows: Sequence[Any], words: str) -> list[Any]:
    """What holds the query word for word comes first, what only asks comes last."""
    literal = words.strip().casefold()
    return sorted(rows, key=lambda row: (_asks(row), literal not in row[4].casefold()))


def _asks(row: Any) -> bool:
    said = spoken_in(row[4]) if row[3] == "user" else None
    return said is not None and is_question(said[1])


def _found(row: Any, words: Mapping[str, float]) -> SearchHit:
    thread, seq, at, who, body = row
    said = spoken_in(body)
    return SearchHit(thread, seq, at, who, snippet(said[1] if said else "", words), is_strange_in(body))
