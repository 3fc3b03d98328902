"""What is allowed ahead."""

from typing import Protocol

from .permission import Grant


class Grants(Protocol):
    """Raises StoreError."""

    async def keep_grant(self, grant: Grant) -> None:
        """Keep it, unless one of this name is there already."""

    async def grants(self, user: str = "") -> list[Grant]:
        """Those that still hold, with the runs that are left; of one user or of all."""

    async def use_grant(self, id: str) -> bool:
        """Use up one run. False when none is left, or its time is over."""

    async def forget_grant(self, id: str) -> bool:
        """Whether there was one to forget."""
