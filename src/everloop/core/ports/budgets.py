"""What people may spend, and what they have spent of it."""

from collections.abc import Sequence
from typing import Protocol

from ..budget import Account, Charge, Limit, LimitRow, Per, Reservation, Spending


class Budgets(Protocol):
    """Raises StoreError. What a turn's calls use is reserved and charged with its commits (rows.Commit)."""

    async def limits(self, owners: Sequence[str] = ()) -> list[LimitRow]:
        """Those that were set for these, or for anyone."""

    async def set_limit(self, owner: str, per: Per, limit: Limit | None) -> None:
        """From the next call on; None: as it goes with their role. What they have spent stays spent."""

    async def spending(self, owners: Sequence[str] = (), scopes: Sequence[str] = ("",)) -> list[Spending]:
        """What these have spent in the periods that run now, or what anyone has."""

    async def begin_anew(self, owner: str, per: Per) -> None:
        """Forget what was used in the period that runs; the next begins with the next call."""

    async def reserve(self, reservation: Reservation) -> Account | None:
        """Hold what a call may use in all of its accounts, or in none; then the one in which there is no room."""

    async def charge(self, charge: Charge) -> None:
        """Where nothing is held by this key, nothing is charged."""

    async def warn_once(self, account: Account) -> bool:
        """Whether nobody was told yet in this period."""
