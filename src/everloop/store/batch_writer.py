"""Writes that meet travel together: one round trip and one commit for all that wait (see batch_function.py).

A batch is sent without a task, and those who wait are told from where the answer is read. Only what is rare takes one:
to connect, and to send again what the server has undone.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from ..errors import StoreError
from . import batch_items
from .batch_items import Item, WriteResult
from .blocked import Blocked, QueuedWrite
from .fetching import wire_over
from .sender import UNDONE, Locked, Sender, WireOver, WriteOutcome
from .server import Server

BATCH = 100  # while one is written, those of the one before it go on; all at once would wait for one another
WARY_MS = 100  # how long a batch waits for a lock while others are known to be held


class BatchWriter:
    """One batch is under way at a time."""

    def __init__(self, server: Server, holder: str, lease_seconds: float, over: WireOver = wire_over) -> None:
        statement = batch_items.statement(holder, lease_seconds)
        self._server = server
        self._sender = Sender(server, statement, over)
        self._blocked = Blocked(Sender(server, statement, over), self._tell)
        self._loop = asyncio.get_running_loop()
        self._queue: list[QueuedWrite] = []
        self._busy = False
        self._task: asyncio.Task[Sequence[WriteOutcome]] | None = None
        self._closed = False
        self._ended = asyncio.Event()
        self.running = 0  # turns, as the port says
        self.batches = 0

    def write(self, item: Item) -> "asyncio.Future[WriteResult]":
        """Whoever is cancelled while waiting does not take the write back."""
        future: asyncio.Future[WriteResult] = self._loop.create_future()
        if self._closed:
            future.set_exception(StoreError("the store is closed"))
            return future
        self._queue.append((future, item))
        if self._busy:
            return future
        self._busy = True
        self._send_soon()
        return future

    async def close(self) -> None:
        """Write what is still queued, and nothing after it."""
        self._closed = True
        if self._busy:
            await self._ended.wait()
        await self._blocked.close()
        self._sender.close()

    def _send_soon(self) -> None:
        if self.running > 1:  # others may come in this round of the event loop
            self._loop.call_soon(self._send_next)
        else:
            self._send_next()

    def _send_next(self) -> None:
        patience = None
        if self._blocked.piles:
            self._queue = self._blocked.sort_out(self._queue)
            patience = WARY_MS
        batch, self._queue = self._queue[:BATCH], self._queue[BATCH:]
        if not batch:
            self._busy = False
            if self._closed:
                self._ended.set()
            return
        self.batches += 1
        wire = self._sender.wire
        if wire is None or wire.is_closed():
            self._send_in_a_task(batch, patience)
        else:
            question = batch_items.values_of([item for _, item in batch], patience)
            wire.ask(question, partial(self._hear, batch))

    def _hear(self, batch: list[QueuedWrite], answer: list[WriteResult] | Exception) -> None:
        if isinstance(answer, Exception):
            self._hear_of_trouble(batch, answer)
            return
        self._send_soon()
        _settle(batch, answer)

    def _hear_of_trouble(self, batch: list[QueuedWrite], error: Exception) -> None:
        if isinstance(error, UNDONE) and not isinstance(error, Locked):
            self._send_in_a_task(batch)
            return
        self._sender.hear(error)
        self._go_on(batch, [error] * len(batch))

    def _send_in_a_task(self, batch: list[QueuedWrite], patience: int | None = None) -> None:
        sending = self._sender.send([item for _, item in batch], patience)
        self._task = self._loop.create_task(sending, name="everloop-batch")
        self._task.add_done_callback(partial(self._hear_of_the_task, batch))

    def _hear_of_the_task(self, batch: list[QueuedWrite], task: "asyncio.Task[Sequence[WriteOutcome]]") -> None:
        if task.cancelled():  # somebody ends all tasks; what the server was doing is not known
            self._sender.close()
            self._go_on(batch, [StoreError("the write was broken off")] * len(batch))
        else:
            self._go_on(batch, task.result())

    def _go_on(self, batch: list[QueuedWrite], answers: Sequence[WriteOutcome]) -> None:
        """Those who wait are told, whatever it was, but for those that others keep from being written."""
        pairs = list(zip(batch, answers, strict=True))
        if blocked := [job for job, answer in pairs if isinstance(answer, Locked)]:
            self._blocked.add(blocked)
        self._send_soon()
        self._tell([(job, answer) for job, answer in pairs if not isinstance(answer, Locked)])

    def _tell(self, told: Sequence[tuple[QueuedWrite, WriteOutcome]]) -> None:
        _settle(
            [job for job, _ in told],
            [self._server.plain(answer) if isinstance(answer, Exception) else answer for _, answer in told],
        )


def _settle(batch: Sequence[QueuedWrite], answers: Sequence[WriteOutcome]) -> None:
    for (future, _), answer in zip(batch, answers, strict=True):
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
