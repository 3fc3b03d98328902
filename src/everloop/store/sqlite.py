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
import msgspec

from ..core import log
from ..core.conversation import Branch, Deed, ResumeThread
from ..core.errors import StoreCorrupt, StoreError
from ..core.log import Entry
from ..core.mail import Inbound, Mail, Outbound
from ..core.ports import Clock
from ..core.rows import Action, Commit, Committed, Lease, Opened, OutboxRow, OutboxState, Receipt, Renewal, ThreadRow
from . import schema
from .archive import HOLDERS, KIN, ArchiveRows, Line, mark_of
from .blocker import Blocker
from .bodies import NOT_ASIDE, SENDING_SECONDS, body_of, kind_of, read_letter, read_outbound
from .channel_rows import has_more, keep_more, receipts_in
from .database import connect
from .deeds import Ask, do, run_at_once
from .holders import Holders
from .schema import Migrations
from .statements import NOW, PENDING, become, new_thread, post, queue, stop, thread_of
from .step import write_step
from .writer import Execute, Writer

Result = TypeVar("Result")

_ROW = "id, session, owner, head, folded, state, coalesce(holder, ''), epoch, spawned_by"


class SqliteStore(ArchiveRows):
    """Use `await SqliteStore.connect(home)`."""

    MATCHES = "FROM said_words JOIN said s ON s.id = said_words.rowid WHERE said_words MATCH $1"
    NEWEST = "said_words.rowid DESC"

    def __init__(self, connection: apsw.Connection, reader: apsw.Connection, holders: Holders, ttl: float) -> None:
        self._connection = connection
        self._reader = reader
        self._execute: Execute = reader.cursor().execute
        self._holders = holders
        self._ttl = ttl
        self._data_version = 0
        self._writer = Writer(connection, Blocker(Path(connection.filename), holders).waited)
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
        body, kind = body_of(inbound.letter), kind_of(inbound.letter)
        more = has_more(inbound)

        def transaction(execute: Execute) -> Receipt:
            thread = thread_of(execute, inbound)
            if more:
                run_at_once(keep_more(_asking(execute), inbound))
            return post(execute, inbound, thread, kind, body)

        return await self._writer.write(transaction)

    async def command(self, inbound: Inbound, action: Action | Deed, reply: str, otherwise: str = "") -> Receipt:
        body = body_of(inbound.letter)

        def transaction(execute: Execute) -> Receipt:
            thread = thread_of(execute, inbound)
            run_at_once(keep_more(_asking(execute), inbound))
            receipt = post(execute, inbound, thread, "command", body, taken=1)
            if not receipt.fresh:
                return receipt
            text = reply
            if not isinstance(action, str):
                done = run_at_once(do(_asking(execute), inbound.owner, str(inbound.address), action))
                text = reply if done else otherwise
                if done and isinstance(action, ResumeThread):
                    thread = action.thread
                if done and isinstance(action, Branch):
                    thread = action.id
                    if action.letter:
                        become(execute, receipt.id, thread, action.letter)
                        return Receipt(receipt.id, thread, True)
            elif action == "new":
                thread = new_thread(execute, inbound)
            elif action == "stop":
                text = reply if stop(execute, inbound, thread) else otherwise
            elif action == "tell":
                told = msgspec.structs.replace(inbound, event=f"{inbound.event}/told")
                post(execute, told, thread, kind_of(inbound.letter), body)
            execute("UPDATE inbox SET reply = ?, thread = ? WHERE id = ?", (text, thread, receipt.id))
            answer = Outbound(f"command:{receipt.id}", inbound.address, text, mails=(receipt.id,))
            queue(execute, thread, inbound.owner, answer)
            return Receipt(receipt.id, thread, True, text)

        return await self._writer.write(transaction)

    async def open(self, thread: str, after: int = 0) -> Opened:
        with self._reader:
            rows = self._rows(f"SELECT {_ROW} FROM threads WHERE id = ?", (thread,))
            if not rows:
                raise StoreError(f"there is no thread {thread}")
            row = ThreadRow(*rows[0])
            first = max(row.folded, after + 1, 1)
            entries = self._entries(thread, first) if row.head >= first else []
            mail = self._mail(thread)
        return Opened(row, entries, first, mail)

    async def mail(self, thread: str) -> list[Mail]:
        return self._mail(thread)

    async def session(self, key: str) -> ThreadRow | None:
        return self._row("id = (SELECT thread FROM sessions WHERE key = ?)", key)

    async def latest(self, owner: str) -> ThreadRow | None:
        return self._row(
            "id = (SELECT i.thread FROM inbox i JOIN threads t ON t.id = i.thread "
            "JOIN sessions s ON s.key = t.session AND s.thread = t.id "
            f"WHERE i.owner = ? {NOT_ASIDE} ORDER BY i.id DESC LIMIT 1)",
            owner,
        )

    async def named(self, beginning: str, limit: int = 2) -> list[str]:
        sql = "SELECT id FROM threads WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT ?2"
        return [id for (id,) in self._rows(sql, (beginning, limit))]

    async def commit(self, lease: Lease, commit: Commit) -> Committed:
        return await self._writer.write(partial(write_step, self._holders, self._ttl, lease, commit))

    async def renew(self, leases: Sequence[Lease]) -> Renewal:
        wanted = [(self._ttl, lease.thread, lease.epoch, self.holder) for lease in leases]

        def transaction(execute: Execute) -> list[str]:
            return [
                values[1]
                for values in wanted
                if execute(
                    f"UPDATE threads SET expires = {NOW} + ? WHERE id = ? AND epoch = ? AND holder = ? "
                    f"AND expires > {NOW} RETURNING id",
                    values,
                ).fetchall()
            ]

        kept = frozenset(await self._writer.write(transaction))
        return Renewal(kept, frozenset(lease.thread for lease in leases) - kept)

    async def give_back(self, lease: Lease) -> None:
        values = (lease.thread, lease.epoch, self.holder)

        def transaction(execute: Execute) -> None:
            execute("UPDATE threads SET holder = NULL WHERE id = ?1 AND ?2 IN (0, epoch) AND holder = ?3", values)

        await self._writer.write(transaction)

    async def ended(self, mail: int) -> int:
        rows = self._rows("SELECT ended FROM inbox WHERE id = ?", (mail,))
        return int(rows[0][0]) if rows else 0

    async def unfinished(self, thread: str) -> list[int]:
        rows = self._rows(
            "SELECT id FROM inbox WHERE thread = ? AND ended = 0 AND kind IN ('said', 'undo') ORDER BY id", (thread,)
        )
        return [id for (id,) in rows]

    async def waiting(self) -> list[str]:
        rows = self._rows(
            f"SELECT DISTINCT t.id, t.holder, t.expires > {NOW} FROM inbox i JOIN threads t ON t.id = i.thread "
            "WHERE i.ended = 0 AND (i.taken = 0 OR t.state = 'running')"
        )
        return [id for id, holder, fresh in rows if not (holder and fresh) or not self._holders.alive(holder)]

    async def stopping(self, threads: Sequence[str]) -> list[str]:
        rows = self._rows("SELECT DISTINCT thread FROM inbox WHERE ended = 0 AND taken = 0 AND kind = 'stop'")
        return [thread for (thread,) in rows if thread in threads]

    async def due(self, channel: str, limit: int = 100) -> list[OutboxRow]:
        # The first open row of each chat, unless it has to wait. What is being sent may have lost its sender.
        first = "SELECT min(id) FROM outbox WHERE channel = ? AND state IN ('pending', 'sending') GROUP BY chat"
        heads = (
            f"SELECT id, thread, body, attempts, unsure, {NOW} - at, state, holder, due <= {NOW}, parts, "
            f"{NOW} - max(at, since) FROM outbox "
            f"WHERE id IN ({first}) AND (due <= {NOW} OR state = 'sending') ORDER BY id"
        )
        if not self._rows(heads, (channel,)):
            return []

        def transaction(execute: Execute) -> list[OutboxRow]:
            claimed: list[OutboxRow] = []
            for row in execute(heads, (channel,)).fetchall():
                id, thread, body, attempts, unsure, age, state, holder, ripe, parts, trying = row
                if len(claimed) == limit:
                    break
                if not ripe and self._holders.alive(holder):
                    continue
                doubt = bool(unsure) or state == "sending"
                execute(
                    f"UPDATE outbox SET state = 'sending', attempts = attempts + 1, holder = ?, due = {NOW} + ?, "
                    "unsure = ? WHERE id = ?",
                    (self.holder, SENDING_SECONDS, int(doubt), id),
                )
                sent = receipts_in(parts)
                claimed.append(OutboxRow(id, thread, read_outbound(body), attempts + 1, doubt, age, sent, trying))
            return claimed

        return await self._writer.write(transaction)

    async def settle(self, row: int, state: OutboxState, receipt: str = "", again_in: float = 0.0) -> None:
        def transaction(execute: Execute) -> None:
            execute(
                f"UPDATE outbox SET state = ?, unsure = max(unsure, ?), receipt = ?, due = {NOW} + ? "
                "WHERE id = ? AND state = 'sending' AND holder = ?",
                (
                    *("pending" if state == "unsure" else state, state == "unsure", receipt),
                    *(again_in, row, self.holder),
                ),
            )

        await self._writer.write(transaction)

    async def unshown(self, chat: str) -> list[Outbound]:
        rows = self._rows(
            "SELECT body FROM outbox WHERE channel = ? AND chat = ? AND state IN ('pending', 'sending') ORDER BY id",
            (chat.partition(":")[0], chat),
        )
        return [read_outbound(body) for (body,) in rows]

    async def acknowledge(self, keys: Sequence[str], given: Sequence[int] = ()) -> None:
        def transaction(execute: Execute) -> None:
            for key in keys:
                execute(
                    f"UPDATE outbox SET state = 'sent', due = {NOW} WHERE key = ? AND state IN ('pending', 'sending')",
                    (key,),
                )
            for mail in given:
                execute("UPDATE inbox SET taken = 2 WHERE id = ?", (mail,))

        await self._writer.write(transaction)

    async def asking(self, session: str = "") -> list[ThreadRow]:
        rows = self._rows(
            f"SELECT {_ROW} FROM threads WHERE state = 'waiting' AND ?1 IN ('', session) ORDER BY created, id",
            (session,),
        )
        return [ThreadRow(*row) for row in rows]

    async def changed(self) -> bool:
        version = self._rows("PRAGMA data_version")[0][0]
        before, self._data_version = self._data_version, version
        return bool(version != before)

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
        return self._rows(_in_sqlite(statement), values)

    async def _do(self, work: Callable[[Ask], Coroutine[Any, Any, Result]]) -> Result:
        return await self._writer.write(lambda execute: run_at_once(work(_asking(execute))))

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

    async def _add_words(self, ask: Ask, thread: str, owner: str, lines: Sequence[Line]) -> None:
        for line in lines:
            add = "INSERT INTO said(thread, seq, owner, who) VALUES($1, $2, $3, $4) RETURNING id"
            rows = await ask(add, thread, line.seq, owner, line.who)
            await ask("INSERT INTO said_words(rowid, words) VALUES($1, $2)", rows[0][0], line.words)

    def _entries(self, thread: str, first: int) -> list[Entry]:
        rows = self._rows("SELECT body FROM entries WHERE thread = ? AND seq >= ? ORDER BY seq", (thread, first))
        return [log.decode(body) for (body,) in rows]

    def _mail(self, thread: str) -> list[Mail]:
        rows = self._rows(f"SELECT id, body FROM inbox WHERE {PENDING} ORDER BY id", (thread,))
        return [Mail(id, read_letter(body)) for id, body in rows]

    def _row(self, where: str, value: str) -> ThreadRow | None:
        rows = self._rows(f"SELECT {_ROW} FROM threads WHERE {where}", (value,))
        return ThreadRow(*rows[0]) if rows else None


def _asking(execute: Execute) -> Ask:
    async def ask(statement: str, *values: object) -> Sequence[Any]:
        rows: Sequence[Any] = execute(_in_sqlite(statement), values).fetchall()
        return rows

    return ask


def _in_sqlite(statement: str) -> str:
    return statement.format_map(schema.DIALECTS["sqlite"]).replace("$", "?")
