"""The copies that are made of the SQLite file before a migration changes it: `everloop.db.before-7` is what schema 7
was made of. A copy is whole as soon as it has its name, and only its owner can read it, as the file itself."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from ..errors import HomeError

KEPT = 2  # copies that stay; older ones are removed when a migration has succeeded


def copy(path: Path, target: int) -> None:
    """Copy the file as it is before it gets this schema. Raises HomeError and what apsw raises."""
    part = path.with_name(f"{path.name}.before-{target}.part")
    try:
        _remove(part)  # left by a process that was killed
        with _removed_afterwards(part):
            part.touch(mode=0o600)
            _back_up(path, part)
            part.replace(part.with_suffix(""))
        _keep_name(path.parent)
    except OSError as error:
        raise HomeError(
            f"{path} was to be copied before it is changed, which failed ({error.strerror}: {part}). "
            "It was left untouched: make room for a copy and start again"
        ) from error


@contextmanager
def _removed_afterwards(part: Path) -> Iterator[None]:
    """Where there is no room for all of it, the version of before needs what is left to go on."""
    try:
        yield
    finally:
        _remove(part)


def _remove(part: Path) -> None:
    for each in (part, part.with_name(f"{part.name}-journal")):
        each.unlink(missing_ok=True)


def forget(path: Path, target: int) -> None:
    path.with_name(f"{path.name}.before-{target}").unlink(missing_ok=True)


def forget_oldest(path: Path) -> None:
    """Remove the copies of long ago."""
    for old in sorted(path.parent.glob(f"{path.name}.before-*[0-9]"), key=_schema_of, reverse=True)[KEPT:]:
        old.unlink(missing_ok=True)  # another process may have been quicker


def _schema_of(path: Path) -> int:
    number = path.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def _back_up(path: Path, to: Path) -> None:
    # Through SQLite's own API: opening the file by other means would drop this process's locks on it. And through
    # a connection of its own, for the one that migrates already keeps others from writing.
    with (
        closing(apsw.Connection(str(path))) as source,
        closing(apsw.Connection(str(to))) as target,
        target.backup("main", source, "main") as backup,
    ):
        while not backup.done:
            backup.step(1000)


def _keep_name(folder: Path) -> None:
    """A new name outlives a loss of power only when its folder is on the disk, too."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
