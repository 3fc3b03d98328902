"""Writes that meet travel together: one round trip and one commit for all that wait (see procedure.py).

A batch is sent without a task, and those who wait are told from where the answer is read. Only what is rare takes one:
to connect, and to send again what the server has undone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import asyncpg

from ..core.errors import StoreError
from . import procedure
from .procedure import Item, Row
from .server import Server
from .wire import Wire

Result = TypeVar("Result")
_Job = tuple["asyncio.Future[Row]", Item]
_Answer = Row | Exception

BATCH = 100  # while one is written, those of the one before it go on; all at once would wait for one another
RETRIES = 5

_REFUSED = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError)
_UNDONE = (*_REFUSED, asyncpg.TransactionRollbackError)


class Group:
    """One batch is under way at a time."""

    def __init__(self, server: Server, holder: str, lease_seconds: float) -> None:
        self._server = server
        self._same = procedure.same_values(holder, lease_seconds)
        self._loop = asyncio.get_running_loop()
        self._wire: Wire[Row] | None = None
        self._queue: list[_Job] = []
        self._busy = False
        self._task: asyncio.Task[Sequence[_Answer]] | None = None
        self._closed = False
        self._ended = asyncio.Event()
        self.running = 0  # turns, as the port says
        self.batches = 0

    def write(self, item: Item) -> "asyncio.Future[Row]":
        """Whoever is cancelled while waiting does not take the write back."""
        future: asyncio.Future[Row] = self._loop.create_future()
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
        if self._wire is not None:
            self._wire.close()

    def _send_soon(self) -> None:
        if self.running > 1:  # others may come in this round of the event loop
            self._loop.call_soon(self._send_next)
        else:
            self._send_next()

    def _send_next(self) -> None:
        batch, self._queue = self._queue[:BATCH], self._queue[BATCH:]
        if not batch:
            self._busy = False
            if self._closed:
                self._ended.set()
            return
        self.batches += 1
        if self._wire is None or self._wire.is_closed():
            self._send_in_a_task(batch)
        else:
            self._wire.ask(procedure.values_of([item for _, item in batch]), partial(self._hear, batch))

    def _hear(self, batch: list[_Job], answer: list[Row] | Exception) -> None:
        if isinstance(answer, _UNDONE):
            self._send_in_a_task(batch)
            return
        self._send_soon()
        _tell(batch, [self._plain(answer)] * len(batch) if isinstance(answer, Exception) else answer)

    def _plain(self, error: Exception) -> Exception:
        try:
            with self._server.plainly():
                raise error
        except Exception as plain:  # whatever it was, those who wait are told
            return plain

    def _send_in_a_task(self, batch: list[_Job]) -> None:
        self._task = self._loop.create_task(self._send([item for _, item in batch]), name="everloop-group")
        self._task.add_done_callback(partial(self._go_on, batch))

    def _go_on(self, batch: list[_Job], task: "asyncio.Task[Sequence[_Answer]]") -> None:
        """Those who wait are told, whatever it was."""
        if task.cancelled():  # somebody ends all tasks; what the server was doing is not known
            if self._wire is not None:
                self._wire.close()
            told: Sequence[_Answer] = [StoreError("the write was broken off")] * len(batch)
        else:
            error = task.exception()
            told = [error] * len(batch) if isinstance(error, Exception) else task.result()
        _tell(batch, told)
        self._send_next()

    async def _send(self, items: list[Item]) -> Sequence[_Answer]:
        """One transaction for all; if the database refuses it for what one of them holds, one for each."""
        with self._server.plainly():
            try:
                return await again_after_a_deadlock(lambda: self._write(items))
            except _REFUSED:
                if len(items) == 1:
                    raise
        return [await self._send_alone(item) for item in items]

    async def _send_alone(self, item: Item) -> _Answer:
        try:
            return (await self._send([item]))[0]
        except StoreError as error:
            return error

    async def _write(self, items: list[Item]) -> list[Row]:
        if self._wire is None or self._wire.is_closed():
            self._wire = await self._connect()
        answered: asyncio.Future[list[Row] | Exception] = self._loop.create_future()
        self._wire.ask(procedure.values_of(items), answered.set_result)
        answer = await asyncio.shield(answered)  # the wire tells it also when nobody waits any more
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _connect(self) -> Wire[Row]:
        connection = await self._server.connect()
        try:
            await connection.execute(procedure.CREATE)
            await connection.prepare(procedure.CALL, name=procedure.NAME)
        except BaseException:
            connection.terminate()
            raise
        return Wire(connection, procedure.NAME, procedure.VALUES, self._same, procedure.read_row)


async def again_after_a_deadlock(write: Callable[[], Awaitable[Result]]) -> Result:
    """Locks are taken in order, so this is rare; the server has then undone all of it."""
    for _ in range(RETRIES):
        try:
            return await write()
        except asyncpg.TransactionRollbackError:
            continue
    return await write()


def _tell(batch: list[_Job], answers: Sequence[_Answer]) -> None:
    for (future, _), answer in zip(batch, answers, strict=True):
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
