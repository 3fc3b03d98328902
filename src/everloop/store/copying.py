"""The whole store as one SQLite file, made while others write, and back again.

Of SQLite it is a copy by its own backup API, of one moment: a reader that keeps its place in the WAL. Of PostgreSQL it
is one REPEATABLE READ snapshot, written row by row into a file of the same schema. So a backup of either is restored
into either. What is only worked out from the rest (the index of words) is made anew where it changes databases.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from ..errors import BackupError, StoreFull
from ..ports.audit import hash_of
from . import schema
from .strangers import looked_into

PAGES = 512  # that are copied at once
_BUSY = 30_000  # milliseconds
_REST = {"said", "said_words", "everloop_schema", "simulated_time"}  # not rows of ours, or made anew
_TRIGGERS = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
Columns = Mapping[str, Sequence[str]]


def copy_sqlite(path: Path, to: Path, vfs: str = "") -> None:
    """Through SQLite's own API: opening the file by other means would drop this process's locks on it. Raises
    StoreFull, BackupError."""
    with plainly(to), closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs or None)) as source:
        source.set_busy_timeout(_BUSY)
        with source, closing(apsw.Connection(str(to))) as target:
            source.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # from here on it sees this moment alone
            with target.backup("main", source, "main") as backup:
                while not backup.done:
                    backup.step(PAGES)
            target.execute("PRAGMA journal_mode = DELETE").fetchall()  # one file, and no WAL beside it


def schema_in(file: Path | int) -> int:
    """The version of a copy, or of an open file: SQLite keeps it in the header."""
    with _opened(file) as fd:
        return int.from_bytes(os.pread(fd, 4, 60), "big")


def counts_in(file: Path | int) -> dict[str, int]:
    """How many rows each table of a copy has, or of an open file. Raises BackupError where it is damaged, or is not as
    everloop makes one."""
    with plainly(None if isinstance(file, int) else file), _opened(file) as fd, looked_into(fd) as connection:
        problems = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
        if problems != ["ok"]:
            raise BackupError(f"the database in it is damaged ({problems[0]})")
        return {name: _count(connection, name) for name in _tables(connection) if name not in _REST}


@contextmanager
def _opened(file: Path | int) -> Iterator[int]:
    if isinstance(file, int):
        yield file
        return
    fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def shared(file: apsw.Connection, theirs: Columns) -> dict[str, Sequence[str]]:
    """The tables of both, with their columns. Raises BackupError where they are not the same."""
    ours = {table: [row[1] for row in file.execute(f"PRAGMA table_info({quoted(table)})")] for table in _tables(file)}
    ours = {table: names for table, names in ours.items() if table not in _REST and not table.startswith("said_words")}
    for table, names in ours.items():
        if set(names) != set(theirs.get(table, ())):
            raise BackupError(f"the table {table} is not the same in both databases: upgrade everloop")
    return dict(ours)


def _tables(connection: apsw.Connection) -> list[str]:
    return [str(name) for (name,) in connection.execute(_TABLES) if not str(name).startswith("said_words")]


def _count(connection: apsw.Connection, table: str) -> int:
    rows: list[tuple[int]] = connection.execute(f"SELECT count(*) FROM {quoted(table)}").fetchall()  # type: ignore[assignment]
    return rows[0][0]


def quoted(name: str) -> str:
    """As SQL has the name of a table that may be called anything."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def new_copy(connection: apsw.Connection) -> Iterator[None]:
    """Our tables in an empty file, to be filled in one transaction: lines of the audit are taken over with the hashes
    that they have, whatever these say."""
    connection.create_scalar_function("everloop_hash", hash_of, 8, deterministic=True)
    connection.execute("PRAGMA synchronous = OFF")  # it is read back, and is of no use half written
    with connection:
        for statement in schema.statements("sqlite", schema.MIGRATIONS):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(schema.MIGRATIONS)}")
        connection.execute("DELETE FROM users")
        triggers = connection.execute(_TRIGGERS).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield
        for _, sql in triggers:
            connection.execute(str(sql))


@contextmanager
def plainly(path: Path | None) -> Iterator[None]:
    try:
        yield
    except apsw.FullError as error:
        raise StoreFull(
            f"the disk that holds {path.parent if path else 'it'} is full: a backup needs room for a copy there"
        ) from error
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise BackupError(f"the database is damaged, or is none ({error})") from error
    except apsw.InterruptError as error:
        raise BackupError("the database takes longer to look through than one of its size may") from error
    except apsw.Error as error:
        raise BackupError(f"the database cannot be copied ({error})") from error
