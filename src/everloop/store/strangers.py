"""A SQLite file that somebody else may have made: it is read, and nothing of what it says is run.

A schema is code: triggers, views, virtual tables, expressions in columns and indexes run when a table is used. So the
file is opened with all of that shut, for a bounded time, and its schema has to be ours before a table is looked at:
what is then done with the file, a migration too, runs our own code alone.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache

import apsw

from ..errors import BackupDamaged
from ..ports.audit import hash_of
from . import schema

STEPS = 10_000  # of SQLite's machine, between two looks at the clock
SCHEMA_LOOKS = 20  # after which a schema is none of ours: reading ours takes a few hundred steps
LONGEST_SQL = 1_000_000  # bytes of a statement in a schema
LEAST_SECONDS, BYTES_PER_SECOND = 60.0, 5_000_000  # for which a file of some size is looked through
_SHUT = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION: 0,
}
_PRAGMAS = ("PRAGMA query_only = 1", "PRAGMA cell_size_check = 1", "PRAGMA mmap_size = 0")
_OBJECTS = "SELECT type, name, sql FROM sqlite_schema"
_PLAIN = re.compile(r"create(table|uniqueindex|index)[a-z0-9_]+\([a-z0-9_,]*\)(withoutrowid)?")
Objects = dict[tuple[str, str], str]


class _Descriptor(apsw.VFSFile):
    """An open file, which may have no name any more. Nobody else has it, so nobody is locked out."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def xRead(self, amount: int, offset: int) -> bytes:
        return os.pread(self._fd, amount, offset)

    def xFileSize(self) -> int:
        return os.fstat(self._fd).st_size

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xDeviceCharacteristics(self) -> int:
        return apsw.SQLITE_IOCAP_IMMUTABLE

    def xSectorSize(self) -> int:
        return 4096

    def xLock(self, level: int) -> None: ...

    def xUnlock(self, level: int) -> None: ...

    def xCheckReservedLock(self) -> bool:
        return False

    def xClose(self) -> None: ...


class _Descriptors(apsw.VFS):
    """Opens files by the numbers that they have in this process, and no others."""

    NAME = "everloop-descriptors"

    def __init__(self) -> None:
        super().__init__(self.NAME, "")

    def xFullPathname(self, name: str) -> str:
        return name

    def xAccess(self, path: str, flags: int) -> bool:
        return False

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        called = name.filename() if isinstance(name, apsw.URIFilename) else name
        if called is None or not called.isdecimal():  # a journal, or what does not fit into memory
            raise apsw.CantOpenError("nothing is written beside it")
        flags[1] = apsw.SQLITE_OPEN_READONLY
        return _Descriptor(int(called))


@contextmanager
def looked_into(fd: int) -> Iterator[apsw.Connection]:
    """An open file, in whose schema is only what everloop makes. Raises BackupDamaged, and what apsw raises."""
    vfs, size = _descriptors(), os.fstat(fd).st_size
    with closing(apsw.Connection(str(fd), flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs.NAME)) as connection:
        for option, value in _SHUT.items():
            connection.config(option, value)
        connection.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
        longest = connection.limit(apsw.SQLITE_LIMIT_LENGTH)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, LONGEST_SQL)
        for pragma in _PRAGMAS:
            connection.execute(pragma).fetchall()
        connection.set_progress_handler(_after(SCHEMA_LOOKS), STEPS)
        _check_schema(connection)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, longest)
        connection.set_progress_handler(_later_than(LEAST_SECONDS + size / BYTES_PER_SECOND), STEPS)
        yield connection


@cache
def _descriptors() -> _Descriptors:
    return _Descriptors()


def _after(looks: int) -> Callable[[], bool]:
    left = looks

    def is_over() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    return is_over


def _later_than(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def _check_schema(connection: apsw.Connection) -> None:
    version = connection.pragma("user_version")
    if not isinstance(version, int) or not 0 < version <= len(schema.MIGRATIONS):
        raise BackupDamaged("the database in it is none of everloop's")
    theirs, ours = _objects(connection), _made_by(version)
    for (kind, name), sql in theirs.items():
        if ours.get((kind, name)) != sql and not _PLAIN.fullmatch(sql or "createindexof_a_key()"):
            raise BackupDamaged(f"the database in it has a {kind} {name!r} that is not as everloop makes it")
    if missing := sorted(name for _, name in ours.keys() - theirs.keys()):
        raise BackupDamaged(f"the database in it has no {missing[0]}")


def _made_by(version: int) -> Objects:
    """What the migrations up to this one make, in a database in memory."""
    with closing(apsw.Connection(":memory:")) as connection:
        connection.create_scalar_function("everloop_hash", hash_of, 8, deterministic=True)
        for statement in schema.statements("sqlite", schema.MIGRATIONS[:version]):
            connection.execute(statement)
        return _objects(connection)


def _objects(connection: apsw.Connection) -> Objects:
    """Without spaces and quotation marks, in which versions of SQLite differ when they rename or add a column."""
    return {(str(kind), str(name)): _bare(sql) for kind, name, sql in connection.execute(_OBJECTS)}


def _bare(sql: object) -> str:
    return re.sub(r"[\s\"'`\[\]]", "", str(sql or "")).lower()
