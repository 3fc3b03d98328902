"""The backups of a folder, by their names: what has such a name is whole, for it got it when it was on the disk."""

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from ..errors import BackupError
from .manifest import PackSummary

FOLDER = "backups"  # in a home, where no other is named
PLAIN, SEALED = ".tar.gz", ".tar.gz.enc"
_NAME = re.compile(r"everloop-(\d{8}-\d{6})(?:-\d+)?\.tar\.gz(\.enc)?")
_PART = ".everloop-*.part"
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS}
_STAMP = "%Y%m%d-%H%M%S"

Tell = Callable[[int, int], None]  # so many bytes, of about so many


class BackupFile(Struct, frozen=True):
    path: Path
    made: float  # when it was begun: all that was acknowledged before is in it
    size: int
    sealed: bool

    @property
    def name(self) -> str:
        return self.path.name


class MadeBackup(Struct, frozen=True):
    file: BackupFile
    summary: PackSummary
    warnings: tuple[str, ...] = ()


def is_of_a_backup(name: str) -> bool:
    """Whether it is called as a backup is, or as one that is being written."""
    return bool(_NAME.fullmatch(name)) or fnmatchcase(name, _PART)


def backups_in(folder: Path) -> list[BackupFile]:
    """The newest first. Raises BackupError."""
    try:
        found = [_backup(path) for path in folder.iterdir()] if folder.exists() else []
    except OSError as error:
        raise BackupError(f"the folder {folder} cannot be read ({error.strerror})") from error
    return sorted(filter(None, found), key=lambda each: (each.made, each.name), reverse=True)


def last_backup(folder: Path) -> BackupFile | None:
    """The newest that is whole; None where there is none. Raises BackupError."""
    return next(iter(backups_in(folder)), None)


def made_ones(folder: Path, names: Iterable[str]) -> list[BackupFile]:
    """Those of the folder that have been noted as made, the latest of `names` first: what a file is called, anybody
    can choose. Raises BackupError."""
    there = {each.name: each for each in backups_in(folder)}
    return [there[name] for name in dict.fromkeys(names) if name in there]


def forget_oldest(folder: Path, keep: int, names: Iterable[str]) -> list[str]:
    """Remove all but the latest `keep` of those that were made under these names (the latest first); the names of
    those that are gone. What others have put there is neither counted nor removed. Raises BackupError."""
    old = made_ones(folder, names)[keep:]
    for each in old:
        try:
            each.path.unlink(missing_ok=True)
        except OSError as error:
            raise BackupError(f"{each.path} cannot be removed ({error.strerror})") from error
    return [each.name for each in old]


@contextmanager
def new_backup(folder: Path, made: float, sealed: bool) -> Iterator[tuple[BinaryIO, Path]]:
    """A file to write it into, and the name that it gets when the block has ended well: whole, on the disk, and for its
    owner's eyes alone. Nothing is left of it otherwise. Raises BackupError."""
    stamp = datetime.fromtimestamp(made, UTC).strftime(_STAMP)
    part = folder / f".everloop-{stamp}-{secrets.token_hex(8)}.part"  # which nobody can have put there before
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _sweep(folder)
        target = _free(folder, stamp, SEALED if sealed else PLAIN)
        file = open(part, "xb", opener=_private)  # noqa: SIM115 (closed below)
    except OSError as error:
        raise BackupError(f"no backup can be written into {folder} ({error.strerror}): name another folder") from error
    try:
        with file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # one without a lock was left by somebody who is gone
            yield file, target
            file.flush()
            os.fsync(file.fileno())
        _give_name(part, target)
    except OSError as error:
        raise BackupError(
            f"the backup could not be written into {folder} ({error.strerror}); nothing is left of it"
        ) from error
    finally:
        part.unlink(missing_ok=True)


def _private(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW, 0o600)


def _free(folder: Path, stamp: str, kind: str) -> Path:
    names = (f"everloop-{stamp}{f'-{number}' if number else ''}{kind}" for number in range(1000))
    found = next((path for path in map(folder.__truediv__, names) if not os.path.lexists(path)), None)
    if found is None:
        raise BackupError(f"every name of this moment is taken in {folder}: try again")
    return found


def _backup(path: Path) -> BackupFile | None:
    named = _NAME.fullmatch(path.name)
    if named is None or path.is_symlink() or not path.is_file():
        return None
    try:
        made = datetime.strptime(named[1], _STAMP).replace(tzinfo=UTC).timestamp()
        return BackupFile(path, made, path.stat().st_size, bool(named[2]))
    except (ValueError, FileNotFoundError):  # no such day; or it was removed just now
        return None


def _sweep(folder: Path) -> None:
    """Remove what killed processes have left. What is no file, or another's, stays: nobody is kept from a backup by
    what lies there."""
    for part in folder.glob(_PART):
        with suppress(OSError):  # it is being written, another was quicker, or it cannot be opened
            opened = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if stat.S_ISREG(os.fstat(opened).st_mode):
                    part.unlink()
            finally:
                os.close(opened)


def _give_name(part: Path, target: Path) -> None:
    """Never in the place of another. A disk that has no hard links (exFAT, many network shares) is where backups often
    go: there it is renamed, while the folder is locked for all of us."""
    opened = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            os.link(part, target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            fcntl.flock(opened, fcntl.LOCK_EX)
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
            part.rename(target)
        os.fsync(opened)
    finally:
        os.close(opened)
