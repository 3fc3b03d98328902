"""What a command adds to a file system, with all that it has started; and how much may be added.

The file system says what is free and how many files there are, which others change too. So a growth counts as the
command's only if it has written as much itself, where the kernel can tell: not on a tmpfs, nor on btrfs, where empty
files are not counted. And files count as its own only if as many newer than itself are found in its folders.
"""

import os
import time

TYPE_CHECKING = False  # as in typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FLOOR, _SHARE = 2 << 30, 20  # so many bytes, or if that is less this part of a file system, are not for commands
_HIDDEN = 1 << 40
_UNCOUNTED = (b"tmpfs", b"ramfs", b"zfs")  # where the kernel does not say who has written through a mapping
_SLICE = 0.01  # seconds for which files are looked for at a time
_CLOCK = 0.1  # seconds by which the clock of a file system may be behind
_BELOW = 8  # the part of what is left that a command may still take where there is less already


class Disk:
    """The file system of some folders, since a command began that may write there."""

    def __init__(self, folders: list[str], device: int) -> None:
        self._folders = folders
        self._began = os.statvfs(folders[0])
        self._counted = self._began.f_files > 0 and _kind(device) not in _UNCOUNTED
        self._time = time.time() - _CLOCK
        self._others = 0  # files that others are known to have made
        self._new: Iterator[int] | None = None
        self._found = 0

    def exceeded(self, most: int, files: int, written: "Callable[[], float]") -> str:
        """Why the command has to end now; empty if it may go on. `written` tells how many bytes it wrote at most."""
        try:
            now = os.statvfs(self._folders[0])
        except OSError:  # the folder is gone
            return ""
        made = _files(now) - _files(self._began) - self._others
        if why := too_many(self._began, now, made, files):
            return why if self._made_itself(made, files if why == "files" else made // 2) else ""
        return too_much(self._began, now, most, written if self._counted else _endless)

    def _made_itself(self, made: int, most: int) -> bool:
        """Whether it made more than `most`; False as long as that is not known. A look takes only a slice of time."""
        if self._new is None:
            self._new, self._found = _newer(self._folders, self._time), 0
        until = time.monotonic() + _SLICE
        for count in self._new:
            self._found += count
            if self._found > most:
                return True
            if time.monotonic() > until:
                return False
        self._new, self._others = None, self._others + made - self._found
        return False


def disks(folders: list[str]) -> list[Disk]:
    """The file systems of these folders, each once."""
    devices: dict[int, list[str]] = {}
    for folder in folders:
        devices.setdefault(os.stat(folder).st_dev, []).append(folder)
    return [Disk(together, device) for device, together in devices.items()]


def _newer(folders: list[str], moment: float) -> "Iterator[int]":
    """1 for each file or folder below these that was made or changed since, 0 for each other."""
    todo = [*folders]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    yield int(entry.stat(follow_symlinks=False).st_ctime >= moment)
        except PermissionError:  # it hides them
            yield _HIDDEN
        except OSError:  # gone in this moment
            pass


def _kind(device: int) -> bytes:
    """The kind of a file system that has no device of its own; empty for others, and where nobody tells."""
    if os.major(device) or not os.path.exists("/proc/self/mountinfo"):
        return b""
    number = f"{os.major(device)}:{os.minor(device)}".encode()
    with open("/proc/self/mountinfo", "rb") as file:
        mounts = [line.split() for line in file]
    return next((words[words.index(b"-") + 1] for words in mounts if words[2] == number), b"")


def _endless() -> float:
    return float("inf")


def too_many(began: os.statvfs_result, now: os.statvfs_result, made: int, files: int) -> str:
    """Why a command has to end that began then, if it has made so many files."""
    if made > files:
        return "files"
    return "full" if now.f_favail * _SHARE < now.f_files and made > began.f_favail // _BELOW else ""


def too_much(began: os.statvfs_result, now: os.statvfs_result, most: int, written: "Callable[[], float]") -> str:
    """Why a command has to end that began then, if it has written what takes place now."""
    why = "growth"
    if now.f_bavail * now.f_frsize < min(_FLOOR, now.f_blocks * now.f_frsize // _SHARE):
        why, most = "full", min(most, began.f_bavail * now.f_frsize // _BELOW)
    grown = (began.f_bfree - now.f_bfree) * now.f_frsize
    return why if grown > most and written() > most else ""


def _files(stat: os.statvfs_result) -> int:
    """How many there are. How many are free is no measure: on some file systems bytes take from it too."""
    return stat.f_files - stat.f_ffree
