"""How far conversations are part of the memory."""

from typing import Protocol

from msgspec import Struct


class Unconsolidated(Struct, frozen=True):
    """A conversation in which something was said that is not part of the memory yet. `owner` is whose conversation it
    is. `left`: its session is at another by now."""

    thread: str
    owner: str
    session: str
    after: int
    head: int
    active: float  # when the last entry was written
    left: bool = False


class Consolidations(Protocol):
    """What is consolidated goes with a change of the memory (memory.Consolidated). Raises StoreError."""

    async def unconsolidated(self, quiet: float, many: int, limit: int, owner: str = "") -> list[Unconsolidated]:
        """Conversations in which nothing was said for so many seconds since something new was, that were left, or with
        so many entries at least that are not consolidated; of one owner or of all. Nothing runs in them. Those that
        people have put aside, those that work for a call, and those that a job waits to consolidate are passed over."""
        ...

    async def pass_over(self, thread: str, after: int, upto: int) -> bool:
        """These entries are not to be remembered. False where others were consolidated or passed over meanwhile."""
        ...

    async def hidden(self, thread: str) -> set[int]:
        """The entries of a conversation that no search and no recall finds any more."""
        ...

    async def consolidated(self, thread: str) -> int:
        """The entry up to which a conversation is part of the memory."""
        ...
