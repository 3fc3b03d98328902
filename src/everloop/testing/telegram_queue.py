"""What a bot has not been told yet, as Telegram keeps it: an update stays until one that follows it is asked for."""

import asyncio
from collections import deque
from typing import Any


class PollConflict(Exception):
    """Another has begun to ask."""


class UpdateQueue:
    def __init__(self) -> None:
        self.confirmed: list[int] = []  # what need not be told again, in order
        self._waiting: deque[dict[str, Any]] = deque()
        self._next = 1
        self._pollers = 0
        self._changed = asyncio.Condition()

    @property
    def pending(self) -> int:
        return len(self._waiting)

    @property
    def first(self) -> dict[str, Any] | None:
        return self._waiting[0] if self._waiting else None

    def count_from(self, number: int) -> None:
        """After a week of silence Telegram chooses the next number as it likes."""
        self._next = number

    async def put(self, update: dict[str, Any]) -> int:
        """Returns its number; one that has a number already keeps it, and is told once more."""
        async with self._changed:
            numbered = {"update_id": self._next, **update}
            self._next = max(self._next, numbered["update_id"] + 1) if "update_id" in update else self._next + 1
            self._waiting.append(numbered)
            self._changed.notify_all()
            return int(numbered["update_id"])

    async def take(self, offset: int, limit: int, seconds: float) -> list[dict[str, Any]]:
        """What follows, as soon as there is something. Raises PollConflict when somebody else asks meanwhile."""
        async with self._changed:
            self._pollers += 1
            mine = self._pollers
            self._changed.notify_all()
            self._confirm_before(offset)
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait_for(lambda: self._waiting or self._pollers != mine)
            except TimeoutError:
                return []
            if self._pollers != mine:
                raise PollConflict
            return [*self._waiting][:limit]

    async def drop_first(self) -> None:
        """It was taken by whoever is called."""
        async with self._changed:
            self.confirmed.append(self._waiting.popleft()["update_id"])
            self._changed.notify_all()

    async def drop_all(self) -> None:
        async with self._changed:
            self._waiting.clear()

    async def has(self, number: int) -> None:
        """Wait until this one is confirmed."""
        async with self._changed:
            await self._changed.wait_for(lambda: number in self.confirmed)

    async def is_empty(self) -> None:
        """Wait until all that was put is confirmed."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._waiting)

    async def is_filled(self) -> None:
        """Wait until there is something to be told."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._waiting)

    def _confirm_before(self, offset: int) -> None:
        """A number that was never given out says nothing about what waits."""
        if offset < 0:
            offset = self._waiting[offset]["update_id"] if -offset <= len(self._waiting) else 0
        while self._waiting and self._waiting[0]["update_id"] < offset <= self._next:
            self.confirmed.append(self._waiting.popleft()["update_id"])
        self._changed.notify_all()
