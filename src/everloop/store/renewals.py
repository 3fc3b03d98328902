"""Leases are prolonged on a connection of their own: no search, command or batch of writes stands in their way.

A renewal need not be on the disk before it is answered: if it is lost with the server, the lease is the shorter one
from before, which is renewed again in a moment.
"""

import asyncio
from collections.abc import Sequence

from ..ports.rows import Lease, Renewal
from . import schema
from .server import Connection, Server

_ELAPSED = schema.DIALECTS["postgres"]["elapsed"]

# Of a row that someone else is writing we only look whether it is still ours: it may be tried again.
_RENEW = (
    "WITH asked AS (SELECT * FROM unnest($1::text[], $2::bigint[]) AS l(id, epoch)), "
    "free AS MATERIALIZED (SELECT t.id FROM threads t JOIN asked ON asked.id = t.id AND asked.epoch = t.epoch "
    f"  WHERE t.holder = $3 AND t.expires > {_ELAPSED} ORDER BY t.id FOR NO KEY UPDATE OF t SKIP LOCKED), "
    f"kept AS (UPDATE threads t SET expires = {_ELAPSED} + $4 FROM free WHERE t.id = free.id RETURNING t.id) "
    "SELECT asked.id, kept.id IS NOT NULL, "
    f"  coalesce(t.epoch = asked.epoch AND t.holder = $3 AND t.expires > {_ELAPSED}, false) "
    "FROM asked LEFT JOIN threads t ON t.id = asked.id LEFT JOIN kept ON kept.id = asked.id"
)
LONGEST = 10.0


class Renewals:
    """The connection is made when it is needed, and anew after any fault."""

    def __init__(self, server: Server, holder: str, lease_seconds: float) -> None:
        self._server = server
        self._holder = holder
        self._ttl = lease_seconds
        # Short enough to be tried again several times while a lease holds.
        self._seconds = min(LONGEST, max(lease_seconds / 10, min(1.0, lease_seconds / 3)))
        self._connection: Connection | None = None

    async def renew(self, leases: Sequence[Lease]) -> Renewal:
        """Raises StoreUnreachable."""
        threads, epochs = [lease.thread for lease in leases], [lease.epoch for lease in leases]
        with self._server.plainly():
            try:
                async with asyncio.timeout(self._seconds):
                    connection = await self._connected()
                    rows = await connection.fetch(_RENEW, threads, epochs, self._holder, self._ttl)
            except BaseException:  # what the server was doing is not known, so this one is not used again
                self.close()
                raise
        kept = frozenset(id for id, renewed, _ in rows if renewed)
        return Renewal(kept, frozenset(id for id, renewed, ours in rows if not renewed and not ours))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._server.connect()
            await self._connection.execute("SET synchronous_commit = off")
        return self._connection
