"""Vectors of facts, written once for both databases. They are compared in the process that asks, so that neither needs
an extension.

The version of a memory tells that a fact was changed, and a stamp beside it that vectors were kept: these change
nothing that anybody remembers.
"""

from collections.abc import Sequence
from functools import partial

from ..ports.fact_search import FactVector, VectorChanges, VectorsBehind
from ..ports.memory import Fact
from .database import Ask, Database
from .memory import FACT, fact_in

_BEHIND = """SELECT owner, version FROM memories WHERE (version > embedded OR embedder <> $1)
    AND (CAST($3 AS TEXT) = '' OR owner = $3) AND owner > $4 ORDER BY owner LIMIT $2"""
_UNEMBEDDED = f"""SELECT {FACT} AND until = 0 AND NOT EXISTS(SELECT 1 FROM fact_vectors v
    WHERE v.owner = facts.owner AND v.model = $2 AND v.fact = facts.id) ORDER BY at DESC, id LIMIT $3"""
_KEEP = """INSERT INTO fact_vectors(owner, model, fact, vector, stamp)
    SELECT owner, $2, id, $5, CAST($6 AS {int}) FROM facts WHERE owner = $1 AND id = $3 AND version = $4
    ON CONFLICT(owner, model, fact) DO UPDATE SET vector = excluded.vector, stamp = excluded.stamp"""
_TRUE = "FROM fact_vectors v JOIN facts f ON f.owner = v.owner AND f.id = v.fact AND f.until = 0"
_NEW = f"SELECT v.fact, v.vector {_TRUE} WHERE v.owner = $1 AND v.model = $2 AND v.stamp > $3"
_AGAIN = f"SELECT v.fact, v.vector {_TRUE} WHERE f.owner = $1 AND v.model = $2 AND f.version > $3"


class FactVectorRows(Database):
    async def vectors_behind(self, model: str, limit: int, owner: str = "", after: str = "") -> list[VectorsBehind]:
        return [VectorsBehind(*row) for row in await self._ask(_BEHIND, model, limit, owner, after)]

    async def unembedded(self, owner: str, model: str, limit: int) -> list[Fact]:
        return [fact_in(row) for row in await self._ask(_UNEMBEDDED, owner, model, limit)]

    async def keep_vectors(self, owner: str, model: str, vectors: Sequence[FactVector]) -> None:
        await self._do(partial(_keep, owner, model, vectors))

    async def all_embedded(self, owner: str, model: str, version: int) -> None:
        await self._do(partial(_finish, owner, model, version))

    async def vector_changes(self, owner: str, model: str, version: int, stamp: int) -> VectorChanges:
        rows = await self._glance("SELECT version, stamp, removed FROM memories WHERE owner = $1", owner)
        now, newest, removed = rows[0] if rows else (0, 0, 0)
        if version > now or version < removed:
            version, stamp, anew = 0, 0, True
        elif (version, stamp) == (now, newest):
            return VectorChanges(version, stamp)
        else:
            anew = False
        changed = "SELECT id FROM facts WHERE owner = $1 AND version > $2"
        dropped = [id for (id,) in await self._ask(changed, owner, version)] if version and version < now else []
        found = [*await self._ask(_NEW, owner, model, stamp)] if stamp < newest else []
        found += await self._ask(_AGAIN, owner, model, version) if dropped else []
        vectors = tuple((fact, bytes(vector)) for fact, vector in found)
        return VectorChanges(now, newest, anew, tuple(dropped), vectors)


async def _keep(owner: str, model: str, vectors: Sequence[FactVector], ask: Ask) -> None:
    rows = await ask("SELECT stamp FROM memories WHERE owner = $1{lock}", owner)
    if not rows:
        return
    stamp = int(rows[0][0]) + 1
    await ask("UPDATE memories SET stamp = $2 WHERE owner = $1", owner, stamp)
    for each in vectors:
        await ask(_KEEP, owner, model, each.fact, each.version, each.vector, stamp)


async def _finish(owner: str, model: str, version: int, ask: Ask) -> None:
    await ask("UPDATE memories SET embedded = $2, embedder = $3 WHERE owner = $1", owner, version, model)
    await ask("DELETE FROM fact_vectors WHERE owner = $1 AND model <> $2", owner, model)
