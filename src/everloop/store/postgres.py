"""The store in PostgreSQL, for several machines: the same tables and promises as in SQLite.

Time is the server's. Nobody can see from afar whether a process lives, so a dead holder is succeeded when its lease
runs out. Letters, commits and receipts that meet share one round trip (batch_writer.py).
"""

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ..core import log
from ..core.mail import Decision, Inbound, Mail
from ..errors import Fenced, MailRefused, ThreadGone
from ..ports.rows import Commit, Committed, Lease, Opened, OutboxState, Receipt, Renewal, ThreadRow
from . import batch_items, schema
from .batch_writer import BatchWriter
from .budgets import read_account
from .channel_rows import has_more
from .claims import Claims
from .codec import THREAD, read_letter
from .cold import ColdStore
from .database import Ask
from .fetching import wire_over
from .letters import NO_LONGER, NOT_YOURS, PENDING
from .outbox import OPEN
from .renewals import Renewals
from .schema import Migrations
from .search import HOLDERS, KIN, IndexedEntry, mark_of
from .sender import WireOver, again_if_undone
from .server import Connection, Pool, Server
from .snapshot import copy_postgres, has_rows, load_postgres

Result = TypeVar("Result")

_OPEN = (
    f"SELECT {THREAD}, greatest(t.folded, $2::BIGINT + 1, 1), "
    "(SELECT array_agg(body ORDER BY seq) FROM entries WHERE thread = t.id "
    "AND seq >= greatest(t.folded, $2::BIGINT + 1, 1)), "
    f"(SELECT array_agg(id ORDER BY id) FROM inbox WHERE thread = t.id AND {PENDING}), "
    f"(SELECT array_agg(body ORDER BY id) FROM inbox WHERE thread = t.id AND {PENDING}) "
    "FROM threads t WHERE t.id = $1"
)
_SHOWN = (
    f"WITH shown AS (SELECT id FROM outbox WHERE key = ANY($1) AND {OPEN} ORDER BY id FOR UPDATE) "
    "UPDATE outbox SET state = 'sent', due = {now} FROM shown WHERE outbox.id = shown.id"
)


class PostgresStore(ColdStore):
    """Use `await PostgresStore.connect(url)`."""

    MATCHES = "FROM said s WHERE s.words @@ CAST(CAST($1 AS TEXT) AS TSQUERY)"
    NEWEST = "s.id DESC"
    SEES_HOLDERS = False  # from afar

    def __init__(self, server: Server, pool: Pool, lease_seconds: float, over: WireOver = wire_over) -> None:
        self._server = server
        self._pool = pool
        self._ttl = lease_seconds
        self._snapshot = ""
        self.holder = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._claims = Claims()
        self._writer = BatchWriter(server, self.holder, lease_seconds, over)
        self._renewals = Renewals(server, self.holder, lease_seconds)

    @property
    def running(self) -> int:
        return self._writer.running

    @running.setter
    def running(self, turns: int) -> None:
        self._writer.running = turns

    @classmethod
    async def connect(
        cls,
        url: str,
        lease_seconds: float = 30.0,
        *,
        migrations: Migrations = schema.MIGRATIONS,
        over: WireOver = wire_over,
    ) -> "PostgresStore":
        """Reach the server and bring the schema up to date. Raises StoreError."""
        server = Server(url)
        return cls(server, await pool_of(server, migrations), lease_seconds, over)

    async def receive(self, inbound: Inbound) -> Receipt:
        if has_more(inbound):
            return await self._receive_with_more(inbound)
        row = await self._writer.write(batch_items.receive(inbound))
        if row.thread is None:
            raise MailRefused(NO_LONGER if isinstance(inbound.letter, Decision) else NOT_YOURS)
        return Receipt(row.number, row.thread, row.ok, row.answer)

    async def open(self, thread: str, after: int = 0) -> Opened:
        rows = await self._rows(_OPEN, thread, after)
        if not rows:
            raise ThreadGone(f"there is no thread {thread}")
        *row, first, entries, ids, letters = rows[0]
        mail = [Mail(id, read_letter(body)) for id, body in zip(ids or (), letters or (), strict=True)]
        return Opened(ThreadRow(*row), [log.decode(body) for body in entries or ()], first, mail)

    async def commit(self, lease: Lease, commit: Commit) -> Committed:
        row = await self._writer.write(batch_items.commit(lease, commit))
        if not row.ok:
            raise Fenced(f"thread {lease.thread} is in other hands, or the letter has to go through the inbox")
        full = read_account(row.answer) if row.answer else None
        return Committed(row.head, row.epoch, row.started, row.released, row.number, row.came, full)

    async def renew(self, leases: Sequence[Lease]) -> Renewal:
        return await self._renewals.renew(leases)

    async def settle(self, row: int, state: OutboxState, receipt: str = "", again_in: float = 0.0) -> None:
        await self._writer.write(batch_items.settle(row, state, receipt, again_in))

    async def acknowledge(self, keys: Sequence[str], given: Sequence[int] = ()) -> None:
        await self._ask(_SHOWN, list(keys))
        if given:
            await self._ask("UPDATE inbox SET taken = 2 WHERE id = ANY($1)", list(given))

    async def changed(self) -> bool:
        # What is running and what has ended on the server: it differs as soon as anyone's write has committed.
        snapshot = str((await self._rows("SELECT pg_current_snapshot()::text"))[0][0])
        before, self._snapshot = self._snapshot, snapshot
        return snapshot != before

    async def copy_to(self, path: str) -> None:
        await self._alone(partial(copy_postgres, to=Path(path)))

    async def load_from(self, path: str) -> None:
        """All that a copy has, in the place of what is here. Raises StoreError."""
        await self._alone(partial(load_postgres, file=Path(path)))

    async def has_rows(self) -> bool:
        """Whether somebody has used it."""
        return await self._alone(has_rows)

    async def _alone(self, use: Callable[[Connection], Awaitable[Result]]) -> Result:
        """On a connection of its own: others are not to wait for what takes long."""
        with self._server.plainly():
            connection = await self._server.connect()
            try:
                return await use(connection)
            finally:
                connection.terminate()

    async def close(self) -> None:
        await self._writer.close()
        self._renewals.close()
        self._pool.terminate()

    def _alive(self, holder: str) -> bool:
        return True

    async def _rows(self, statement: str, *values: object) -> Any:
        async def ask(connection: Connection) -> Any:
            return await connection.fetch(statement, *values)

        with self._server.plainly():
            return await again_if_undone(lambda: self._with_connection(ask))

    async def _ask(self, statement: str, *values: object) -> Sequence[Any]:
        rows: Sequence[Any] = await self._rows(_in_postgres(statement), *values)
        return rows

    async def _change(self, statement: str, *values: object) -> Sequence[Any]:
        return await self._ask(statement, *values)

    async def _do(self, work: Callable[[Ask], Coroutine[Any, Any, Result]]) -> Result:
        async def whole(connection: Connection) -> Result:
            async with connection.transaction():
                return await work(_asking(connection))

        with self._server.plainly():
            return await again_if_undone(lambda: self._with_connection(whole))

    def _query(self, words: Sequence[str], begin: bool) -> str:
        return " & ".join(f"'{word}'{':*' if begin else ''}" for word in words)

    async def _holding(self, words: Sequence[str], threads: Sequence[str]) -> list[list[int]]:
        """In one go, for each statement is a way to the server and back."""
        marks = " | ".join(f"'{mark_of(thread)}'" for thread in threads)
        rows = await self._rows(
            "SELECT w.place, h.id FROM unnest($1::text[]) WITH ORDINALITY AS w(query, place), "
            "LATERAL (SELECT s.id FROM said s WHERE s.words @@ w.query::tsquery ORDER BY s.id DESC LIMIT $2) AS h",
            [f"'{word}' & ({marks})" if len(threads) <= KIN else f"'{word}'" for word in words],
            HOLDERS,
        )
        found: list[list[int]] = [[] for _ in words]
        for place, id in rows:
            found[place - 1].append(id)
        return found

    async def _forget_words(self, ask: Ask, threads: Sequence[str]) -> None:
        await ask("DELETE FROM said WHERE thread = ANY($1)", list(threads))

    async def scrub(self) -> None:
        """The server's vacuum does it in its own time."""

    async def _add_words(self, ask: Ask, thread: str, owner: str, lines: Sequence[IndexedEntry]) -> None:
        await ask(
            "INSERT INTO said(thread, seq, owner, who, words) "
            "SELECT $1, l.seq, $2, l.who, array_to_tsvector(string_to_array(l.words, ' ')) "
            "FROM unnest($3::bigint[], $4::text[], $5::text[]) AS l(seq, who, words) ORDER BY l.seq",
            thread,
            owner,
            [line.seq for line in lines],
            [line.who for line in lines],
            [line.words for line in lines],
        )

    async def _with_connection(self, use: Callable[[Connection], Awaitable[Result]]) -> Result:
        async with self._pool.acquire() as connection:
            try:
                return await use(connection)
            except (TimeoutError, asyncio.CancelledError):
                # To wait until the server knows that we gave up could take longer than we have.
                connection.terminate()
                raise


async def pool_of(server: Server, migrations: Migrations = schema.MIGRATIONS) -> Pool:
    """Connections to a server whose schema is up to date. Raises StoreError."""
    pool = await server.pool()
    try:
        with server.plainly():
            async with pool.acquire() as connection:
                await server.migrate(connection, migrations)
    except BaseException:
        pool.terminate()
        raise
    return pool


def _asking(connection: Connection) -> Ask:
    async def ask(statement: str, *values: object) -> Sequence[Any]:
        rows: Sequence[Any] = await connection.fetch(_in_postgres(statement), *values)
        return rows

    return ask


def _in_postgres(statement: str) -> str:
    return statement.format_map(schema.DIALECTS["postgres"])
