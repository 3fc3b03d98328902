"""The folder that file tools work in, and nothing outside of it.

A path is first understood as text (`parts_of`), which settles what it means, and then opened beneath the folder's
descriptor, which is what keeps it inside. Files are replaced by renaming, so that a reader sees the old or the new
content and a hard link to a file outside never lets a change through.

Somebody's workspace may be a folder in which everloop's own home lies. That is hidden: every folder that is opened is
asked whether it lies there, and a file is opened by its name alone in a folder that was.
"""

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

from msgspec import Struct

from ..errors import ToolError
from .beneath import Opener, open_in_steps, opener
from .home import PASS, Home

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY  # a FIFO must not make us wait
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_LINKS = 40  # as the kernel
_MARK = "user.everloop.before"


class Seen(Struct, frozen=True):
    """What was found at a path before a change: a file, or nothing (`status` is None).

    `content` and `sha` are only known of a file that is not too large. `mark` is what the last `replace` left there.
    """

    status: os.stat_result | None = None
    content: bytes | None = None
    sha: str = ""
    mark: str = ""
    by_link: bool = False

    @property
    def exists(self) -> bool:
        return self.status is not None


class Workspace:
    """Opens, reads and replaces files inside `root`. Everything raises ToolError with a sentence for the model."""

    def __init__(self, root: Path, open_beneath: Opener | None = None, hidden: Home | None = None) -> None:
        """`hidden` is not to be seen, should it lie inside."""
        self._given = Path(os.path.abspath(root))
        self._open_beneath = open_beneath
        self._home = hidden
        self.name = str(self._given)

    @property
    def hidden(self) -> tuple[int, int] | None:
        """The device and the number of the folder that is not to be seen, for whoever walks by."""
        return self._home.identity if self._home else None

    def parts_of(self, path: str) -> tuple[str, ...]:
        """What a path means, as names from the root downwards; () is the root itself."""
        if path.startswith("file:"):
            raise ToolError("a file: reference is read with read_file, or brought here with load_file; give a path")
        if path.startswith("skill:"):
            raise ToolError("a skill: path is only read; those of the workspace lie in skills/, where they are changed")
        if path.startswith("~"):
            raise ToolError(f"{path!r}: ~ is not the workspace; give a path relative to the workspace")
        if any(ord(letter) < 32 or ord(letter) == 127 or "\ud800" <= letter <= "\udfff" for letter in path):
            raise ToolError(f"{path!r}: a path cannot hold control characters")
        if ".." in re.split(r"[/\\]", path):
            raise ToolError(f"{path!r}: a path cannot hold '..'; give a path relative to the workspace")
        parts = _split(path)
        if not path.startswith("/"):
            return parts
        for root in (_split(str(self._given)), _split(os.path.realpath(self._given))):
            if parts[: len(root)] == root:
                return parts[len(root) :]
        raise ToolError(f"{path!r} lies outside the workspace; give a path relative to the workspace")

    @contextmanager
    def opened(self, path: str) -> Iterator[tuple[int, os.stat_result]]:
        """A regular file, open for reading."""
        parts = self.parts_of(path)
        with self._explained(path), self._root() as root:
            fd = self._open(root, parts, _READ)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                _refuse_kind(path, status.st_mode)
            yield fd, status
        finally:
            os.close(fd)

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        parts = self.parts_of(path)
        with self._explained(path), self._root() as root:
            fd = self._open(root, parts, _FOLDER)
        try:
            yield fd
        finally:
            os.close(fd)

    def look(self, path: str, most: int) -> Seen:
        """What a file holds that is to be changed, if it has not more than `most` bytes; that may be nothing yet."""
        parts = self._file_parts(path)
        with self._explained(path), self._root() as root:
            target = self._without_last_link(root, parts)
            try:
                fd = self._open(root, target, _READ)
            except FileNotFoundError:
                return Seen(by_link=target != parts)
            try:
                status = os.fstat(fd)
                if not stat.S_ISREG(status.st_mode):
                    _refuse_kind(path, status.st_mode)
                mark = _mark_of(fd)
                if status.st_size > most:
                    return Seen(status, mark=mark, by_link=target != parts)
                with open(fd, "rb", closefd=False) as file:
                    content = file.read(most)
                return Seen(status, content, sha256(content).hexdigest(), mark, target != parts)
            finally:
                os.close(fd)

    def replace(self, path: str, content: bytes, key: str, seen: Seen | None = None, mark: str = "") -> None:
        """Put `content` at `path`, durably and all at once, making the folders above it.

        `key` names the call over its attempts: what an attempt that was killed had begun is removed by the next.
        With `seen`, a file that has changed since is left alone. `mark` is a short note that goes with the file, for
        the next `look`, where the file system can hold one.
        """
        parts = self._file_parts(path)
        with self._explained(path), self._root() as root:
            parts = self._without_last_link(root, parts)
            folder = self._open_or_make_folder(root, parts[:-1])
            try:
                _replace_in(folder, parts[-1], content, key, seen, mark)
            finally:
                os.close(folder)

    def remove(self, path: str, seen: Seen) -> None:
        """Remove a file, durably, unless it has changed since it was seen. A link is not removed."""
        parts = self._file_parts(path)
        with self._explained(path), self._root() as root:
            folder = self._open(root, parts[:-1], _FOLDER)
            try:
                now = _status(folder, parts[-1])
                if now is not None:
                    _refuse_unwritable(path, now)
                if not _same(seen.status, now):
                    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
                os.unlink(parts[-1], dir_fd=folder)
                os.fsync(folder)
            finally:
                os.close(folder)

    def _file_parts(self, path: str) -> tuple[str, ...]:
        parts = self.parts_of(path)
        if not parts or path.endswith("/"):
            raise ToolError(f"{path!r} is the name of a folder; name a file")
        return parts

    @contextmanager
    def _root(self) -> Iterator[int]:
        if self._home:
            self._home.check()
        try:
            fd = os.open(self._given, _FOLDER | os.O_CLOEXEC)
        except OSError as error:
            raise ToolError(f"the workspace {self._given} cannot be opened ({error.strerror})") from error
        try:
            yield fd
        finally:
            os.close(fd)

    def _open(self, root: int, parts: tuple[str, ...], flags: int) -> int:
        path = "/".join(parts) or "."
        for _ in range(_LINKS):
            above, _slash, name = path.rpartition("/")
            if flags & os.O_DIRECTORY or name in ("", ".", ".."):
                return self._seen(root, self._opener(root, path, flags, 0))
            folder = self._seen(root, self._opener(root, above or ".", PASS, 0))
            try:
                return self._seen(root, os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder))
            except OSError as error:
                if error.errno != errno.ELOOP or self._opener is open_in_steps:
                    raise
                path = os.path.join(above, _target(folder, name))
            finally:
                os.close(folder)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _seen(self, root: int, fd: int) -> int:
        """What was opened, unless it is a folder that is hidden."""
        if self._home and stat.S_ISDIR(os.fstat(fd).st_mode) and self._home.holds(fd, root):
            os.close(fd)
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return fd

    @property
    def _opener(self) -> Opener:
        return self._open_beneath or opener()

    def _open_or_make_folder(self, root: int, parts: tuple[str, ...]) -> int:
        try:
            return self._open(root, parts, _FOLDER)
        except FileNotFoundError:
            above = self._open_or_make_folder(root, parts[:-1])
        try:
            with suppress(FileExistsError):
                os.mkdir(parts[-1], dir_fd=above)
            os.fsync(above)
        finally:
            os.close(above)
        return self._open(root, parts, _FOLDER)

    def _without_last_link(self, root: int, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Where a link leads, so that the file behind it is replaced and not the link."""
        for _ in range(_LINKS):
            try:
                folder = self._open(root, parts[:-1], _FOLDER)
            except FileNotFoundError:
                return parts
            try:
                target = os.readlink(parts[-1], dir_fd=folder)
            except OSError:  # EINVAL: not a link; ENOENT: nothing there yet
                return parts
            finally:
                os.close(folder)
            parts = _joined(parts[:-1], target)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    @contextmanager
    def _explained(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            number = error.errno or 0
            reason = _REASONS.get(number, f"{{}} cannot be used ({os.strerror(number)})")
            raise ToolError(reason.format(repr(path) if len(path) < 300 else f"{path[:300]!r}…")) from error


_REASONS = {
    errno.ENOENT: "there is no {}",
    errno.ENOTDIR: "{}: a part of it is not a folder",
    errno.EISDIR: "{} is a folder",
    errno.EXDEV: "{} lies outside the workspace: a link in it leads out",
    errno.ELOOP: "{} may not be opened: it holds a link that cannot be followed here",
    errno.ENXIO: "{} is not a regular file",
    errno.EACCES: "{} may not be opened (permission denied)",
    errno.EPERM: "{} may not be changed (permission denied)",
    errno.ENAMETOOLONG: "{}: a name is too long",
    errno.ENOSPC: "{} was not written: the disk is full",
    errno.ESTALE: "{} was changed by someone else in this moment and is left as it is; read it again",
}


def _split(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part not in ("", "."))


def _target(folder: int, name: str) -> str:
    """Where a link leads; out of here with an absolute path."""
    target = os.readlink(name, dir_fd=folder)
    if target.startswith("/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    return target


def _joined(folder: tuple[str, ...], target: str) -> tuple[str, ...]:
    """A link's target as names from the root; it may climb, but not out."""
    if target.startswith("/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    parts = list(folder)
    for part in _split(target):
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    if not parts:
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    return tuple(parts)


def _replace_in(folder: int, name: str, content: bytes, key: str, seen: Seen | None, mark: str) -> None:
    before = _status(folder, name)
    if before is not None:
        _refuse_unwritable(name, before)
    prefix = f".everloop-{sha256(key.encode()).hexdigest()[:12]}-"
    for left in [left for left in os.listdir(folder) if left.startswith(prefix)]:
        with suppress(FileNotFoundError):
            os.unlink(left, dir_fd=folder)
    draft = f"{prefix}{secrets.token_hex(4)}.tmp"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder)
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            if before is not None:
                _take_over(fd, before)
            _set_mark(fd, mark)
            os.fsync(fd)
        if seen is not None and not _same(seen.status, _status(folder, name)):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        raise
    os.fsync(folder)


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _same(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    if one is None or other is None:
        return one is other
    return all(getattr(one, name) == getattr(other, name) for name in ("st_ino", "st_mtime_ns", "st_size"))


def _set_mark(fd: int, mark: str) -> None:
    if mark and hasattr(os, "setxattr"):
        with suppress(OSError):  # not every file system can
            os.setxattr(fd, _MARK, mark.encode())


def _mark_of(fd: int) -> str:
    if hasattr(os, "getxattr"):
        with suppress(OSError):
            return os.getxattr(fd, _MARK).decode("ascii", "replace")
    return ""


def _take_over(fd: int, before: os.stat_result) -> None:
    """What is made anew stays the same person's, and as readable as it was."""
    if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):  # only root can give a file away
            os.fchown(fd, before.st_uid, before.st_gid)
    os.fchmod(fd, before.st_mode & 0o777)


def _refuse_unwritable(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        _refuse_kind(path, status.st_mode)
    # A rename would not ask, and neither would anything if we are root; but someone has protected it.
    if not status.st_mode & 0o222:
        raise ToolError(f"{path!r} is write-protected and was not changed; ask the user")


def _refuse_kind(path: str, mode: int) -> NoReturn:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a link"}
    raise ToolError(f"{path!r} is {kinds.get(stat.S_IFMT(mode), 'a device')}, not a regular file")
