"""A store that is looked at and not changed: nothing is migrated, written or made, not even a file beside the database.

For whoever finds out what is wrong with it (`everloop doctor`), while it may be open elsewhere, damaged, or of another
version. All that the store's ports can be asked works; what would write raises StoreError.
"""

import asyncio
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import apsw

from ..errors import HomeError, StoreCorrupt, StoreError
from ..ports.audit import hash_of
from . import schema
from .holders import Holders
from .sqlite import SqliteStore
from .sqlite_file import DATABASE, check_file, file_system_of, is_on_network, version_of

KNOWN = len(schema.MIGRATIONS)  # the schema of this version
PATIENCE = 2000  # milliseconds for which a lock is waited for
_OBJECTS = "SELECT type, name FROM sqlite_master ORDER BY type = 'table' DESC, name"
_FLAGS = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOMUTEX

__all__ = [
    "DATABASE",
    "KNOWN",
    "damage_in",
    "file_system_of",
    "is_on_network",
    "look_at_sqlite",
    "missing_in",
    "nothing_yet",
    "read_only",
]


class Onlooker(Holders):
    """Sees who is alive, and is not seen."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.me = "onlooker"

    def close(self) -> None:
        pass


def nothing_yet(home: Path) -> SqliteStore:
    """Where nobody has begun: a store in memory in which there is nothing."""
    connection = _empty()
    return SqliteStore(connection, connection, Onlooker(home / "run"), 30.0)


def _empty() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.create_scalar_function("everloop_hash", hash_of, 8, deterministic=True)
    for statement in schema.statements("sqlite", schema.MIGRATIONS):
        connection.execute(statement)
    return connection


def missing_in(path: Path) -> list[str]:
    """What this version makes, as `table entries`, and somebody has taken out of the file. Raises what apsw raises."""
    with closing(read_only(path)) as found, closing(_empty()) as made:
        there = {*found.execute(_OBJECTS)}
        return [f"{kind} {name}" for kind, name in made.execute(_OBJECTS) if (kind, name) not in there]


async def look_at_sqlite(home: Path, lease_seconds: float = 30.0) -> tuple[SqliteStore, int]:
    """The store and the version of its schema, 0 where there is none yet; where it is another than KNOWN, it can be
    asked nothing else. Raises HomeError, StoreError."""
    if not (home / DATABASE).exists():
        return nothing_yet(home), 0
    check_file(home / DATABASE)
    connection, version = await asyncio.to_thread(_opened, home / DATABASE)
    reader = read_only(home / DATABASE)
    return SqliteStore(connection, reader, Onlooker(home / "run"), lease_seconds), version


def read_only(path: Path) -> apsw.Connection:
    """Without a write-ahead log nobody has it open, and it is read as it lies there; else its index is read and never
    made, for it would stay. Raises what apsw raises."""
    is_open = path.with_name(f"{path.name}-wal").exists()
    how = "mode=ro&readonly_shm=1" if is_open else "mode=ro&immutable=1"
    connection = apsw.Connection(f"file:{quote(str(path.resolve()))}?{how}", flags=_FLAGS)
    connection.set_busy_timeout(PATIENCE)
    return connection


def _opened(path: Path) -> tuple[apsw.Connection, int]:
    try:
        connection = read_only(path)
        return connection, version_of(connection, path)
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise StoreCorrupt(f"{path} is damaged or not a database ({error})") from error
    except apsw.BusyError as error:
        raise StoreError(f"{path} is locked by another process") from error
    except apsw.Error as error:
        raise HomeError(f"{path} cannot be read ({error})") from error


def damage_in(path: Path, connection: apsw.Connection) -> str:
    """What SQLite finds wrong in the file; "" if nothing. Whoever waits no longer interrupts the connection."""
    try:
        found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
    except (apsw.NotADBError, apsw.CorruptError) as error:
        return str(error)
    return "" if found == ["ok"] else " ".join(found[0].split())
