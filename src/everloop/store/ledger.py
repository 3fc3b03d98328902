"""What model calls used, written once for both databases."""

from collections.abc import Sequence
from typing import Any

from ..core.prompt import Usage
from ..core.rows import SpentRow
from .database import Database

# The time zone's offset, since when, and in which thread ("" is any).
_SPENT = """SELECT CAST(floor((at + CAST($1 AS {real})) / 86400) AS {int}) AS day, model, count(*),
    sum(input), sum(output), sum(cache_read), sum(cache_write), sum(reasoning), coalesce(sum(cost), 0.0),
    count(*) - count(cost), purpose
    FROM usage WHERE at >= $2 AND CAST($3 AS TEXT) IN ('', thread)
    GROUP BY 1, model, purpose ORDER BY 1, model, purpose"""
# Of the conversations that another one stands for now, after what was said last in them was taken back.
_TAKEN_BACK = """WITH RECURSIVE stood(id) AS (
    SELECT id FROM threads WHERE replaced = $1 UNION SELECT t.id FROM threads t JOIN stood s ON t.replaced = s.id)
    SELECT 0, model, count(*), sum(input), sum(output), sum(cache_read), sum(cache_write), sum(reasoning),
    coalesce(sum(cost), 0.0), count(*) - count(cost), purpose
    FROM usage WHERE thread IN (SELECT id FROM stood) GROUP BY model, purpose ORDER BY model, purpose"""


class LedgerRows(Database):
    async def spent(self, since: float = 0, thread: str = "", offset: float = 0) -> list[SpentRow]:
        return [_spent_row(row) for row in await self._ask(_SPENT, float(offset), float(since), thread)]

    async def taken_back(self, thread: str) -> list[SpentRow]:
        return [_spent_row(row) for row in await self._ask(_TAKEN_BACK, thread)]


def _spent_row(row: Sequence[Any]) -> SpentRow:
    day, model, calls, *counts, cost, unpriced, purpose = row
    return SpentRow(day, model, calls, Usage(*map(int, counts)), cost, unpriced, purpose)
