"""Rewriting the SQLite file without what was deleted.

A page keeps the bytes of rows that were in it until others are written over them, the index of words keeps a word until
its parts are merged, and the WAL keeps both. So all of it is written anew, by a connection of its own. Nobody can write
meanwhile, which takes about as long as copying the file; a mark in `run/` tells other processes that it is no freeze.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw

from ..errors import StoreError, StoreFull
from .holders import Holders

SECONDS = 60.0  # for which others who read or write are waited for
_PAUSE = 0.05


def scrub(path: Path, vfs: str, holders: Holders) -> None:
    """Raises StoreError; then it has to be done again."""
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)) as connection:
            connection.set_busy_timeout(int(SECONDS * 1000))
            connection.execute("INSERT INTO said_words(said_words) VALUES('optimize')")
            with holders.marked_busy():
                connection.execute("VACUUM")
            _empty_wal(connection, path)
    except apsw.FullError as error:
        raise StoreFull(f"there is no room on the disk to write {path} anew without what was deleted") from error
    except apsw.Error as error:
        raise StoreError(f"{path} cannot be written anew without what was deleted: {error}") from error


def _empty_wal(connection: apsw.Connection, path: Path) -> None:
    for _ in _tries():
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
        if not busy:
            return
    raise StoreError(f"{path} is being read by another process since {SECONDS:g} s, so its WAL still holds old pages")


def _tries() -> Iterator[None]:
    began = time.monotonic()
    while time.monotonic() - began < SECONDS:
        yield
        time.sleep(_PAUSE)
