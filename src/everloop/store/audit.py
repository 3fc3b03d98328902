"""The audit, written once for both databases: a trigger gives each line its number, and the hash that binds it to the
one before it (schema.py). Lines of different processes wait for one another, so there is one chain."""

from collections.abc import Sequence
from typing import Any

from ..core.log import MANY
from ..ports.audit import AuditCheck, AuditLine, AuditRow, Broken, first_broken
from .database import Ask, Database

PAGE = 1000  # lines that are read at a time

NOTE = (
    "INSERT INTO audit(at, actor, authority, deed, subject, detail) "
    "VALUES(CAST({now} * 1000 AS {int}), $1, $2, $3, $4, $5)"
)
_ROW = "SELECT id, at, actor, authority, deed, subject, detail, previous, hash FROM audit"
_FOUND = (
    f"{_ROW} WHERE at >= $1 AND (CAST($2 AS TEXT) = '' OR $2 IN (actor, subject)) "
    "AND (CAST($3 AS TEXT) = '' OR deed = $3 OR substr(deed, 1, length($3) + 1) = $3 || '.') "
    "AND id < $4 ORDER BY id DESC LIMIT $5"
)


def values_of(line: AuditLine) -> tuple[str, str, str, str, str]:
    return line.actor, line.authority, line.deed, line.subject, line.detail


async def note(ask: Ask, *lines: AuditLine) -> None:
    """Write lines in a transaction, as the last thing that it does: others wait from here until it is committed."""
    for line in lines:
        await ask(NOTE, *values_of(line))


class AuditRows(Database):
    async def note(self, line: AuditLine) -> None:
        await self._change(NOTE, *values_of(line))

    async def audit(
        self, *, since: float = 0, who: str = "", what: str = "", before: int = MANY, limit: int = 100
    ) -> list[AuditRow]:
        return _rows(await self._ask(_FOUND, int(since * 1000), who, what, before, limit))

    async def audit_head(self) -> AuditRow | None:
        return next(iter(await self.audit(limit=1)), None)

    async def check_audit(self, against: str = "") -> AuditCheck:
        last: AuditRow | None = None
        noted = int(against.partition(":")[0]) if against else 0
        while rows := _rows(await self._ask(f"{_ROW} WHERE id > $1 ORDER BY id LIMIT {PAGE}", last.id if last else 0)):
            broken = first_broken(rows, last)
            for row in rows:
                if broken and row.id >= broken.line:
                    break
                last = row
                if row.id == noted and head_of(row) != against:
                    broken = Broken(noted, "it is not the one that was noted: the lines since then were written anew")
                    break
            if broken:
                return AuditCheck(last.id if last else 0, head_of(last), broken)
        lines = last.id if last else 0
        missing = Broken(lines + 1, "it is missing, with all up to the one that was noted") if noted > lines else None
        return AuditCheck(lines, head_of(last), missing)

    async def _change_noted(self, line: AuditLine, statement: str, *values: object) -> bool:
        """Whether a statement that returns what it has changed has changed anything, which is noted then."""

        async def work(ask: Ask) -> bool:
            changed = bool(await ask(statement, *values))
            if changed:
                await note(ask, line)
            return changed

        return await self._do(work)


def head_of(row: AuditRow | None) -> str:
    """By which a line is known again: its number and its hash."""
    return f"{row.id}:{row.hash}" if row else ""


def _rows(rows: Sequence[Any]) -> list[AuditRow]:
    return [AuditRow(*row) for row in rows]
