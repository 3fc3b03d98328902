"""What model calls used, written once for both databases."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ..core.prompt import Usage
from ..ports.rows import Grouping, Spent, SpentRow, UsedRow
from ..readings.used import added
from .database import Database
from .spent import note_spent

_WHO = "CASE WHEN u.requester = '' THEN u.owner ELSE u.requester END"  # who a call was made for
# The time zone's offset.
_DAY = "CAST(floor((u.at + CAST($1 AS {real})) / 86400) AS {int})"
_SUMS = """count(*), sum(u.input), sum(u.output), sum(u.cache_read), sum(u.cache_write), sum(u.reasoning),
    coalesce(sum(CASE WHEN u.own = 0 THEN u.cost END), 0.0),
    sum(CASE WHEN u.own = 0 AND u.cost IS NULL THEN 1 ELSE 0 END), sum(u.own),
    coalesce(sum(CASE WHEN u.own = 1 THEN u.cost END), 0.0)"""
# Since when, in which thread and by whom ("" is any).
_SPENT = f"""SELECT {_DAY} AS day, u.model, {_SUMS}, u.purpose
    FROM usage u WHERE u.at >= $2 AND CAST($3 AS TEXT) IN ('', u.thread) AND CAST($4 AS TEXT) IN ('', {_WHO})
    GROUP BY 1, u.model, u.purpose ORDER BY 1, u.model, u.purpose"""
_NAMES = {
    "day": "''",
    "person": _WHO,
    "model": "u.model",
    "channel": "coalesce({channel}, '')",
    "job": "u.purpose",
}
_USED = f"""SELECT {_DAY} AS day, NAME AS name, {_SUMS}
    FROM usage u LEFT JOIN threads t ON t.id = u.thread
    WHERE u.at >= $2 AND CAST($3 AS TEXT) IN ('', {_WHO}) GROUP BY 1, 2 ORDER BY 1, 2"""
# The answers that call tools, found by the calls that they were answers to.
_ANSWERS = f"""SELECT u.id, {_DAY}, e.body, u.input, u.output, u.cache_read, u.cache_write, u.reasoning, u.cost,
    u.own FROM usage u JOIN entries e ON e.thread = u.thread AND e.seq = u.seq
    WHERE u.at >= $2 AND CAST($3 AS TEXT) IN ('', {_WHO}) AND u.id > $4 AND e.body LIKE '%"calls":[%'
    ORDER BY u.id LIMIT $5"""
ANSWERS = 2000  # that are read at a time
# Of the conversations that another one stands for now, after what was said last in them was taken back.
_TAKEN_BACK = f"""WITH RECURSIVE stood(id) AS (
    SELECT id FROM threads WHERE replaced = $1 UNION SELECT t.id FROM threads t JOIN stood s ON t.replaced = s.id)
    SELECT 0, u.model, {_SUMS}, u.purpose FROM usage u WHERE u.thread IN (SELECT id FROM stood)
    GROUP BY u.model, u.purpose ORDER BY u.model, u.purpose"""
# Of what a conversation has from those that it branched off, and stands for none of them; what belongs to no entry (a
# title, the memory) by its time.
_INHERITED = f"""WITH RECURSIVE stood(id) AS (
    SELECT id FROM threads WHERE replaced = $1 UNION SELECT t.id FROM threads t JOIN stood s ON t.replaced = s.id),
    above(id, last, born) AS (SELECT parent, parent_seq, created FROM threads WHERE id = $1 AND parent <> ''
    UNION SELECT t.parent, {{least}}(t.parent_seq, a.last), t.created FROM threads t
    JOIN above a ON t.id = a.id WHERE t.parent <> '')
    SELECT 0, u.model, {_SUMS}, u.purpose FROM usage u JOIN above a ON a.id = u.thread
    WHERE u.seq <= a.last AND (u.seq > 0 OR u.at <= a.born) AND a.id NOT IN (SELECT id FROM stood)
    GROUP BY u.model, u.purpose ORDER BY u.model, u.purpose"""


class LedgerRows(Database):
    async def spent(self, since: float = 0, thread: str = "", offset: float = 0, who: str = "") -> list[SpentRow]:
        return [_spent_row(row) for row in await self._ask(_SPENT, float(offset), float(since), thread, who)]

    async def used(self, by: Grouping, since: float, offset: float = 0, who: str = "") -> list[UsedRow]:
        if by == "tool":
            return await self._used_by_tools(since, offset, who)
        rows = await self._ask(_USED.replace("NAME", _NAMES[by]), float(offset), float(since), who)
        return [_used_row(row) for row in rows]

    async def _used_by_tools(self, since: float, offset: float, who: str) -> list[UsedRow]:
        totals: dict[tuple[int, str], UsedRow] = {}
        last = 0
        while rows := await self._ask(_ANSWERS, float(offset), float(since), who, last, ANSWERS):
            for id, day, body, *counts, cost, own in rows:
                last = id
                for tool, calls in Counter(_tools_in(body)).items():
                    row = _used_by_tool(day, tool, calls, Usage(*map(int, counts)), cost, own=bool(own))
                    totals[day, tool] = added(totals[day, tool], row) if (day, tool) in totals else row
        return [totals[key] for key in sorted(totals)]

    async def add_spent(self, owner: str, thread: str, spent: Spent, purpose: str) -> None:
        await note_spent(self._change, owner, thread, spent, purpose)

    async def taken_back(self, thread: str) -> list[SpentRow]:
        return [_spent_row(row) for row in await self._ask(_TAKEN_BACK, thread)]

    async def inherited(self, thread: str) -> list[SpentRow]:
        return [_spent_row(row) for row in await self._ask(_INHERITED, thread)]


def _spent_row(row: Sequence[Any]) -> SpentRow:
    day, model, calls, *counts, cost, unpriced, own, own_cost, purpose = row
    return SpentRow(day, model, calls, Usage(*map(int, counts)), cost, int(unpriced), purpose, int(own), own_cost)


def _used_row(row: Sequence[Any]) -> UsedRow:
    day, name, calls, *counts, cost, unpriced, own, own_cost = row
    return UsedRow(day, name, calls, Usage(*map(int, counts)), cost, int(unpriced), int(own), own_cost)


def _used_by_tool(day: int, tool: str, calls: int, usage: Usage, cost: float | None, *, own: bool) -> UsedRow:
    if own:
        return UsedRow(day, tool, calls, usage, 0.0, 0, calls, cost or 0.0)
    return UsedRow(day, tool, calls, usage, cost or 0.0, int(cost is None))


class _Call(Struct):
    name: str


class _Answer(Struct):
    calls: list[_Call] = []


_read_answer = msgspec.json.Decoder(_Answer).decode


def _tools_in(body: str) -> list[str]:
    return [call.name for call in _read_answer(body).calls]
