"""What is allowed ahead, written once for both databases."""

from ..ports.audit import line_of, speaking_for
from ..ports.permission import Grant
from .audit import AuditRows
from .codec import body_of, read_grant


class GrantRows(AuditRows):
    async def keep_grant(self, grant: Grant) -> None:
        detail = {"tool": grant.tool, "user": grant.user, "until": int(grant.until), "any": grant.any}
        line = line_of("grant.made", grant.id, detail, speaking_for(grant.by))
        await self._change_noted(
            line,
            "INSERT INTO grants(id, owner, at, until, runs, body) VALUES($1, $2, {now}, $3, $4, $5) "
            "ON CONFLICT(id) DO NOTHING RETURNING id",
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
        line = line_of("grant.revoked", id)
        return await self._change_noted(line, "DELETE FROM grants WHERE id = $1 RETURNING id", id)
