"""Events on their way to one reader, in order and bounded: one that is too slow is cut off, for nobody
waits for a reader (there is no backpressure)."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType

from ..ports.events import Event

LIMIT = 10_000  # events that a slow reader may be behind before it is cut off


class LocalFeed:
    """`async for event in feed`, inside `with feed`: it ends for a reader that is too slow, and after `end`."""

    __slots__ = ("_events", "_leave", "_loop", "_over", "_waiter")

    def __init__(self, leave: "Callable[[LocalFeed], None]") -> None:
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        self._events: deque[Event] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._over = False

    def __enter__(self) -> "LocalFeed":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def put(self, event: Event) -> None:
        if self._over:
            return
        if len(self._events) < LIMIT:
            self._events.append(event)
        else:
            self._over = True  # its reader begins again from the log
        if (waiter := self._waiter) is not None and not waiter.done():
            waiter.set_result(None)

    def end(self) -> None:
        """Nothing comes after what has come."""
        self._over = True
        self._wake()

    def close(self) -> None:
        """As leaving `with feed` does."""
        self._leave(self)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._over:
                raise StopAsyncIteration
            await self._wait()
        return self._events.popleft()

    async def next_ones(self, seconds: float = 0.0) -> Sequence[Event] | None:
        """All that has come and was not read yet, once there is something; none of them when nothing has come for so
        many seconds, and None when nothing will come any more."""
        if not self._events and not self._over:
            timer = self._loop.call_later(seconds, self._wake) if seconds else None
            waiter = self._waiter = self._loop.create_future()
            try:
                await waiter
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
        if not self._events:
            return None if self._over else ()
        events, self._events = self._events, deque()
        return events

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if (waiter := self._waiter) is not None and not waiter.done():
            waiter.set_result(None)
