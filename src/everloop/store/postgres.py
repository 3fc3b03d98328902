"""The store in PostgreSQL, for several machines: the same tables and promises as in SQLite.

Time is the server's. Nobody can see from afar whether a process lives, so a dead holder is succeeded when its lease
runs out. Letters, commits and receipts that meet share one round trip (group.py); what is rare is written
by plain transactions (transactions.py), which take their locks in the same order: session, then threads by id.
"""

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from ..core import log
from ..core.conversation import Deed
from ..core.errors import Fenced, MailRefused, StoreError
from ..core.mail import Inbound, Mail, Outbound
from ..core.rows import (
    Action,
    Commit,
    Committed,
    Lease,
    Opened,
    OutboxRow,
    OutboxState,
    Receipt,
    Renewal,
    ThreadRow,
    Whose,
)
from . import procedure, schema, transactions
from .archive import HOLDERS, KIN, ArchiveRows, Line, mark_of
from .bodies import (
    NOT_ASIDE,
    NOT_YOURS,
    SENDING_SECONDS,
    read_letter,
    read_outbound,
)
from .channel_rows import has_more, receipts_in
from .deeds import Ask
from .fetching import wire_over
from .group import Group
from .renewals import Renewals
from .schema import Migrations
from .sender import WireOver, again_if_undone
from .server import Connection, Pool, Server
from .transactions import NOW, PENDING

Result = TypeVar("Result")

_OPEN = "state IN ('pending', 'sending')"
_ROW = "t.id, t.session, t.owner, t.head, t.folded, t.state, coalesce(t.holder, ''), t.epoch, t.spawned_by"


class PostgresStore(ArchiveRows):
    """Use `await PostgresStore.connect(url)`."""

    MATCHES = "FROM said s WHERE s.words @@ CAST(CAST($1 AS TEXT) AS TSQUERY)"
    NEWEST = "s.id DESC"

    def __init__(self, server: Server, pool: Pool, lease_seconds: float, over: WireOver = wire_over) -> None:
        self._server = server
        self._pool = pool
        self._ttl = lease_seconds
        self._snapshot = ""
        self.holder = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._group = Group(server, self.holder, lease_seconds, over)
        self._renewals = Renewals(server, self.holder, lease_seconds)

    @property
    def running(self) -> int:
        return self._group.running

    @running.setter
    def running(self, turns: int) -> None:
        self._group.running = turns

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
        pool = await server.pool()
        try:
            with server.plainly():
                async with pool.acquire() as connection:
                    await server.migrate(connection, migrations)
        except BaseException:
            pool.terminate()
            raise
        return cls(server, pool, lease_seconds, over)

    async def receive(self, inbound: Inbound) -> Receipt:
        if has_more(inbound):
            return await self._transact(lambda connection: transactions.receive(connection, inbound))
        row = await self._group.write(procedure.receive(inbound))
        if row.thread is None:
            raise MailRefused(NOT_YOURS)
        return Receipt(row.number, row.thread, row.ok, row.answer)

    async def command(self, inbound: Inbound, action: Action | Deed, reply: str, otherwise: str = "") -> Receipt:
        return await self._transact(
            lambda connection: transactions.command(connection, inbound, action, reply, otherwise)
        )

    async def open(self, thread: str, after: int = 0) -> Opened:
        rows = await self._rows(
            f"SELECT {_ROW}, greatest(t.folded, $2 + 1, 1), "
            "(SELECT array_agg(body ORDER BY seq) FROM entries "
            " WHERE thread = t.id AND seq >= greatest(t.folded, $2 + 1, 1)), "
            f"(SELECT array_agg(id ORDER BY id) FROM inbox WHERE thread = t.id AND {PENDING}), "
            f"(SELECT array_agg(body ORDER BY id) FROM inbox WHERE thread = t.id AND {PENDING}) "
            "FROM threads t WHERE t.id = $1",
            *(thread, after),
        )
        if not rows:
            raise StoreError(f"there is no thread {thread}")
        *row, first, entries, ids, letters = rows[0]
        mail = [Mail(id, read_letter(body)) for id, body in zip(ids or (), letters or (), strict=True)]
        return Opened(ThreadRow(*row), [log.decode(body) for body in entries or ()], first, mail)

    async def mail(self, thread: str) -> list[Mail]:
        rows = await self._rows(f"SELECT id, body FROM inbox WHERE thread = $1 AND {PENDING} ORDER BY id", thread)
        return [Mail(id, read_letter(body)) for id, body in rows]

    async def session(self, key: str) -> ThreadRow | None:
        return await self._row("SELECT thread FROM sessions WHERE key = $1", key)

    async def latest(self, owner: str) -> ThreadRow | None:
        return await self._row(
            "SELECT i.thread FROM inbox i JOIN threads t ON t.id = i.thread "
            "JOIN sessions s ON s.key = t.session AND s.thread = t.id "
            f"WHERE i.owner = $1 {NOT_ASIDE} ORDER BY i.id DESC LIMIT 1",
            owner,
        )

    async def named(self, beginning: str, limit: int = 2) -> list[str]:
        sql = "SELECT id FROM threads WHERE starts_with(id, $1) ORDER BY id LIMIT $2"
        return [id for (id,) in await self._rows(sql, beginning, limit)]

    async def commit(self, lease: Lease, commit: Commit) -> Committed:
        row = await self._group.write(procedure.commit(lease, commit))
        if not row.ok:
            raise Fenced(f"thread {lease.thread} is in other hands, or the letter has to go through the inbox")
        return Committed(row.head, row.epoch, row.started, row.released, row.number, row.came)

    async def renew(self, leases: Sequence[Lease]) -> Renewal:
        return await self._renewals.renew(leases)

    async def give_back(self, lease: Lease) -> None:
        await self._rows(
            "UPDATE threads SET holder = NULL WHERE id = $1 AND $2::bigint IN (0, epoch) AND holder = $3",
            *(lease.thread, lease.epoch, self.holder),
        )

    async def ended(self, mail: int) -> int:
        rows = await self._rows("SELECT ended FROM inbox WHERE id = $1", mail)
        return int(rows[0][0]) if rows else 0

    async def unfinished(self, thread: str) -> list[int]:
        rows = await self._rows(
            "SELECT id FROM inbox WHERE thread = $1 AND ended = 0 AND kind IN ('said', 'undo') ORDER BY id", thread
        )
        return [id for (id,) in rows]

    async def waiting(self, whose: Whose | None = None) -> list[str]:
        narrowed = ""
        values: tuple[list[str], ...] = ()
        if whose is not None:
            narrowed = " AND (t.owner = ANY($1) OR split_part(t.session, ':', 1) = ANY($2))"
            values = [*whose.principals], [*whose.channels]
        rows = await self._rows(
            "SELECT DISTINCT t.id FROM inbox i JOIN threads t ON t.id = i.thread "
            "WHERE i.ended = 0 AND (i.taken = 0 OR t.state = 'running') "
            f"AND (t.holder IS NULL OR t.expires <= {NOW}){narrowed}",
            *values,
        )
        return [id for (id,) in rows]

    async def stopping(self, threads: Sequence[str]) -> list[str]:
        rows = await self._rows(
            f"SELECT DISTINCT thread FROM inbox WHERE {PENDING} AND kind = 'stop' AND thread = ANY($1)", list(threads)
        )
        return [thread for (thread,) in rows]

    async def due(self, channel: str, limit: int = 100) -> list[OutboxRow]:
        # The first open row of each chat, read in the order of the index. One that two processes want goes to the
        # first; the other skips it, or sees that it is no longer due.
        rows = await self._rows(
            f"WITH ripe AS (SELECT id, state AS was FROM outbox o WHERE channel = $1 AND {_OPEN} AND due <= {NOW} "
            f"  AND id = (SELECT min(id) FROM outbox WHERE channel = $1 AND chat = o.chat AND {_OPEN}) "
            "  ORDER BY chat, id LIMIT $2 FOR UPDATE SKIP LOCKED) "
            f"UPDATE outbox o SET state = 'sending', attempts = o.attempts + 1, holder = $3, due = {NOW} + $4, "
            "  unsure = CASE WHEN ripe.was = 'sending' THEN 1 ELSE o.unsure END FROM ripe WHERE o.id = ripe.id "
            f"RETURNING o.id, o.thread, o.body, o.attempts, o.unsure, {NOW} - o.at, o.parts, "
            f"  {NOW} - greatest(o.at, o.since)",
            *(channel, limit, self.holder, SENDING_SECONDS),
        )
        return [
            OutboxRow(
                *(id, thread, read_outbound(body), attempts, bool(unsure)),
                *(float(age), receipts_in(parts), float(trying)),
            )
            for id, thread, body, attempts, unsure, age, parts, trying in sorted(rows, key=lambda row: row["id"])
        ]

    async def settle(self, row: int, state: OutboxState, receipt: str = "", again_in: float = 0.0) -> None:
        await self._group.write(procedure.settle(row, state, receipt, again_in))

    async def unshown(self, chat: str) -> list[Outbound]:
        rows = await self._rows(
            f"SELECT body FROM outbox WHERE channel = $1 AND chat = $2 AND {_OPEN} ORDER BY id",
            *(chat.partition(":")[0], chat),
        )
        return [read_outbound(body) for (body,) in rows]

    async def acknowledge(self, keys: Sequence[str], given: Sequence[int] = ()) -> None:
        await self._rows(
            f"WITH shown AS (SELECT id FROM outbox WHERE key = ANY($1) AND {_OPEN} ORDER BY id FOR UPDATE) "
            f"UPDATE outbox SET state = 'sent', due = {NOW} FROM shown WHERE outbox.id = shown.id",
            list(keys),
        )
        if given:
            await self._rows("UPDATE inbox SET taken = 2 WHERE id = ANY($1)", list(given))

    async def asking(self, session: str = "") -> list[ThreadRow]:
        rows = await self._rows(
            f"SELECT {_ROW} FROM threads t WHERE t.state = 'waiting' AND $1 IN ('', t.session) "
            "ORDER BY t.created, t.id",
            session,
        )
        return [ThreadRow(*row) for row in rows]

    async def changed(self) -> bool:
        # What is running and what has ended on the server: it differs as soon as anyone's write has committed.
        snapshot = str((await self._rows("SELECT pg_current_snapshot()::text"))[0][0])
        before, self._snapshot = self._snapshot, snapshot
        return snapshot != before

    async def close(self) -> None:
        await self._group.close()
        self._renewals.close()
        self._pool.terminate()

    def _alive(self, holder: str) -> bool:
        return True  # nobody can see that from afar

    async def _row(self, thread: str, value: str) -> ThreadRow | None:
        rows = await self._rows(f"SELECT {_ROW} FROM threads t WHERE t.id = ({thread})", value)
        return ThreadRow(*rows[0]) if rows else None

    async def _rows(self, statement: str, *values: object) -> Any:
        async def ask(connection: Connection) -> Any:
            return await connection.fetch(statement, *values)

        with self._server.plainly():
            return await again_if_undone(lambda: self._with_connection(ask))

    async def _ask(self, statement: str, *values: object) -> Sequence[Any]:
        rows: Sequence[Any] = await self._rows(transactions.in_postgres(statement), *values)
        return rows

    async def _do(self, work: Callable[[Ask], Coroutine[Any, Any, Result]]) -> Result:
        return await self._transact(lambda connection: work(transactions.asking(connection)))

    def _query(self, words: Sequence[str], begin: bool) -> str:
        return " & ".join(f"'{word}'{':*' if begin else ''}" for word in words)

    async def _holding(self, words: Sequence[str], threads: Sequence[str]) -> list[list[int]]:
        """In one go, for each statement is a way to the server and back."""
        marks = " | ".join(f"'{mark_of(thread)}'" for thread in threads)
        rows = await self._rows(
            "SELECT w.place, h.id FROM unnest($1::text[]) WITH ORDINALITY AS w(query, place), "
            "LATERAL (SELECT s.id FROM said s WHERE s.words @@ w.query::tsquery ORDER BY s.id DESC LIMIT $2) AS h",
            *([f"'{word}' & ({marks})" if len(threads) <= KIN else f"'{word}'" for word in words], HOLDERS),
        )
        found: list[list[int]] = [[] for _ in words]
        for place, id in rows:
            found[place - 1].append(id)
        return found

    async def _add_words(self, ask: Ask, thread: str, owner: str, lines: Sequence[Line]) -> None:
        await ask(
            "INSERT INTO said(thread, seq, owner, who, words) "
            "SELECT $1, l.seq, $2, l.who, array_to_tsvector(string_to_array(l.words, ' ')) "
            "FROM unnest($3::bigint[], $4::text[], $5::text[]) AS l(seq, who, words) ORDER BY l.seq",
            *(thread, owner, [line.seq for line in lines], [line.who for line in lines]),
            [line.words for line in lines],
        )

    async def _transact(self, transaction: Callable[[Connection], Awaitable[Result]]) -> Result:
        async def whole(connection: Connection) -> Result:
            async with connection.transaction():
                return await transaction(connection)

        with self._server.plainly():
            return await again_if_undone(lambda: self._with_connection(whole))

    async def _with_connection(self, use: Callable[[Connection], Awaitable[Result]]) -> Result:
        async with self._pool.acquire() as connection:
            try:
                return await use(connection)
            except (TimeoutError, asyncio.CancelledError):
                # To wait until the server knows that we gave up could take longer than we have.
                connection.terminate()
                raise
