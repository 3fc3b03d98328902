"""People and their accounts, written once for both databases."""

import secrets
from collections.abc import Sequence
from typing import Any

from ..core.people import OWNER, Role, role_named
from ..ports.audit import AuditLine, acting, line_of
from ..ports.directory import CodeKind, Person, StandingCode
from .audit import AuditRows, note
from .database import Ask

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none of which looks like another
LENGTH = 8
IS_ERASING = 2  # in the column `blocked`, where 1 is blocked
_SOMEONE = "SELECT id, name, role, created, blocked FROM users"
# A person's id may be the account that they were first known by. When it was taken from them it is not theirs, and
# nobody else's either: whoever writes from it would go on as who is named so.
_WRITES = """SELECT id, name, role, created,
    CASE WHEN EXISTS(SELECT 1 FROM accounts WHERE account = $1) THEN blocked ELSE 1 END
    FROM users WHERE id = coalesce((SELECT owner FROM accounts WHERE account = $1), $1)"""
_HOLDS = "until > {now}"
_CHANGE = (
    "UPDATE users SET name = coalesce(CAST($2 AS TEXT), name), role = coalesce(CAST($3 AS TEXT), role), "
    "blocked = coalesce(CAST($4 AS {int}), blocked) WHERE id = $1"
)


class DirectoryRows(AuditRows):
    async def people(self) -> list[Person]:
        rows = await self._ask(f"{_SOMEONE} ORDER BY id <> '{OWNER}', created, id")
        accounts = await self._ask("SELECT owner, account FROM accounts ORDER BY at, account")
        return [_person(row, [account for owner, account in accounts if owner == row[0]]) for row in rows]

    async def person(self, id: str) -> Person | None:
        return await self._do(lambda ask: _found(ask, id))

    async def introduce(self, person: Person) -> bool:
        role = person.role.name.lower()
        line = line_of("person.added", person.id, {"role": role, "accounts": person.accounts})

        async def work(ask: Ask) -> bool:
            added = await ask(
                "INSERT INTO users(id, name, role, created) VALUES($1, $2, $3, {now}) "
                "ON CONFLICT DO NOTHING RETURNING id",
                person.id,
                person.name,
                role,
            )
            for account in person.accounts if added else ():
                await _link(ask, account, person.id)
            if added:
                await note(ask, line)
            return bool(added)

        return await self._do(work)

    async def change_person(
        self, id: str, *, name: str | None = None, role: Role | None = None, blocked: bool | None = None
    ) -> bool:
        lines = _changes(id, name, blocked)
        given = role.name.lower() if role is not None else None
        now = acting.get()

        async def work(ask: Ask) -> bool:
            before = await ask(f"SELECT role FROM users WHERE id = $1 AND blocked <> {IS_ERASING}{{lock}}", id)
            if not before:
                return False
            await ask(_CHANGE, id, name, given, int(blocked) if blocked is not None else None)
            if given and before[0][0] != given:
                roles = {"from": before[0][0], "to": given}
                await note(ask, line_of("person.role", id, roles, now))
            await note(ask, *lines)
            return True

        return await self._do(work)

    async def known_by(self, account: str) -> Person | None:
        rows = await self._ask(_WRITES, account)
        return _person(rows[0], ()) if rows else None

    async def link(self, account: str, person: str) -> str:
        line = line_of("account.linked", person, {"account": account})

        async def work(ask: Ask) -> str:
            if not (known := await _found(ask, person)) or known.erasing:
                return f"there is no person {person!r}"
            if account != person and (
                await _owns(ask, account) or await ask("SELECT 1 FROM users WHERE id = $1", account)
            ):
                return f"{account} is somebody already, with conversations or a role of their own"
            if not await _link(ask, account, person):
                return f"{account} belongs to somebody else"
            for table in _BEGUN:
                await ask(f"UPDATE {table} SET owner = $2 WHERE owner = $1", account, person)
            await note(ask, line)
            return ""

        return await self._do(work)

    async def unlink(self, account: str) -> bool:
        now = acting.get()

        async def work(ask: Ask) -> bool:
            owners = [
                owner for (owner,) in await ask("DELETE FROM accounts WHERE account = $1 RETURNING owner", account)
            ]
            await note(ask, *(line_of("account.unlinked", owner, {"account": account}, now) for owner in owners))
            return bool(owners)

        return await self._do(work)

    async def ask_code(self, kind: CodeKind, account: str, session: str, event: str, seconds: float) -> StandingCode:
        async def work(ask: Ask) -> StandingCode:
            await ask("DELETE FROM codes WHERE until <= {now}")
            code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
            await ask(
                "INSERT INTO codes(code, kind, owner, session, event, at, until) "
                "VALUES($1, $2, $3, $4, $5, {now}, {now} + CAST($6 AS {real})) ON CONFLICT DO NOTHING",
                code,
                kind,
                account,
                session,
                event,
                float(seconds),
            )
            found = await ask(f"SELECT {_CODE} FROM codes WHERE kind = $1 AND owner = $2", kind, account)
            return StandingCode(*found[0])

        return await self._do(work)

    async def codes(self, kind: CodeKind) -> list[StandingCode]:
        rows = await self._ask(f"SELECT {_CODE} FROM codes WHERE kind = $1 AND {_HOLDS} ORDER BY at, code", kind)
        return [StandingCode(*row) for row in rows]

    async def use_code(self, kind: CodeKind, code: str) -> StandingCode | None:
        used = f"DELETE FROM codes WHERE kind = $1 AND code = $2 AND {_HOLDS} RETURNING {_CODE}"
        now = acting.get()

        async def work(ask: Ask) -> StandingCode | None:
            rows = await ask(used, kind, code.upper())
            found = StandingCode(*rows[0]) if rows else None
            if found and kind == "pair":
                await note(ask, line_of("person.paired", found.account, by=now))
            return found

        return await self._do(work)


_BEGUN = ("sessions", "threads", "inbox", "outbox")  # where it may stand that an account was told something
_CODE = "code, owner, session, event, at, until"


def _changes(id: str, name: str | None, blocked: bool | None) -> list[AuditLine]:
    """What is noted of a change beside the role."""
    renamed = [line_of("person.renamed", id)] if name is not None else []
    heard = [line_of("person.blocked" if blocked else "person.unblocked", id)] if blocked is not None else []
    return renamed + heard


async def _found(ask: Ask, id: str) -> Person | None:
    rows = await ask(f"{_SOMEONE} WHERE id = $1", id)
    accounts = await ask("SELECT account FROM accounts WHERE owner = $1 ORDER BY at, account", id)
    return _person(rows[0], [account for (account,) in accounts]) if rows else None


async def _owns(ask: Ask, account: str) -> bool:
    """Whether anything is kept for this account under its own name, that would be somebody else's then."""
    said = "SELECT 1 FROM inbox WHERE owner = $1 AND reply IS NULL"  # commands have one
    return bool(await ask(f"SELECT 1 FROM threads WHERE owner = $1 AND head > 0 UNION ALL {said} LIMIT 1", account))


async def _link(ask: Ask, account: str, person: str) -> Sequence[Any]:
    """The place that is named as the account, their conversation of two, is free for them: what another had there, who
    has spoken from that account before or has brought it in from another agent, stays theirs and goes on elsewhere."""
    linked = await ask(
        "INSERT INTO accounts(account, owner, at) VALUES($1, $2, {now}) "
        "ON CONFLICT(account) DO UPDATE SET owner = accounts.owner WHERE accounts.owner = excluded.owner "
        "RETURNING account",
        account,
        person,
    )
    if linked:
        await ask("DELETE FROM sessions WHERE key = $1 AND owner NOT IN ($1, $2)", account, person)
    return linked


def _person(row: Sequence[Any], accounts: Sequence[str]) -> Person:
    id, name, role, at, blocked = row
    return Person(id, name, role_named(role), at, bool(blocked), tuple(accounts), blocked == IS_ERASING)
