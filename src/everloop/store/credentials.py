"""Who may come in through the gateway, written once for both databases. Of every secret there is only a hash."""

import secrets
from collections.abc import Sequence
from typing import Literal

from ..core.people import Role, role_named
from ..ports.audit import acting, line_of, speaking_for
from ..ports.rows import Known, TokenRow
from ..readings.keys import escaped, name_of
from .audit import AuditRows, note
from .database import Ask

_HOLDS = "(until = 0 OR until > {now})"


class CredentialRows(AuditRows):
    """What a store does with tokens, passwords, one-time links and logins of browsers."""

    async def keep_token(
        self,
        owner: str,
        name: str,
        hash: str,
        scopes: Sequence[str],
        seconds: float = 0,
        platforms: Sequence[str] = (),
    ) -> str:
        id = secrets.token_hex(8)
        detail = {"owner": owner, "scopes": scopes, "seconds": int(seconds)}
        line = line_of("token.made", id, {**detail, "platforms": platforms} if platforms else detail)

        async def work(ask: Ask) -> str:
            await ask("DELETE FROM tokens WHERE owner = $1 AND name = $2 AND until > 0 AND until <= {now}", owner, name)
            kept = await ask(
                "INSERT INTO tokens(id, owner, name, hash, scopes, at, until, platforms) "
                "VALUES($1, $2, $3, $4, $5, {now}, CASE WHEN CAST($6 AS {real}) > 0 THEN {now} + $6 ELSE 0 END, $7) "
                "ON CONFLICT DO NOTHING RETURNING id",
                id,
                owner,
                name,
                hash,
                " ".join(scopes),
                float(seconds),
                " ".join(escaped(each) for each in platforms),
            )
            if kept:
                await note(ask, line)
            return id if kept else ""

        return await self._do(work)

    async def tokens(self, owner: str) -> list[TokenRow]:
        rows = await self._ask(
            "SELECT id, owner, name, scopes, at, until, platforms FROM tokens "
            f"WHERE owner = $1 AND {_HOLDS} ORDER BY at, id",
            owner,
        )
        return [
            TokenRow(id, of, name, tuple(scopes.split()), at, until, tuple(map(name_of, platforms.split())))
            for id, of, name, scopes, at, until, platforms in rows
        ]

    async def forget_token(self, owner: str, name: str) -> bool:
        gone = "DELETE FROM tokens WHERE owner = $1 AND (name = $2 OR id = $2) RETURNING id"
        now = acting.get()

        async def work(ask: Ask) -> bool:
            revoked = [id for (id,) in await ask(gone, owner, name)]
            detail = {"owner": owner}
            await note(ask, *(line_of("token.revoked", id, detail, now) for id in revoked))
            return bool(revoked)

        return await self._do(work)

    async def known_token(self, hash: str) -> Known | None:
        rows = await self._glance(
            "SELECT t.id, t.owner, u.role, t.scopes, t.until, t.platforms FROM tokens t JOIN users u ON u.id = t.owner "
            f"WHERE t.hash = $1 AND u.blocked = 0 AND {_HOLDS}",
            hash,
        )
        found = [
            Known(id, of, role, tuple(scopes.split()), until, tuple(platforms.split()))
            for id, of, role, scopes, until, platforms in rows
        ]
        return found[0] if found else None

    async def role(self, person: str) -> Role:
        rows = await self._glance("SELECT role, blocked FROM users WHERE id = $1", person)
        if not rows:
            return Role.GUEST
        role, blocked = rows[0]
        return Role.BLOCKED if blocked else role_named(role)

    async def keep_login(self, owner: str, kind: Literal["password", "link"], hash: str, seconds: float = 0) -> None:
        detail = {"seconds": int(seconds)} if seconds else {}
        await self._change_noted(
            line_of("password.set" if kind == "password" else "link.made", owner, detail),
            "INSERT INTO logins(owner, kind, hash, at, until) "
            "VALUES($1, $2, $3, {now}, CASE WHEN CAST($4 AS {real}) > 0 THEN {now} + $4 ELSE 0 END) "
            "ON CONFLICT(owner, kind) DO UPDATE SET hash = excluded.hash, at = excluded.at, until = excluded.until "
            "RETURNING owner",
            owner,
            kind,
            hash,
            float(seconds),
        )

    async def login(self, owner: str, kind: Literal["password", "link"]) -> str | None:
        rows = await self._ask(f"SELECT hash FROM logins WHERE owner = $1 AND kind = $2 AND {_HOLDS}", owner, kind)
        return str(rows[0][0]) if rows else None

    async def forget_login(self, owner: str, kind: Literal["password", "link"]) -> bool:
        gone = "DELETE FROM logins WHERE owner = $1 AND kind = $2 RETURNING kind"
        if kind == "link":
            return await self._changed_one(gone, owner, kind)
        return await self._change_noted(line_of("password.removed", owner), gone, owner, kind)

    async def link_owner(self, hash: str) -> str:
        rows = await self._ask(f"SELECT owner FROM logins WHERE kind = 'link' AND hash = $1 AND {_HOLDS}", hash)
        return str(rows[0][0]) if rows else ""

    async def use_link(self, hash: str) -> str:
        used = f"DELETE FROM logins WHERE kind = 'link' AND hash = $1 AND {_HOLDS} RETURNING owner"
        rows = await self._change(used, hash)
        return str(rows[0][0]) if rows else ""

    async def keep_visit(self, owner: str, hash: str, page: str, seconds: float) -> str:
        id = secrets.token_hex(8)
        line = line_of("login.ok", id, by=speaking_for(owner))

        async def work(ask: Ask) -> None:
            await ask("DELETE FROM web_sessions WHERE until <= {now}")
            await ask(
                "INSERT INTO web_sessions(id, owner, hash, page, at, until) "
                "VALUES($1, $2, $3, $4, {now}, {now} + CAST($5 AS {real}))",
                id,
                owner,
                hash,
                page,
                float(seconds),
            )
            await note(ask, line)

        await self._do(work)
        return id

    async def known_visit(self, hash: str, *, page: bool = False) -> Known | None:
        rows = await self._glance(
            "SELECT w.id, w.owner, u.role FROM web_sessions w JOIN users u ON u.id = w.owner "
            f"WHERE w.{'page' if page else 'hash'} = $1 AND u.blocked = 0 AND w.until > {{now}}",
            hash,
        )
        return Known(rows[0][0], rows[0][1], rows[0][2], ()) if rows else None

    async def end_visits(self, owner: str, id: str = "", *, but: str = "") -> None:
        end = "DELETE FROM web_sessions WHERE owner = $1 AND (CAST($2 AS TEXT) = '' OR id = $2) AND id <> $3 "
        await self._change_noted(line_of("login.ended", owner), f"{end}RETURNING id", owner, id, but)
