"""What lies beneath a folder, held open by descriptors on the way down: whoever puts a link in the place of a folder
meanwhile leads nobody out of it.

A workspace may lie anywhere, also around the home, or around the folder of backups. The home is no part of it then,
for the key of the vault would be in a backup that is not encrypted; nor are backups: each would hold all before it.
"""

import os
import stat
from collections.abc import Iterator

from msgspec import Struct

from .listing import is_of_a_backup
from .manifest import DEEPEST, is_text, leads_into, link_stays
from .pack import Pack

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
OUT, OTHER, DEEP = "a link that leads out of it", "no file", f"more than {DEEPEST} folders deep"
UNNAMED = "its name is no text (UTF-8)"


Place = tuple[int, int]  # a disk, and a folder on it


class Apart(Struct, frozen=True):
    """What is no part of a folder wherever it lies in it: the home, and backups in the folders of these."""

    home: Place
    backups: frozenset[Place]


def place_of(status: os.stat_result) -> Place:
    return status.st_dev, status.st_ino


def pack_tree(pack: Pack, path: str, name: str, apart: Apart) -> None:
    """A file or a folder, under this name in the backup; nothing where there is none."""
    if not is_text(name):
        _leave_unnamed(pack, name)
        return
    try:
        opened = os.open(path, _FILE & ~os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    except OSError as error:
        pack.leave_out(name, str(error.strerror))
        return
    if stat.S_ISDIR(os.fstat(opened).st_mode):
        _Tree(pack, os.path.realpath(path), name, apart).pack(opened, "")
    else:
        _pack_file(pack, opened, name)


def size_of(path: str) -> int:
    """About how many bytes there are beneath it."""
    if not os.path.isdir(path):
        return os.path.getsize(path) if os.path.exists(path) else 0
    return sum(_sizes(path))


def _sizes(path: str) -> Iterator[int]:
    for folder, _, files in os.walk(path):
        for each in files:
            try:
                yield os.lstat(os.path.join(folder, each)).st_size
            except OSError:  # it is gone by now
                continue


class _Tree:
    """A folder at the top of a home, which lies at `path`; `below` is where something is beneath it: "", "/a/b"."""

    def __init__(self, pack: Pack, path: str, name: str, apart: Apart) -> None:
        self._pack, self._path, self._name, self._apart = pack, path, name, apart

    def pack(self, folder: int, below: str) -> None:
        """Closes the folder."""
        try:
            status = os.fstat(folder)
            if place_of(status) == self._apart.home:
                return
            self._pack.add_folder(self._name + below, status.st_mode)
            has_backups = place_of(status) in self._apart.backups
            with os.scandir(folder) as entries:
                names = sorted(each.name for each in entries if not (has_backups and is_of_a_backup(each.name)))
            for each in names:
                self._pack_one(folder, each, f"{below}/{each}")
        finally:
            os.close(folder)

    def _pack_one(self, folder: int, own: str, below: str) -> None:
        name = self._name + below
        if not is_text(name):
            _leave_unnamed(self._pack, name)
            return
        try:
            mode = os.stat(own, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                self._pack_link(os.readlink(own, dir_fd=folder), below)
                return
            if not stat.S_ISREG(mode) and not (stat.S_ISDIR(mode) and below.count("/") <= DEEPEST):
                self._pack.leave_out(name, DEEP if stat.S_ISDIR(mode) else OTHER)
                return
            opened = os.open(own, _FOLDER if stat.S_ISDIR(mode) else _FILE, dir_fd=folder)
        except OSError as error:  # gone by now, another thing by now, or not to be read
            self._pack.leave_out(name, str(error.strerror))
            return
        if stat.S_ISDIR(mode):
            self.pack(opened, below)
        else:
            _pack_file(self._pack, opened, name)

    def _pack_link(self, target: str, below: str) -> None:
        """One that leads out by way of others is no more in it than one that does so at once."""
        name = self._name + below
        stays = is_text(target) and link_stays(name, target) and leads_into(self._path, self._path + below)
        if stays:
            self._pack.add_link(name, target)
        else:
            self._pack.leave_out(name, OUT)


def _pack_file(pack: Pack, fd: int, name: str) -> None:
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):  # something else may have been put there since
            pack.add_file(name, fd)
        else:
            pack.leave_out(name, OTHER)
    finally:
        os.close(fd)


def _leave_unnamed(pack: Pack, name: str) -> None:
    pack.leave_out(name.encode("utf-8", "replace").decode(), UNNAMED)
