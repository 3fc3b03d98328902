"""All rows of PostgreSQL at one moment (a REPEATABLE READ snapshot) into a SQLite file, and those of such a file into
PostgreSQL, in one transaction: see copying.py."""

from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from .copying import new_copy, plainly, shared
from .server import MIGRATION_SECONDS, Connection

ROWS = 500  # that are read at once
_THEIR_COLUMNS = (
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema() "
    "ORDER BY table_name, ordinal_position"
)
_IDENTITIES = (
    "SELECT table_name, column_name FROM information_schema.columns "
    "WHERE table_schema = current_schema() AND is_identity = 'YES'"
)
_SLOWLY = (
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL enable_seqscan = on"
)


async def copy_postgres(connection: Connection, to: Path) -> None:
    """Raises StoreFull, BackupError, and what the driver raises."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await connection.execute(_SLOWLY)
        columns = _by_table(await connection.fetch(_THEIR_COLUMNS))
        with plainly(to), closing(apsw.Connection(str(to))) as target, new_copy(target):
            for table, names in shared(target, columns).items():
                listed, marks = ", ".join(names), ", ".join("?" * len(names))
                add = f"INSERT INTO {table}({listed}) VALUES({marks})"
                async for row in connection.cursor(f"SELECT {listed} FROM {table}", prefetch=ROWS):
                    target.execute(add, tuple(row))
            target.execute("UPDATE threads SET indexed = 0")


async def load_postgres(connection: Connection, file: Path) -> None:
    """All rows of a file into a database whose tables are empty but for what a new one has, in one transaction."""
    with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)) as source:
        async with connection.transaction():
            await connection.execute(_SLOWLY)
            columns = shared(source, _by_table(await connection.fetch(_THEIR_COLUMNS)))
            await connection.execute("ALTER TABLE audit DISABLE TRIGGER USER")
            await connection.execute(f"TRUNCATE {', '.join(columns)}, said")
            for table, names in columns.items():
                await _load(connection, source, table, names)
            await connection.execute("UPDATE threads SET indexed = 0", timeout=MIGRATION_SECONDS)
            for table, column in await connection.fetch(_IDENTITIES):
                await connection.execute(
                    f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), "
                    f"coalesce((SELECT max({column}) FROM {table}), 0) + 1, false)",
                    timeout=MIGRATION_SECONDS,
                )
            await connection.execute("ALTER TABLE audit ENABLE TRIGGER USER")


async def has_rows(connection: Connection) -> bool:
    """Whether there is more in it than in a new one. Raises what the driver raises."""
    if await connection.fetchval("SELECT to_regclass('threads') IS NULL"):
        return False
    return bool(
        await connection.fetchval(
            "SELECT EXISTS(SELECT 1 FROM threads) OR EXISTS(SELECT 1 FROM inbox) OR EXISTS(SELECT 1 FROM vault) "
            "OR EXISTS(SELECT 1 FROM audit) OR (SELECT count(*) FROM users) > 1"
        )
    )


async def _load(connection: Connection, source: apsw.Connection, table: str, names: Sequence[str]) -> None:
    listed, marks = ", ".join(names), ", ".join(f"${n}" for n in range(1, len(names) + 1))
    add = f"INSERT INTO {table}({listed}) OVERRIDING SYSTEM VALUE VALUES({marks})"
    rows = source.execute(f"SELECT {listed} FROM {table}")
    while page := list(islice(rows, ROWS)):
        await connection.executemany(add, page, timeout=MIGRATION_SECONDS)


def _by_table(rows: Sequence[Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for table, column in rows:
        found.setdefault(table, []).append(column)
    return found
