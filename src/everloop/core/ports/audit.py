"""Who did what, when, by which authority."""

from typing import Protocol

from ..audit import AuditCheck, AuditLine, AuditRow
from ..rows import MANY


class Audit(Protocol):
    """Lines are only ever added. What the store does itself it notes in the transaction that does it. Raises
    StoreError."""

    async def note(self, line: AuditLine) -> None:
        """Write a line of something that is done outside of the store."""

    async def audit(
        self, *, since: float = 0, who: str = "", what: str = "", before: int = MANY, limit: int = 100
    ) -> list[AuditRow]:
        """The latest lines first: since a time, of what somebody did or was done to them, of one deed or of all that
        begin so (`person`), and before a number."""

    async def audit_head(self) -> AuditRow | None:
        """The last line."""

    async def check_audit(self, against: str = "") -> AuditCheck:
        """Whether every line is as it was written; also the one whose number and hash were noted elsewhere
        (`against`, as `head` says it). Reads all of them."""
