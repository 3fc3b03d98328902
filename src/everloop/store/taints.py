"""While which calls could write in a folder, written once for both databases.

Taints begin and end with the commits of their calls: see step.py and procedure.py.
"""

from ..core.rows import Taint
from ..core.taint import merged
from .deeds import Ask
from .purse import Purse

_ROW = "key, place, began, ended, outside, command"


class Taints(Purse):
    """What a store knows of taints."""

    async def taints(self, place: str, at: float | None = None, slack: float = 0.02) -> list[Taint]:
        if at is None:
            return await self._taints(self._ask, "ended IS NULL", place)
        when = "outside = 1 AND began <= $2 AND (ended IS NULL OR ended >= $3)"
        return await self._taints(self._ask, when, place, at + slack, at - slack)

    async def end_taint(self, key: str, at: float) -> None:
        async def work(ask: Ask) -> None:
            await ask("DELETE FROM taints WHERE key = $1 AND outside = 0", key)
            await ask("UPDATE taints SET ended = $2 WHERE key = $1 AND ended IS NULL", key, at)

        await self._do(work)

    async def merge_taints(self, place: str, most: int) -> None:
        counted = "SELECT count(*) FROM taints WHERE place = $1 AND ended IS NOT NULL"
        if (await self._ask(counted, place))[0][0] > most:
            await self._do(lambda ask: self._merge(ask, place, most // 2))

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
