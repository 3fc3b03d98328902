"""Writes what a backup holds into a home in which there is nothing yet. Folders are gone into one by one and no link is
followed on the way, so nothing is written elsewhere; links come last, and one that leads out of its folder goes."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec

from ..backup.manifest import About, Member, leads_into
from ..errors import BackupDamaged, HomeError
from ..files.disk_space import ENTRY, DiskSpace
from ..ports.failpoint import reach

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class HomeTaker:
    """`is_stopped` says that nobody waits for it any more."""

    def __init__(self, home: Path, is_stopped: Callable[[], bool]) -> None:
        self._home = home
        self._is_stopped = is_stopped
        self._room = DiskSpace(home)
        self._links = tempfile.TemporaryFile(dir=home)  # noqa: SIM115 (`__exit__` closes it); there may be millions

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._links.close()

    def begin(self, about: About) -> None: ...

    def folder(self, member: Member) -> None:
        self._room.take(ENTRY)
        with self._folder_of(f"{member.name}/.") as folder:
            os.fchmod(folder, member.mode & 0o755 | 0o700)

    def link(self, member: Member) -> None:
        self._room.take(ENTRY)
        self._links.write(msgspec.json.encode(member) + b"\n")

    def file(self, member: Member, pieces: Iterator[bytes]) -> None:
        self._room.expect(f"{member.name} in the backup", member.size)
        with self._folder_of(member.name) as folder, _once(member.name):
            mode = member.mode & 0o755 | 0o600 if "/" in member.name else 0o600
            opened = os.open(member.name.rpartition("/")[2], _NEW, mode, dir_fd=folder)
        with open(opened, "wb") as file:
            for piece in pieces:
                self._check_wanted()
                self._room.take(len(piece))
                file.write(piece)
        reach("restore.unpacking")

    def link_all(self) -> list[str]:
        """When all else is there; what has to be told of it."""
        for each in self._kept_links():
            with self._folder_of(each.name) as folder, _once(each.name):
                os.symlink(each.link, each.name.rpartition("/")[2], dir_fd=folder)
        out = [each.name for each in self._kept_links() if self._leads_out(each.name)]
        for name in out:
            with self._folder_of(name) as folder:
                os.unlink(name.rpartition("/")[2], dir_fd=folder)
        return [f"{len(out)} links were left out, which lead out of their folder, such as {out[0]!r}."] if out else []

    def _kept_links(self) -> Iterator[Member]:
        self._links.seek(0)
        for line in self._links:
            self._check_wanted()
            yield msgspec.json.decode(line, type=Member)

    def _leads_out(self, name: str) -> bool:
        home = os.path.realpath(self._home)
        return not leads_into(os.path.join(home, name.partition("/")[0]), os.path.join(home, name))

    def _check_wanted(self) -> None:
        if self._is_stopped():
            raise HomeError("the restore was ended, and nothing is left of it")

    @contextmanager
    def _folder_of(self, name: str) -> Iterator[int]:
        """That in which it lies, made where it is missing."""
        now = os.open(self._home, _FOLDER & ~os.O_NOFOLLOW)
        try:
            for part in name.split("/")[:-1]:
                now = _into(now, part, name)
            yield now
        finally:
            os.close(now)


def _into(folder: int, part: str, name: str) -> int:
    """Closes the folder that it leaves."""
    try:
        try:
            inner = os.open(part, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            os.mkdir(part, 0o700, dir_fd=folder)
            inner = os.open(part, _FOLDER, dir_fd=folder)
    except (NotADirectoryError, FileExistsError) as error:
        raise BackupDamaged(f"its member {name!r} lies in something that is no folder") from error
    os.close(folder)
    return inner


@contextmanager
def _once(name: str) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise BackupDamaged(f"it has {name!r} twice, or two names that are one on this disk") from error
