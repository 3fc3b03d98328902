"""The store in one SQLite file: WAL, `synchronous=FULL`, one writer, readers beside it.

Several processes may share the file. Leases are rows, fenced by their epoch; a holder whose process is gone is
succeeded at once (see holders.py).
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apsw

from ..core import log
from ..core.mail import Inbound, Mail
from ..errors import StoreCorrupt, StoreError, ThreadGone
from ..ports import Clock
from ..ports.rows import Commit, Committed, Lease, Opened, OutboxState, Receipt, Renewal, ThreadRow
from . import schema
from .channel_rows import has_more
from .claims import Claims
from .codec import THREAD, body_of, kind_of, list_of, read_letter
from .cold import ColdStore
from .copying import copy_sqlite
from .database import Ask, run_at_once
from .holders import Holders
from .letters import PENDING
from .outbox import OPEN
from .schema import Migrations
from .scrubbing import scrub
from .search import HOLDERS, KIN, IndexedEntry, mark_of
from .sqlite_commit import write_commit
from .sqlite_file import connect
from .sqlite_statements import ELAPSED, NOW, asking, in_sqlite, post, thread_of
from .watchdog import Watchdog
from .writer import Execute, Writer

Result = TypeVar("Result")

_ROW = f"SELECT {THREAD} FROM threads WHERE id = ?"
_ENTRIES = "SELECT body FROM entries WHERE thread = ? AND seq >= ? ORDER BY seq"
_MAIL = f"SELECT id, body FROM inbox WHERE thread = ? AND {PENDING} ORDER BY id"
_RENEW = (
    f"UPDATE threads SET expires = {ELAPSED} + ? WHERE id = ? AND epoch = ? AND holder = ? "
    f"AND expires > {ELAPSED} RETURNING id"
)
_SHOWN = f"UPDATE outbox SET state = 'sent', due = {NOW} WHERE key = ? AND {OPEN}"
_SETTLE = (
    "UPDATE outbox SET state = $2, unsure = unsure + $3, receipt = $4, due = {now} + $5 "
    "WHERE id = $1 AND state = 'sending' AND holder = $6"
)


class SqliteStore(ColdStore):
    """Use `await SqliteStore.connect(home)`."""

    MATCHES = "FROM said_words JOIN said s ON s.id = said_words.rowid WHERE said_words MATCH $1"
    NEWEST = "said_words.rowid DESC"
    SEES_HOLDERS = True

    def __init__(self, connection: apsw.Connection, reader: apsw.Connection, holders: Holders, ttl: float) -> None:
        self._connection = connection
        self._reader = reader
        self._execute: Execute = reader.cursor().execute
        self._holders = holders
        self._ttl = ttl
        self._data_version = 0
        self._writer = Writer(connection, Watchdog(Path(connection.filename), holders).waited)
        self._claims = Claims()
        self.holder = holders.me

    @property
    def running(self) -> int:
        return self._writer.running

    @running.setter
    def running(self, turns: int) -> None:
        self._writer.running = turns

    @classmethod
    async def connect(
        cls,
        home: Path,
        lease_seconds: float = 30.0,
        *,
        migrations: Migrations = schema.MIGRATIONS,
        synchronous: str = "FULL",
        vfs: str = "",
        clock: Clock | None = None,
    ) -> "SqliteStore":
        """Open the store of a home, bringing its schema up to date. Raises HomeError and StoreError."""
        holders, connection, reader = await asyncio.to_thread(
            connect, home, migrations=migrations, synchronous=synchronous, vfs=vfs, clock=clock
        )
        return cls(connection, reader, holders, lease_seconds)

    async def receive(self, inbound: Inbound) -> Receipt:
        if has_more(inbound):
            return await self._receive_with_more(inbound)
        body, kind = body_of(inbound.letter), kind_of(inbound.letter)

        def transaction(execute: Execute) -> Receipt:
            return post(execute, inbound, thread_of(execute, inbound), kind, body)

        return await self._writer.write(transaction)

    async def open(self, thread: str, after: int = 0) -> Opened:
        with self._reader:
            rows = self._rows(_ROW, (thread,))
            if not rows:
                raise ThreadGone(f"there is no thread {thread}")
            row = ThreadRow(*rows[0])
            first = max(row.folded, after + 1, 1)
            bodies = self._rows(_ENTRIES, (thread, first)) if row.head >= first else ()
            mail = self._rows(_MAIL, (thread,))
        entries = [log.decode(body) for (body,) in bodies]
        return Opened(row, entries, first, [Mail(id, read_letter(body)) for id, body in mail])

    async def commit(self, lease: Lease, commit: Commit) -> Committed:
        return await self._writer.write(partial(write_commit, self._holders, self._ttl, lease, commit))

    async def renew(self, leases: Sequence[Lease]) -> Renewal:
        wanted = [(self._ttl, lease.thread, lease.epoch, self.holder) for lease in leases]

        def transaction(execute: Execute) -> list[str]:
            return [values[1] for values in wanted if execute(_RENEW, values).fetchall()]

        kept = frozenset(await self._writer.write(transaction))
        return Renewal(kept, frozenset(lease.thread for lease in leases) - kept)

    async def settle(self, row: int, state: OutboxState, receipt: str = "", again_in: float = 0.0) -> None:
        unsure = state == "unsure"
        await self._change(_SETTLE, row, "pending" if unsure else state, int(unsure), receipt, again_in, self.holder)

    async def acknowledge(self, keys: Sequence[str], given: Sequence[int] = ()) -> None:
        def transaction(execute: Execute) -> None:
            for key in keys:
                execute(_SHOWN, (key,))
            for mail in given:
                execute("UPDATE inbox SET taken = 2 WHERE id = ?", (mail,))

        await self._writer.write(transaction)

    async def changed(self) -> bool:
        version = self._rows("PRAGMA data_version")[0][0]
        before, self._data_version = self._data_version, version
        return bool(version != before)

    async def scrub(self) -> None:
        connection = self._connection
        await asyncio.to_thread(scrub, Path(connection.filename), connection.open_vfs, self._holders)

    async def copy_to(self, path: str) -> None:
        connection = self._connection
        await asyncio.to_thread(copy_sqlite, Path(connection.filename), Path(path), connection.open_vfs)

    async def close(self) -> None:
        await asyncio.to_thread(self._writer.close)
        self._reader.close()
        self._connection.close()
        self._holders.close()

    def _alive(self, holder: str) -> bool:
        return self._holders.alive(holder)

    def _rows(self, sql: str, values: tuple[object, ...] = ()) -> list[Any]:
        try:
            rows: list[Any] = self._execute(sql, values).fetchall()
        except apsw.CorruptError as error:
            raise StoreCorrupt(f"the database is damaged ({error}): restore a backup") from error
        except apsw.Error as error:
            raise StoreError(f"the database cannot be read: {error}") from error
        return rows

    async def _ask(self, statement: str, *values: object) -> Sequence[Any]:
        return self._rows(in_sqlite(statement), values)

    async def _glance(self, statement: str, *values: object) -> Sequence[Any]:
        sql = in_sqlite(statement)
        found = self._writer.read(sql, values)
        return self._rows(sql, values) if found is None else found

    async def _change(self, statement: str, *values: object) -> Sequence[Any]:
        def transaction(execute: Execute) -> Sequence[Any]:
            rows: Sequence[Any] = execute(in_sqlite(statement), values).fetchall()
            return rows

        return await self._writer.write(transaction)

    async def _do(self, work: Callable[[Ask], Coroutine[Any, Any, Result]]) -> Result:
        return await self._writer.write(lambda execute: run_at_once(work(asking(execute))))

    def _query(self, words: Sequence[str], begin: bool) -> str:
        return " AND ".join(f'"{word}"{"*" if begin else ""}' for word in words)

    async def _holding(self, words: Sequence[str], threads: Sequence[str]) -> list[list[int]]:
        """Most words are rare, and then it is quicker to look at all that hold them than for the mark of a thread."""
        marks = " OR ".join(f'"{mark_of(thread)}"' for thread in threads)
        found = []
        for word in words:
            ids = self._with(f'"{word}"')
            found.append(ids if len(ids) < HOLDERS or len(threads) > KIN else self._with(f'"{word}" AND ({marks})'))
        return found

    def _with(self, query: str) -> list[int]:
        newest = "SELECT rowid FROM said_words WHERE said_words MATCH ? ORDER BY rowid DESC LIMIT ?"
        return [id for (id,) in self._rows(newest, (query, HOLDERS))]

    async def _forget_words(self, ask: Ask, threads: Sequence[str]) -> None:
        them = "IN (SELECT value FROM {each}($1{json}))"
        await ask(f"DELETE FROM said_words WHERE rowid IN (SELECT id FROM said WHERE thread {them})", list_of(threads))
        await ask(f"DELETE FROM said WHERE thread {them}", list_of(threads))

    async def _add_words(self, ask: Ask, thread: str, owner: str, lines: Sequence[IndexedEntry]) -> None:
        for line in lines:
            add = "INSERT INTO said(thread, seq, owner, who) VALUES($1, $2, $3, $4) RETURNING id"
            rows = await ask(add, thread, line.seq, owner, line.who)
            await ask("INSERT INTO said_words(rowid, words) VALUES($1, $2)", rows[0][0], line.words)
