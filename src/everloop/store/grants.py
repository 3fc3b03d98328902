"""What is allowed ahead, written once for both databases."""

from ..core.permission import Grant
from .codec import body_of, read_grant
from .database import Database


class GrantRows(Database):
    async def keep_grant(self, grant: Grant) -> None:
        await self._change(
            "INSERT INTO grants(id, owner, at, until, runs, body) VALUES($1, $2, {now}, $3, $4, $5) "
            "ON CONFLICT(id) DO NOTHING",
            grant.id,
            grant.user,
            grant.until,
            grant.runs,
            body_of(grant),
        )

    async def grants(self, user: str = "") -> list[Grant]:
        rows = await self._ask(
            "SELECT body, runs FROM grants WHERE runs > 0 AND until > {now} AND $1 IN ('', owner) ORDER BY at, id", user
        )
        return [read_grant(body, runs) for body, runs in rows]

    async def use_grant(self, id: str) -> bool:
        used = "UPDATE grants SET runs = runs - 1 WHERE id = $1 AND runs > 0 AND until > {now} RETURNING id"
        return await self._changed_one(used, id)

    async def forget_grant(self, id: str) -> bool:
        return await self._changed_one("DELETE FROM grants WHERE id = $1 RETURNING id", id)
