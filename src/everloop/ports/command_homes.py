"""Where commands of a store's conversations were run, which several machines may share."""

from typing import Protocol


class CommandHomes(Protocol):
    """Homes by an id of their own, each with a spool that knows what was begun there. Raises StoreError."""

    async def note_command_home(self, home: str) -> None: ...

    async def has_command_homes_beside(self, home: str) -> bool: ...
