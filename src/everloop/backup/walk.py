"""What lies beneath a folder, held open by descriptors on the way down: whoever puts a link in the place of a folder
meanwhile leads nobody out of it."""

import os
import stat
from collections.abc import Iterator

from .manifest import link_stays
from .pack import Pack

DEEPEST = 100  # folders in each other, of which each is held open
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
OUT, OTHER, DEEP = "a link that leads out of it", "no file", f"more than {DEEPEST} folders deep"


def pack_tree(pack: Pack, path: str, name: str) -> None:
    """A file or a folder, under this name in the backup; nothing where there is none."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        pack.leave_out(name, str(error.strerror))
        return
    if stat.S_ISDIR(os.fstat(opened).st_mode):
        _pack_folder(pack, opened, name, 0)
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


def _pack_folder(pack: Pack, folder: int, name: str, depth: int) -> None:
    try:
        pack.add_folder(name, os.fstat(folder).st_mode)
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
        for each in names:
            _pack_one(pack, folder, each, f"{name}/{each}", depth)
    finally:
        os.close(folder)


def _pack_one(pack: Pack, folder: int, own: str, name: str, depth: int) -> None:
    try:
        mode = os.stat(own, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            target = os.readlink(own, dir_fd=folder)
            if link_stays(name, target):
                pack.add_link(name, target)
            else:
                pack.leave_out(name, OUT)
        elif stat.S_ISDIR(mode) and depth < DEEPEST:
            _pack_folder(pack, os.open(own, _FOLDER, dir_fd=folder), name, depth + 1)
        elif stat.S_ISREG(mode):
            _pack_file(pack, os.open(own, _FILE, dir_fd=folder), name)
        else:
            pack.leave_out(name, DEEP if stat.S_ISDIR(mode) else OTHER)
    except (FileNotFoundError, PermissionError, NotADirectoryError) as error:  # gone by now, or not to be read
        pack.leave_out(name, str(error.strerror))


def _pack_file(pack: Pack, fd: int, name: str) -> None:
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):  # something else may have been put there since
            pack.add_file(name, fd)
        else:
            pack.leave_out(name, OTHER)
    finally:
        os.close(fd)
