"""Events on their way to one reader, in order and bounded: one that is too slow is cut off, for nobody
waits for a reader (there is no backpressure)."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from ..core.events import Event

LIMIT = 10_000  # events that a slow reader may be behind before it is cut off


class LocalFeed:
    """`async for event in feed`: it ends for a reader that is too slow, and after `end`."""

    __slots__ = ("_events", "_loop", "_over", "_waiter")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: deque[Event] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._over = False

    def put(self, event: Event) -> None:
        if self._over:
            return
        if len(self._events) < LIMIT:
            self._events.append(event)
        else:
            self._over = True  # its reader begins again from the log
        self._wake()

    def end(self) -> None:
        """Nothing comes after what has come."""
        self._over = True
        self._wake()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._over:
                raise StopAsyncIteration
            await self._wait()
        return self._events.popleft()

    async def beating(self, seconds: float) -> AsyncIterator[Event | None]:
        """The same, and None whenever nothing has come for so long."""
        while True:
            while self._events:
                yield self._events.popleft()
            if self._over:
                return
            timer = self._loop.call_later(seconds, self._wake)
            await self._wait()
            timer.cancel()
            if not self._events and not self._over:
                yield None

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
