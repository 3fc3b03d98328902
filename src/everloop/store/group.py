"""Writes that meet travel together: one round trip and one commit for all that wait."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from ..core.errors import StoreError

Item = TypeVar("Item")

BATCH = 100  # while one is written, those of the one before it go on; all at once would wait for one another


class Group(Generic[Item]):
    """`send` writes a batch and gives one result, or one error, for each item. One batch is under way at a time."""

    def __init__(self, send: Callable[[list[Item]], Awaitable[Sequence[Any]]]) -> None:
        self._send = send
        self._queue: list[tuple[asyncio.Future[Any], Item]] = []
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.batches = 0

    def write(self, item: Item) -> "asyncio.Future[Any]":
        """Whoever is cancelled while waiting does not take the write back."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._closed:
            future.set_exception(StoreError("the store is closed"))
            return future
        self._queue.append((future, item))
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="everloop-group")
        return future

    async def close(self) -> None:
        """Write what is still queued, and nothing after it."""
        self._closed = True
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while self._queue:
            batch, self._queue = self._queue[:BATCH], self._queue[BATCH:]
            _tell([future for future, _ in batch], await self._attempt([item for _, item in batch]))
        self._task = None

    async def _attempt(self, items: list[Item]) -> Sequence[Any]:
        self.batches += 1
        try:
            return await self._send(items)
        except Exception as error:  # those who wait must be told, whatever it was
            return [error] * len(items)


def _tell(futures: list["asyncio.Future[Any]"], results: Sequence[Any]) -> None:
    for future, result in zip(futures, results, strict=True):
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
