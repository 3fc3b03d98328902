"""Which files of a workspace may hold strangers' words: those that were written while a taint lasted."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from everloop.core.ports import Store
from everloop.core.rows import Taint

Ended = Callable[[str, str], Awaitable[float | None]]
"""When a command of a thread was over; None while it runs. See Sandbox.ended."""


def place_of(workspace: Path) -> str:
    """What a workspace is called in taints."""
    return os.path.realpath(workspace)


class Tainted:
    """`place` is the folder, `ended` asks the sandbox about commands in the background."""

    def __init__(self, store: Store, place: str, ended: Ended) -> None:
        self._store = store
        self._ended = ended
        self.place = place

    async def holds(self, at: float) -> bool:
        """Whether a file whose ctime is `at` was written while strangers' words could have been written into it."""
        for taint in await self._store.taints(self.place, at):
            if not taint.command:
                return True
            over = await self.over(taint)
            if over is None or over >= at - SLACK:
                return True
        return False

    async def all(self) -> list[tuple[Taint, float | None]]:
        """All those of strangers, and when each was over; None while it goes on."""
        taints = await self._store.taints(self.place, 0.0, slack=ALWAYS)
        return [(taint, await self.over(taint) if taint.command else taint.ended) for taint in taints]

    async def over(self, taint: Taint) -> float | None:
        """When a command in the background was over, in which this taint goes on."""
        return await self._ended(taint.key.partition(":")[0], taint.command)


ALWAYS = 1e12  # seconds: all the times there are
SLACK = 0.02  # seconds by which the clock of a file system may be behind
