"""A PostgreSQL store by a clock that was handed over: for simulations, in which a year passes in a moment.

The time of a PostgreSQL store is the server's, the same for all machines, and no statement is told another. So here a
`clock_timestamp` of our own is put into the schema and found before the server's, on the connections of such a store
alone; it tells what lies in a table, and that is brought up to date before each statement. Everyone who shares the
database in a simulation shares the clock, whose time only ever goes forward. Leases are not touched by it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ..core.mail import Inbound
from ..ports import Clock
from ..ports.rows import Commit, Committed, Lease, OutboxState, Receipt
from .database import Ask
from .fetching import wire_over
from .postgres import PostgresStore, pool_of
from .sender import WireOver
from .server import Pool, Server

Result = TypeVar("Result")

_SHADOW = (
    "SELECT pg_advisory_xact_lock(hashtext('everloop clock ' || current_schema()))",
    "CREATE TABLE IF NOT EXISTS simulated_time(at DOUBLE PRECISION NOT NULL)",
    "DELETE FROM simulated_time",
    "INSERT INTO simulated_time VALUES({now!r})",
    "CREATE OR REPLACE FUNCTION clock_timestamp() RETURNS TIMESTAMPTZ LANGUAGE plpgsql VOLATILE AS "
    "$$ BEGIN RETURN (SELECT to_timestamp(at) FROM simulated_time); END $$",
)


class ClockedPostgresStore(PostgresStore):
    """Use `await ClockedPostgresStore.connect_by(clock, url)`."""

    def __init__(self, server: Server, pool: Pool, lease_seconds: float, over: WireOver, clock: Clock) -> None:
        super().__init__(server, pool, lease_seconds, over)
        self._clock = clock
        self._reached = clock.now()
        self._telling = asyncio.Lock()

    @classmethod
    async def connect_by(
        cls, clock: Clock, url: str, lease_seconds: float = 30.0, *, over: WireOver = wire_over
    ) -> "ClockedPostgresStore":
        """As `PostgresStore.connect`. Raises StoreError."""
        server = Server(url)
        server.search_before_the_catalog(await _shadow(server, clock.now()))
        return cls(server, await pool_of(server), lease_seconds, over, clock)

    async def receive(self, inbound: Inbound) -> Receipt:
        await self._tell()
        return await super().receive(inbound)

    async def commit(self, lease: Lease, commit: Commit) -> Committed:
        await self._tell()
        return await super().commit(lease, commit)

    async def settle(self, row: int, state: OutboxState, receipt: str = "", again_in: float = 0.0) -> None:
        await self._tell()
        await super().settle(row, state, receipt, again_in)

    async def _rows(self, statement: str, *values: object) -> Any:
        await self._tell()
        return await super()._rows(statement, *values)

    async def _do(self, work: Callable[[Ask], Coroutine[Any, Any, Result]]) -> Result:
        await self._tell()
        return await super()._do(work)

    async def _tell(self) -> None:
        async with self._telling:
            now = self._clock.now()
            if now > self._reached:
                await super()._rows("UPDATE simulated_time SET at = $1 WHERE at < $1", now)
                self._reached = now


async def _shadow(server: Server, now: float) -> str:
    """Put the clock in place, and name the schema that it lies in."""
    connection = await server.connect()
    try:
        with server.plainly():
            async with connection.transaction():
                for statement in _SHADOW:
                    await connection.execute(statement.format(now=now))
            return str(await connection.fetchval("SELECT quote_ident(current_schema())"))
    finally:
        connection.terminate()
