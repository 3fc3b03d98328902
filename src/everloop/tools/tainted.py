"""Which files of a workspace may hold strangers' words: those that were written while a taint lasted."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from ..ports import Taints
from ..ports.rows import Taint

Ended = Callable[[str, str], Awaitable[float | None]]
"""When a command of a thread was over; None while it runs. See Sandbox.ended."""


def place_of(workspace: Path) -> str:
    """What a workspace is called in taints."""
    return os.path.realpath(workspace)


class Tainted:
    """`place` is the folder, `ended` asks the sandbox about commands in the background."""

    def __init__(self, store: Taints, place: str, ended: Ended) -> None:
        self._store = store
        self._ended = ended
        self.place = place

    async def holds(self, at: float) -> bool:
        """Whether a file whose ctime is `at` was written while strangers' words could have been written into it."""
        for taint in await self._store.taints(self.place, at):
            if not taint.command:
                return True
            over = await self.over(taint)
            if not over or over >= at - SLACK:
                return True
        return False

    async def all(self) -> list[tuple[Taint, float | None]]:
        """All those of strangers, and when each was over; None while it goes on."""
        taints = await self._store.taints(self.place, 0.0, slack=ALWAYS)
        return [(taint, await self.over(taint) if taint.command else taint.ended) for taint in taints]

    async def over(self, taint: Taint) -> float | None:
        """When the command was over with which this taint goes on; None while it runs, 0 if nobody knows one."""
        thread = taint.key.partition(":")[0]
        names = (taint.command,) if taint.command.startswith("b") else (taint.command, f"b{taint.command}")
        ends = [await self._ended(thread, name) for name in names]
        return None if None in ends else max(end or 0.0 for end in ends)


ALWAYS = 1e12  # seconds: all the times there are
SLACK = 0.02  # seconds by which the clock of a file system may be behind
