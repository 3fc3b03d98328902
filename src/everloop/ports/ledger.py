"""What was used."""

from typing import Protocol

from .rows import Grouping, Spent, SpentRow, UsedRow


class Ledger(Protocol):
    """Raises StoreError."""

    async def spent(self, since: float = 0, thread: str = "", offset: float = 0, who: str = "") -> list[SpentRow]:
        """What was used, by day and model, of all threads or one, by one person or all. `offset` is the time zone's, in
        seconds."""

    async def used(self, by: Grouping, since: float, offset: float = 0, who: str = "") -> list[UsedRow]:
        """What was used, by day and something else, by one person or all."""

    async def add_spent(self, owner: str, thread: str, spent: Spent, purpose: str) -> None:
        """Something was used that no entry tells of, in this thread ("": in none yet)."""

    async def taken_back(self, thread: str) -> list[SpentRow]:
        """What was used, by model, in the conversations that this one stands for: what was said last in them has been
        taken back, or said in other words."""

    async def inherited(self, thread: str) -> list[SpentRow]:
        """What was used, by model, for what it has from the conversations that it branched off, which go on counting
        it."""
