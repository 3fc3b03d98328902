"""Looks through a backup without restoring it, and says what one of a home has to hold."""

import tempfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

from ..backup.manifest import DATABASE, About, Member
from ..backup.unpack import Unpacked, is_sealed_file, read_backup
from ..errors import BackupDamaged, BackupError, StoreNewer
from ..files.disk_space import DiskSpace
from ..store import schema
from ..store.copying import counts_in, schema_in
from .home_folders import FOLDERS

LINE = 150  # bytes of what is noted of each thing, beside its name
__all__ = ["belongs", "check_rows", "is_sealed_file", "verify"]


def verify(file: Path, passphrase: str, staging: Path | None = None) -> Unpacked:
    """Read all of it, and restore nothing. The database lies in a file without a name meanwhile, which is gone with
    this process however that ends: in `staging`, or where the system has what is temporary. Raises BackupError."""
    place = staging if staging and staging.is_dir() else Path(tempfile.gettempdir())
    try:
        with tempfile.TemporaryFile(dir=place) as database:
            taker = _DatabaseOnly(database, place)
            found = read_backup(file, passphrase, taker, staging=place, belongs=belongs)
            check_rows(file, database.fileno() if taker.has_found else None, found)
    except OSError as error:
        raise BackupError(
            f"{file} could not be looked through: nothing can be written into {place} ({error.strerror})"
        ) from error
    return found


def belongs(name: str) -> bool:
    """Whether it is the name of something in a home that a backup has."""
    return any(fnmatchcase(name, each.name) for each in FOLDERS if not each.left_out) or name in (DATABASE, "vault.key")


def check_rows(file: Path, database: Path | int | None, found: Unpacked) -> None:
    """Whether the database is one of ours, whole, and the one that was backed up. Raises BackupError, StoreNewer."""
    if database is None:
        raise BackupDamaged(f"{file}: there is no database in it")
    if (version := schema_in(database)) > len(schema.MIGRATIONS):
        raise StoreNewer(schema.newer(str(file), version, len(schema.MIGRATIONS)))
    try:
        rows = counts_in(database)
    except BackupError as error:
        raise BackupDamaged(f"{file}: {error}") from error
    wrong = [table for table, count in found.summary.rows.items() if rows.get(table) != count]
    if wrong or found.about.schema != version:
        raise BackupDamaged(f"{file}: the database in it is not the one that was backed up ({', '.join(wrong[:5])})")


class _DatabaseOnly:
    """Keeps the database, and reads all else to its end."""

    def __init__(self, database: IO[bytes], place: Path) -> None:
        self._database = database
        self._room = DiskSpace(place)
        self.has_found = False

    def begin(self, about: About) -> None: ...

    def folder(self, member: Member) -> None:
        self._room.take(LINE + len(member.name))

    def link(self, member: Member) -> None:
        self._room.take(LINE + len(member.name))

    def file(self, member: Member, pieces: Iterator[bytes]) -> None:
        if member.name != DATABASE:
            self._room.take(LINE + len(member.name))
            for _ in pieces:
                pass
            return
        if self.has_found:
            raise BackupDamaged("there are two databases in it")
        self.has_found = True
        self._room.expect(f"{member.name} in the backup", member.size)
        for piece in pieces:
            self._room.take(len(piece))
            self._database.write(piece)
        self._database.flush()
