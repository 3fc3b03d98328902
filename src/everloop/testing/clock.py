"""A time that stands still until it is moved on, so that a year passes in a moment, in every process that shares it.

`everloop.open(clock=…)` takes it, over either database. Leases are elapsed time and go on by the real one.
"""

import asyncio
from pathlib import Path


class SimulatedClock:
    """Its time lies in a file, which several processes may share. Who sleeps is awake again when it was moved on."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def now(self) -> float:
        return float(self._file.read_text())

    def set(self, now: float) -> None:
        beside = self._file.with_name(f"{self._file.name}.new")
        beside.write_text(repr(now))
        beside.rename(self._file)

    async def sleep(self, seconds: float) -> None:
        until = self.now() + seconds
        while self.now() < until:  # noqa: ASYNC110  another process may move it on
            await asyncio.sleep(0.001)
