"""A file that is written piece by piece, and comes to its place at once when it is whole."""

import errno
import os
import secrets
import stat
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from ..errors import PathRefused

_BEGINS, _ENDS = ".everloop-upload-", ".tmp"
_OLD = 86400.0  # seconds after which a draft is nobody's: whoever wrote it was killed
_WITHOUT_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK)  # a file system that has no second names
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class UploadDraft:
    """Of `name` in `folder`, which is open. What is there is replaced only where `replace` says so, and only a regular
    file that may be written. Raises OSError, PathRefused."""

    def __init__(self, folder: int, name: str, replace: bool) -> None:
        self._folder = folder
        self._name = name
        self._before = self._look()
        self.replaces = self._before is not None
        if self._before is not None and not replace:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))

    def __enter__(self) -> Self:
        self._forget_old()
        self._draft = f"{_BEGINS}{secrets.token_hex(8)}{_ENDS}"
        self._fd = os.open(self._draft, _NEW, 0o666, dir_fd=self._folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)
        with suppress(FileNotFoundError):
            os.unlink(self._draft, dir_fd=self._folder)

    def write(self, piece: bytes) -> None:
        left = memoryview(piece)
        while left:
            left = left[os.write(self._fd, left) :]

    def put(self) -> None:
        """Durably, and without a moment in which another file of that name could be lost unseen."""
        if self._before is not None:
            os.fchmod(self._fd, self._before.st_mode & 0o777)
            if (self._before.st_uid, self._before.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):  # only root can give a file away
                    os.fchown(self._fd, self._before.st_uid, self._before.st_gid)
        os.fsync(self._fd)
        now = self._look()
        if self._before is None:
            self._add()
        elif now is None or (now.st_ino, now.st_mtime_ns) == (self._before.st_ino, self._before.st_mtime_ns):
            os.rename(self._draft, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        else:
            raise PathRefused(f"{self._name!r} was changed in this moment, and is left as it is; look again")
        os.fsync(self._folder)

    def _add(self) -> None:
        try:
            os.link(self._draft, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError as error:
            if error.errno not in _WITHOUT_LINKS:
                raise
            if self._look() is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
            os.rename(self._draft, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def _look(self) -> os.stat_result | None:
        try:
            status = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(status.st_mode):
            raise PathRefused(f"{self._name!r} is there already, and is no regular file", "exists")
        if not status.st_mode & 0o222:
            raise PathRefused(f"{self._name!r} is write-protected, and is left as it is")
        return status

    def _forget_old(self) -> None:
        for left in os.listdir(self._folder):
            if left.startswith(_BEGINS) and left.endswith(_ENDS):
                with suppress(FileNotFoundError):
                    if time.time() - os.stat(left, dir_fd=self._folder, follow_symlinks=False).st_mtime > _OLD:
                        os.unlink(left, dir_fd=self._folder)
