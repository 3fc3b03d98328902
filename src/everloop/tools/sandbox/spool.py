"""Where the runner keeps what a command says and how it ended, so that anyone can read it later.

A command has a folder `<thread>/<name>` in the spool. Its output lies there in pieces, each named by the offset of its
first byte: the first two and the last stay, those between go, so that offsets never change and the size is bounded.
`end.json` appears, whole, when the command and all that it started are gone. A folder without it whose command no
runner knows was cut off. What is a file instead of a folder was swept: too old to be told, but it did happen.
"""

import json
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import suppress

TYPE_CHECKING = False  # as in typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any

# What commands see of /etc. No keys, no hashes of passwords, no settings of services; names of users are no secret.
ETC = (
    "alternatives", "ca-certificates", "debian_version", "group", "hosts", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "localtime", "locale.alias", "magic", "mime.types", "nsswitch.conf", "os-release", "passwd",
    "pki/tls/certs", "protocols", "resolv.conf", "services", "ssl/certs", "ssl/openssl.cnf", "timezone",
)  # fmt: skip
_PIECES = 4
_HEAD = 2
_MOST_ERRORS = 2000
_END = "end.json"
_NO_THREADS = {"etc", "devices", "net"}  # folders of ours beside those of threads
OLD = 7 * 86400.0


class OutputSpool:
    """Writes the output of one command into its folder, a part of which is kept.

    What it says on stdout and on stderr stands there in the order in which it came; `errors` says where the latter is.
    """

    def __init__(self, folder: str, kept: int) -> None:
        self._folder = folder
        self._piece = max(1, -(-kept // _PIECES))
        self._starts: list[int] = []
        self._fd = -1
        self._left = 0
        self.size = 0
        self.errors: list[list[int]] = []  # from, to

    def write(self, data: bytes, error: bool = False) -> None:
        while data:
            if not self._left:
                self._turn()
            count = os.write(self._fd, data[: self._left])
            if error:
                self._mark(self.size, self.size + count)
            self.size += count
            self._left -= count
            data = data[count:]

    def _mark(self, begin: int, end: int) -> None:
        """Of a command that changes from one to the other all the time, what is between counts as an error too."""
        if self.errors and (self.errors[-1][1] == begin or len(self.errors) >= _MOST_ERRORS):
            self.errors[-1][1] = end
        else:
            self.errors.append([begin, end])

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._left = -1, 0

    def _turn(self) -> None:
        self.close()
        self._fd = os.open(_piece(self._folder, self.size), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._left = self._piece
        self._starts.append(self.size)
        if len(self._starts) > _PIECES + 1:
            os.unlink(_piece(self._folder, self._starts.pop(_HEAD)))


def _piece(folder: str, start: int) -> str:
    return os.path.join(folder, f"out.{start:015d}")


def read_output(folder: str, offset: int, count: int) -> tuple[bytes, int]:
    """A run of up to `count` bytes of what was said from `offset` on, and where it begins: later if bytes are gone."""
    data, begin = b"", offset
    for start in sorted(int(name[4:]) for name in os.listdir(folder) if name.startswith("out.")):
        at = begin + len(data)
        if start > at and data:
            break
        if start > at:
            begin = at = start
        data += _read(_piece(folder, start), at - start, count - len(data))
        if len(data) >= count:
            break
    return data, begin


def read_all(folder: str, size: int) -> list[tuple[int, bytes]]:
    """All that is kept, as runs of bytes with their offsets."""
    runs: list[tuple[int, bytes]] = []
    at = 0
    while at < size:
        data, begin = read_output(folder, at, size)
        if not data:
            break
        runs.append((begin, data))
        at = begin + len(data)
    return runs


def _read(path: str, position: int, count: int) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # gone in this moment
        return b""
    try:
        return os.pread(fd, count, position)
    finally:
        os.close(fd)


def write_end(folder: str, end: "dict[str, Any]") -> None:
    draft = os.path.join(folder, f".{_END}")
    with open(draft, "w") as file:
        json.dump(end, file)
    os.rename(draft, os.path.join(folder, _END))


def read_end(folder: str) -> "dict[str, Any] | None":
    try:
        with open(os.path.join(folder, _END)) as file:
            end: dict[str, Any] = json.load(file)
            return end
    except FileNotFoundError:
        return None


def ended_at(folder: str) -> float | None:
    """When a command surely was over, 0 if it was never begun; None if it may still run, or was cut off."""
    for path in (os.path.join(folder, _END), folder):
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        return None if stat.S_ISDIR(status.st_mode) else status.st_mtime
    return 0.0


def make_folder(spool: str, thread: str, name: str) -> str:
    """A new folder for a command. Raises FileExistsError."""
    above = os.path.join(spool, thread)
    if not os.path.isdir(above):
        os.mkdir(above, 0o700)
        _sync(spool)
    os.mkdir(os.path.join(above, name), 0o700)
    return os.path.join(above, name)


def make_sure(folder: str) -> None:
    """A power failure does not undo this folder now: whoever misses it knows that the command was never begun."""
    _sync(os.path.dirname(folder))


def socket_path(folder: str, fd: int, name: str) -> str:
    """Where a socket in this folder is, through a descriptor where that can be: a path may be too long for a socket."""
    through = f"/proc/self/fd/{fd}"
    return os.path.join(through if os.path.isdir(through) else folder, name)


def copy_etc(spool: str, etc: str = "/etc") -> list[str]:
    """A copy of the part of /etc that commands see, as far as it can be made; says what is missing, and why."""
    folder = os.path.join(spool, "etc")
    shutil.rmtree(folder, ignore_errors=True)
    missing: list[str] = []
    for name in ETC:
        if os.path.lexists(f"{etc}/{name}"):
            _copy(f"{etc}/{name}", os.path.join(folder, name), missing)
    return missing


def _copy(source: str, target: str, missing: list[str], links: bool = False) -> None:
    """`links` says that a link is copied as one; else what it leads to, for that may not be seen otherwise."""
    try:
        os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
        if links and os.path.islink(source):
            os.symlink(os.readlink(source), target)
        elif os.path.isdir(source):
            os.makedirs(target, 0o755, exist_ok=True)
            for name in os.listdir(source):
                _copy(os.path.join(source, name), os.path.join(target, name), missing, links=True)
        else:
            shutil.copy(source, target)
    except (OSError, shutil.SpecialFileError) as error:
        missing.append(f"{source}: {getattr(error, 'strerror', None) or error}")


def _sync(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def forget_earlier(spool: str, thread: str, answer: int) -> None:
    """Remove what ended in a thread in an earlier answer: a new answer means that its results were committed."""
    for name, folder in _entries(os.path.join(spool, thread)):
        number = name.partition("-")[0]
        if number.isdigit() and int(number) < answer and (not os.path.isdir(folder) or read_end(folder)):
            _remove(folder)


def forget_folder(folder: str) -> None:
    """Remove all that a command has said, or all commands of a thread."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def sweep(spool: str) -> None:
    """Leave of what ended long ago, and of what was cut off then, only the fact that it was."""
    for name, thread in _entries(spool):
        if name in _NO_THREADS:
            continue
        with suppress(PermissionError):  # it is another user's, who will sweep it
            _sweep_thread(thread)


def _sweep_thread(thread: str) -> None:
    for _, folder in _entries(thread):
        if os.path.isdir(folder) and time.time() - os.stat(folder).st_mtime > OLD:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(os.open(folder, os.O_CREAT | os.O_CLOEXEC, 0o600))


def _entries(folder: str) -> Iterator[tuple[str, str]]:
    if os.path.isdir(folder):
        for name in os.listdir(folder):
            yield name, os.path.join(folder, name)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        os.unlink(path)
