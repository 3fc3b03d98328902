"""Opening the SQLite file: is the home usable, is the file whole, is its schema ours?"""

import os
import re
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import apsw

from ..errors import HomeError, StoreCorrupt, StoreError, StoreFull, StoreNewer
from ..ports import Clock
from ..ports.audit import hash_of
from ..ports.failpoint import reach
from . import copies, schema
from .holders import Holders
from .schema import Migrations

DATABASE = "everloop.db"
OPEN_SECONDS = 30.0  # for which a lock is waited for
# One thread at a time uses a connection: the writer's lock and the event loop see to that, so SQLite need not.
_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOMUTEX
_VERSION = "SELECT user_version, EXISTS (SELECT 1 FROM sqlite_master) FROM pragma_user_version"
_NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs", "9p", "ceph", "glusterfs"}


def connect(
    home: Path,
    *,
    migrations: Migrations = schema.MIGRATIONS,
    synchronous: str = "FULL",
    vfs: str = "",
    clock: Clock | None = None,
) -> tuple[Holders, apsw.Connection, apsw.Connection]:
    """Open the file of a home for writing and for reading. Raises HomeError, StoreError.

    A clock takes the place of SQLite's own, in all that is written from now on.
    """
    _check_home(home)
    path, holders = home / DATABASE, _holders(home / "run")
    try:
        connection, reader = _open(path, holders, migrations, synchronous, vfs)
    except BaseException:
        holders.close()
        raise
    if clock is not None:
        for each in (connection, reader):  # what schema.py calls the time
            each.create_scalar_function("unixepoch", partial(_tell, clock), 1)
    return holders, connection, reader


def _holders(folder: Path) -> Holders:
    try:
        return Holders(folder)
    except OSError as error:
        raise HomeError(
            f"the folder {folder} cannot be written ({error.strerror}): see whose it is, and whether the disk has room"
        ) from error


def _tell(clock: Clock, *_: object) -> float:
    return clock.now()


def _open(
    path: Path, holders: Holders, migrations: Migrations, synchronous: str, vfs: str
) -> tuple[apsw.Connection, apsw.Connection]:
    with ExitStack() as opened:
        try:
            connection = apsw.Connection(str(path), flags=_FLAGS, vfs=vfs or None)
            opened.callback(connection.close)
            connection.set_busy_timeout(int(OPEN_SECONDS * 1000))
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # until we know that the file is whole
            if dead := holders.dead():
                _check_whole(connection, path)
            _use_wal(connection)
            for pragma in (f"synchronous = {synchronous}", "wal_autocheckpoint = 4000", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
            connection.create_scalar_function("everloop_hash", hash_of, 8, deterministic=True)
            _migrate(connection, path, migrations)
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
            connection.set_busy_timeout(1)
            reader = apsw.Connection(str(path), flags=_FLAGS, vfs=vfs or None)
            opened.callback(reader.close)
            reader.set_busy_timeout(int(OPEN_SECONDS * 1000))
            for each in (connection, reader):
                # Else SQLite plans a statement anew whenever it is asked with other values: most take less than that.
                each.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        except (apsw.NotADBError, apsw.CorruptError) as error:
            raise _corrupt(path, str(error)) from error
        except apsw.BusyError as error:
            raise StoreError(f"{path} is locked by another process since {OPEN_SECONDS:g} s: end it") from error
        except (apsw.FullError, apsw.ReadOnlyError, apsw.CantOpenError, apsw.IOError) as error:
            if isinstance(error, apsw.FullError) or not os.statvfs(path.parent).f_bavail:  # which may be any of them
                raise StoreFull(f"the disk that holds {path} is full: make room and start again") from error
            raise HomeError(
                f"{path} cannot be written ({error}): check the folder's permissions and the disk"
            ) from error
        holders.bury(dead)
        opened.pop_all()
    return connection, reader


def check_file(path: Path) -> None:
    """Raises HomeError."""
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "no file"
        raise HomeError(
            f"{path} is {kind}, where the database should be: move it away, then bring a backup back, or start with "
            "an empty database"
        )


def _use_wal(connection: apsw.Connection) -> None:
    """Two processes that make the file at once wait for each other, so SQLite lets one fail, which tries again."""
    began = time.monotonic()
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except apsw.BusyError:
            if time.monotonic() - began > OPEN_SECONDS:
                raise
        time.sleep(0.01)


def _corrupt(path: Path, problem: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"{path} is damaged or not a database ({problem}). It was left untouched: restore a backup, or move it away"
    )


def _check_home(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        (home / "run").mkdir(exist_ok=True)
        if not (home / DATABASE).exists():
            (home / DATABASE).touch(mode=0o600)  # for its owner's eyes, even in a folder that others may read
    except OSError as error:
        raise HomeError(f"the home {home} cannot be used ({error.strerror}): set EVERLOOP_HOME elsewhere") from error
    check_file(home / DATABASE)
    kind = file_system_of(home)
    if is_on_network(kind):
        raise HomeError(
            f"the home {home} is on a network file system ({kind}), where SQLite is not safe; use PostgreSQL"
        )


def is_on_network(kind: str) -> bool:
    return kind in _NETWORK_FILE_SYSTEMS


def file_system_of(path: Path, told: Path = Path("/proc/self/mounts")) -> str:
    """As the kernel calls it; "" where it does not say."""
    try:
        mounts = told.read_text(errors="surrogateescape")
    except OSError:
        return ""
    place, best, kind = str(path.resolve()), "", ""
    for line in mounts.splitlines():
        _, point, name = line.split(" ")[:3]
        point = re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), point)  # blanks are written so
        if len(point) >= len(best) and (place == point or place.startswith(point.rstrip("/") + "/")):
            best, kind = point, name
    return kind


def _check_whole(connection: apsw.Connection, path: Path) -> None:
    problems = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
    if problems != ["ok"]:
        raise _corrupt(path, problems[0])


def version_of(connection: apsw.Connection, path: Path) -> int:
    """0 where nothing is yet: all of ours is made in one transaction, with its version. Raises StoreError."""
    version, is_used = next(connection.execute(_VERSION))
    if is_used and not version:
        raise StoreError(f"{path} is the database of another program: move it away, then bring a backup back")
    return int(version)


def _change(connection: apsw.Connection, path: Path, version: int, migrations: Migrations) -> None:
    """Raises StoreError, and says where things stand."""
    try:
        for statement in schema.statements("sqlite", migrations[version:]):
            connection.execute(statement)
            reach("store.migrating")
    except apsw.Error as error:
        target = len(migrations)
        full = isinstance(error, apsw.FullError | apsw.IOError)
        copy = f" A copy of it lies in {path}.before-{target}." if version and not full else ""
        raise (StoreFull if full else StoreError)(
            f"{path} could not be brought from schema {version} to {target} ({error}). It was left as it was, and the "
            f"everloop of before goes on with it.{copy} Make room if the disk is full, and start again"
        ) from error


def _migrate(connection: apsw.Connection, path: Path, migrations: Migrations) -> None:
    target, version = len(migrations), connection.pragma("user_version")
    if version > target:
        raise StoreNewer(schema.newer(str(path), version, target))
    if version == target:
        return
    try:
        _upgrade(connection, path, migrations)
    except (StoreFull, apsw.FullError, apsw.IOError):  # nothing was changed, and the version of before needs the room
        copies.forget(path, target)
        raise


def _upgrade(connection: apsw.Connection, path: Path, migrations: Migrations) -> None:
    target = len(migrations)
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = version_of(connection, path)  # another process may have been quicker
        if copied := 0 < version < target:
            copies.copy(path, target)
        _change(connection, path, version, migrations)
        connection.execute(f"PRAGMA user_version = {target}")
        connection.execute("COMMIT")
        if copied:
            copies.forget_oldest(path)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
