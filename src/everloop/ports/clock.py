"""The time."""

from typing import Protocol


class Clock(Protocol):
    """The time, for all that a process does later. A simulated one is handed over in its place."""

    def now(self) -> float:
        """Seconds since 1970."""

    async def sleep(self, seconds: float) -> None: ...
