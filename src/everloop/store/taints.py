"""While which calls could write in a folder, written once for both databases.

Taints of calls begin and end with their commits: see sqlite_commit.py and batch_function.py.
"""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import structs

from ..core.mail import Outbound
from ..ports.permission import PromptFile
from ..ports.rows import Taint
from .codec import body_of, read_watched
from .database import Ask, Database

_ROW = "key, place, began, ended, outside, command"
_BEGIN = (
    "INSERT INTO taints(key, owner, place, began, ended, outside, command) VALUES($1, $2, $3, $4, NULL, $5, '') "
    "ON CONFLICT (key) DO UPDATE SET ended = NULL, outside = {greatest}(taints.outside, excluded.outside) RETURNING key"
)
_WATCH = (
    "INSERT INTO watched(place, name, owner, version, body, held) VALUES($1, $2, $3, 1, $4, $5) "
    "ON CONFLICT DO NOTHING RETURNING name"
)
_WATCH_ON = (
    "UPDATE watched SET version = $3, body = $4, held = $5 "
    "WHERE place = $1 AND name = $2 AND version = $3 - 1 RETURNING name"
)
_QUESTION = (
    "INSERT INTO outbox(key, thread, owner, channel, chat, body, at) "
    "SELECT CAST($1 AS TEXT), id, owner, CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), {now} "
    "FROM threads WHERE id = $2 ON CONFLICT DO NOTHING"
)


class TaintRows(Database):
    """What a store knows of taints, and of the files that are watched because of them."""

    async def taints(self, place: str, at: float | None = None, slack: float = 0.02) -> list[Taint]:
        if at is None:
            return await self._taints(self._ask, "ended IS NULL", place)
        when = "outside = 1 AND began <= $2 AND (ended IS NULL OR ended >= $3)"
        return await self._taints(self._ask, when, place, at + slack, at - slack)

    async def begin_taint(self, owner: str, taint: Taint) -> None:
        await self._change(_BEGIN, taint.key, owner, taint.place, taint.began, int(taint.outside))

    async def end_taint(self, key: str, at: float) -> None:
        async def work(ask: Ask) -> None:
            await ask("DELETE FROM taints WHERE key = $1 AND outside = 0", key)
            await ask("UPDATE taints SET ended = $2 WHERE key = $1 AND ended IS NULL", key, at)

        await self._do(work)

    async def merge_taints(self, place: str, most: int) -> None:
        counted = "SELECT count(*) FROM taints WHERE place = $1 AND ended IS NOT NULL"
        if (await self._ask(counted, place))[0][0] > most:
            await self._do(lambda ask: self._merge(ask, place, most // 2))

    async def watched(self, place: str) -> list[PromptFile]:
        rows = await self._ask("SELECT body FROM watched WHERE place = $1 ORDER BY name", place)
        return [read_watched(body) for (body,) in rows]

    async def held_back(self) -> list[PromptFile]:
        rows = await self._ask("SELECT body FROM watched WHERE held = 1 ORDER BY place, name")
        return [read_watched(body) for (body,) in rows]

    async def keep_watched(
        self,
        place: str,
        rows: Sequence[PromptFile],
        *,
        free: bool = False,
        question: Outbound | None = None,
    ) -> bool:
        async def work(ask: Ask) -> bool:
            if free and await ask("SELECT 1 FROM taints WHERE place = $1 AND ended IS NULL LIMIT 1", place):
                return False
            kept = [bool(await _keep(ask, place, row)) for row in rows]
            if all(kept) and question and (held := rows[0].held):
                address = question.address
                await ask(_QUESTION, question.key, held.thread, address.channel, str(address), body_of(question))
            return all(kept)

        return await self._do(work)

    async def _merge(self, ask: Ask, place: str, most: int) -> None:
        before = await self._taints(ask, "ended IS NOT NULL", place)
        after = {taint.key: taint for taint in merged(before, most)}
        for taint in before:
            if (now := after.get(taint.key)) is None:
                await ask("DELETE FROM taints WHERE key = $1", taint.key)
            elif now != taint:
                await ask("UPDATE taints SET ended = $2 WHERE key = $1", taint.key, now.ended)

    async def _taints(self, ask: Ask, when: str, *values: object) -> list[Taint]:
        rows = await ask(f"SELECT {_ROW} FROM taints WHERE place = $1 AND {when} ORDER BY began, key", *values)
        return [Taint(key, place, began, ended, bool(outside), cmd) for key, place, began, ended, outside, cmd in rows]


async def _keep(ask: Ask, place: str, row: PromptFile) -> Sequence[object]:
    if row.version == 1:
        return await ask(_WATCH, place, row.name, row.owner, body_of(row), int(row.held is not None))
    return await ask(_WATCH_ON, place, row.name, row.version, body_of(row), int(row.held is not None))


def merged(taints: Sequence[Taint], most: int) -> list[Taint]:
    """The same times and more, in at most so many: where the shortest pauses were, there are none any more."""
    ordered = sorted(taints, key=lambda taint: taint.began)
    pauses = [after.began - (before.ended or 0.0) for before, after in pairwise(ordered)]
    shortest = sorted(range(len(pauses)), key=pauses.__getitem__)[: max(0, len(ordered) - most)]
    closed = set(shortest)
    kept: list[Taint] = []
    for at, taint in enumerate(ordered):
        if at - 1 in closed:
            last = kept[-1]
            kept[-1] = structs.replace(last, ended=max(last.ended or 0.0, taint.ended or 0.0))
        else:
            kept.append(taint)
    return kept
