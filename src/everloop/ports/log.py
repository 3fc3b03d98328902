"""The log of a thread, and the lease to append to it."""

from collections.abc import Sequence
from typing import Protocol

from ..core.log import MANY, Entry
from .conversation import Written
from .rows import Commit, Committed, Lease, Opened, Renewal


class Log(Protocol):
    """Raises StoreError."""

    async def open(self, thread: str, after: int = 0) -> Opened: ...

    async def read(self, thread: str, after: int = 0, limit: int = MANY) -> list[Entry]:
        """The entries of `history`."""

    async def history(self, thread: str, after: int = 0, limit: int = MANY) -> list[Written]:
        """Entries with their places and times; what stands before a branch began is read from its parents."""

    async def folded(self, thread: str, until: int) -> int:
        """The seq of the last Compacted entry up to there, in the thread or its parents; 0 if there is none."""

    async def commit(self, lease: Lease, commit: Commit) -> Committed:
        """Append, fenced. Takes the lease if `lease.epoch` is 0. Raises Fenced; then nothing was written.

        A lease that has run out but was not taken still lets results in, but starts nothing: that raises Fenced.
        """

    async def renew(self, leases: Sequence[Lease]) -> Renewal:
        """Prolong what is still ours. An expired lease is never renewed. Nothing else that is asked of the store holds
        this up, and one that cannot be prolonged now holds up no other."""

    async def give_back(self, lease: Lease) -> None:
        """Release in the middle of a turn: a clean shutdown, which does not count as a crash.

        Epoch 0 releases whatever this process holds of the thread: the commit that was to take it broke off.
        """
