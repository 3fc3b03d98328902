"""A way to write to the server that mends itself: its wire is made when it is needed, and anew after any trouble."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import asyncpg

from . import batch_function, batch_items
from .batch_items import Item, Question, WriteResult
from .fetching import AnyWire, wire_over
from .server import LOCK_SECONDS, WAIT_SECONDS, Connection, Server
from .wire import Statement

Result = TypeVar("Result")
WriteOutcome = WriteResult | Exception
RowWire = AnyWire[Question, WriteResult]
WireOver = Callable[[Connection, Any, Statement[Question, WriteResult]], RowWire]

RETRIES = 5

Locked = asyncpg.LockNotAvailableError
_REFUSED = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError)
UNDONE = (*_REFUSED, asyncpg.TransactionRollbackError, Locked)


class Sender:
    """`wire` may be asked by others, too, if it is there, is not closed, and nothing is being sent."""

    def __init__(self, server: Server, statement: Statement[Question, WriteResult], over: WireOver = wire_over) -> None:
        self._server = server
        self._statement = statement
        self._over = over
        self.wire: RowWire | None = None

    async def send(self, items: Sequence[Item], patience: int | None = None) -> Sequence[WriteOutcome]:
        """One transaction for all; if the database refuses it for what one of them holds, one for each."""
        try:
            return await again_after_a_deadlock(lambda: self._ask(items, patience))
        except _REFUSED as error:
            if len(items) == 1:
                return [error]
        except Exception as error:  # whatever it was, those who wait are told
            return [error] * len(items)
        return [answer for item in items for answer in await self.send([item], patience)]

    def hear(self, error: Exception) -> None:
        """After what the server did not simply undo, nobody knows what else is amiss: the next wire is a new one."""
        if not isinstance(error, UNDONE):
            self.close()

    def close(self) -> None:
        if self.wire is not None:
            self.wire.close()
            self.wire = None

    async def _ask(self, items: Sequence[Item], patience: int | None) -> list[WriteResult]:
        if self.wire is None or self.wire.is_closed():
            self.close()
            self.wire = await self._connect()
        answered: asyncio.Future[list[WriteResult] | Exception] = asyncio.get_running_loop().create_future()
        self.wire.ask(batch_items.values_of(items, patience), answered.set_result)
        answer = await asyncio.shield(answered)  # the wire tells it also when nobody waits any more
        if isinstance(answer, Exception):
            self.hear(answer)
            raise answer
        return answer

    async def _connect(self) -> RowWire:
        connection = await self._server.connect()
        try:
            await connection.execute(batch_function.CREATE)
            prepared = await connection.prepare(self._statement.sql, name=self._statement.name)
            return self._over(connection, prepared, self._statement)
        except BaseException:
            connection.terminate()
            raise


async def again_after_a_deadlock(write: Callable[[], Awaitable[Result]]) -> Result:
    """Locks are taken in order, so this is rare; the server has then undone all of it."""
    for _ in range(RETRIES):
        try:
            return await write()
        except asyncpg.TransactionRollbackError:
            continue
    return await write()


async def again_if_undone(write: Callable[[], Awaitable[Result]]) -> Result:
    """A lock that others hold is waited for a few times, each on a connection that is free in between."""
    loop = asyncio.get_running_loop()
    last = loop.time() + WAIT_SECONDS - LOCK_SECONDS
    while True:
        try:
            return await again_after_a_deadlock(write)
        except Locked:
            if loop.time() >= last:
                raise
