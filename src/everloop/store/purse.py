"""What may be done ahead, what is secret and what was spent, written once for both databases."""

from ..core.permission import Grant
from ..core.rows import SpentRow
from . import schema
from .bodies import body_of, read_grant, spent_row
from .credentials import CredentialRows
from .deeds import Ask


class PurseRows(CredentialRows):
    """What a store does with grants, secrets and bills."""

    async def keep_grant(self, grant: Grant) -> None:
        await self._change(
            "INSERT INTO grants(id, owner, at, until, runs, body) VALUES($1, $2, {now}, $3, $4, $5) "
            "ON CONFLICT(id) DO NOTHING",
            *(grant.id, grant.user, grant.until, grant.runs, body_of(grant)),
        )

    async def grants(self, user: str = "") -> list[Grant]:
        rows = await self._ask(
            "SELECT body, runs FROM grants WHERE runs > 0 AND until > {now} AND $1 IN ('', owner) ORDER BY at, id", user
        )
        return [read_grant(body, runs) for body, runs in rows]

    async def use_grant(self, id: str) -> bool:
        used = "UPDATE grants SET runs = runs - 1 WHERE id = $1 AND runs > 0 AND until > {now} RETURNING id"
        return bool(await self._change(used, id))

    async def forget_grant(self, id: str) -> bool:
        return bool(await self._change("DELETE FROM grants WHERE id = $1 RETURNING id", id))

    async def keep_secret(self, owner: str, name: str, box: bytes) -> None:
        await self._change(
            "INSERT INTO vault(owner, name, at, box) VALUES($1, $2, {now}, $3) "
            "ON CONFLICT(owner, name) DO UPDATE SET at = excluded.at, box = excluded.box",
            *(owner, name, box),
        )

    async def secret(self, owner: str, name: str) -> bytes | None:
        rows = await self._ask("SELECT box FROM vault WHERE owner = $1 AND name = $2", owner, name)
        return bytes(rows[0][0]) if rows else None

    async def secrets(self, owner: str) -> list[str]:
        return sorted(name for (name,) in await self._ask("SELECT name FROM vault WHERE owner = $1", owner))

    async def forget_secret(self, owner: str, name: str) -> bool:
        return bool(await self._change("DELETE FROM vault WHERE owner = $1 AND name = $2 RETURNING name", owner, name))

    async def spent(self, since: float = 0, thread: str = "", offset: float = 0) -> list[SpentRow]:
        return [spent_row(row) for row in await self._ask(schema.SPENT, float(offset), float(since), thread)]

    async def count_call(self, guest: str, day: int, each: int, all: int) -> bool:
        one_more = (
            "INSERT INTO guest_calls(day, who, calls) VALUES($1, $2, 1) "
            "ON CONFLICT(day, who) DO UPDATE SET calls = guest_calls.calls + 1 WHERE guest_calls.calls < $3 "
            "RETURNING calls"
        )

        async def work(ask: Ask) -> bool:
            await ask("DELETE FROM guest_calls WHERE day < $1", day - 1)
            counted = await ask(one_more, day, f"={guest}", each)
            return bool(counted) and bool(await ask(one_more, day, "all", all))

        return await self._do(work)
