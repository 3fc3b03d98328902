"""Files in a folder: `<root>/<owner>/<aa>/<sha256>`, written once and never changed.

A reference is `file:<sha256>`, which a model can hand to `read_file` as it is; the first twelve digits are enough when
they are unambiguous. When `put` returns, the file and every folder above it are on the disk. Its time of change is that
of the last `put`: what nothing names is removed some time after that, and never in the middle of one.
"""

import asyncio
import errno
import fcntl
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from ..core.errors import StoreFull

SHORTEST = 12
_REF = re.compile(rf"file:([0-9a-f]{{{SHORTEST},64}})(?:…|\.\.\.)?")
_PLAIN_OWNER = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
HALF_WRITTEN = ".half-written"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG}


class Folder:
    """The Files port over a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._swept = False

    async def put(self, owner: str, content: bytes, name: str) -> str:
        """Keep `content` for `owner`, durably; the same content again costs nothing. Raises StoreFull."""
        try:
            return await asyncio.to_thread(self._put, owner, content)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            raise StoreFull(f"{name or 'A file'} cannot be kept under {self._root} ({error.strerror})") from error

    async def get(self, owner: str, ref: str) -> bytes:
        """The content of one of the owner's files.

        Raises ValueError when `ref` is no reference, FileNotFoundError when the owner has no such file (whether or not
        someone else has), and OSError when what lies on the disk is not what was put there.
        """
        return await asyncio.to_thread(self._get, owner, ref)

    def of(self, owner: str) -> Path:
        """Where the owner's files lie."""
        return self._root / _folder_of(owner)

    def keeps(self, owner: str, content: bytes) -> bool:
        """Whether this very content is one of the owner's files."""
        return _is_kept(self._place(owner, sha256(content).hexdigest()), len(content))

    def _put(self, owner: str, content: bytes) -> str:
        digest = sha256(content).hexdigest()
        target = self._place(owner, digest)
        _make(self._root)
        with held(self._root, fcntl.LOCK_SH):
            if not _is_renewed(target, len(content)):
                self._write(target, content)
        # A twin of this call may have renamed the file and not yet synced the folder, so we always do.
        for folder in (target.parent, target.parent.parent, self._root):
            _sync(folder)
        return f"file:{digest}"

    def _write(self, target: Path, content: bytes) -> None:
        half_written = self._root / HALF_WRITTEN
        for folder in (half_written, target.parent):
            _make(folder)
        if not self._swept:
            self._swept = True
            sweep(half_written)
        draft = half_written / f"{target.name[:16]}-{secrets.token_hex(8)}"
        try:
            with open(draft, "xb", opener=_private) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.rename(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    def _get(self, owner: str, ref: str) -> bytes:
        match = _REF.fullmatch(ref.strip())
        if not match:
            raise ValueError(f"a reference is file: and at least {SHORTEST} of the 64 hexadecimal digits of the hash")
        target = self._place(owner, self._whole(owner, match[1]))
        fd = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            content = file.read()
        if sha256(content).hexdigest() != target.name:
            raise OSError(errno.EIO, "the file is damaged", str(target))
        return content

    def _whole(self, owner: str, prefix: str) -> str:
        if len(prefix) == 64:
            return prefix
        names = os.listdir(self._place(owner, prefix).parent)
        found = [name for name in names if name.startswith(prefix)]
        if not found:
            raise FileNotFoundError(errno.ENOENT, "no file of this owner begins so", f"file:{prefix}")
        if len(found) > 1:
            raise ValueError(f"file:{prefix} is the beginning of {len(found)} references; give more digits")
        return found[0]

    def _place(self, owner: str, digest: str) -> Path:
        return self.of(owner) / digest[:2] / digest


def _folder_of(owner: str) -> str:
    """A name that cannot climb. `=` begins no plain owner, so that a hashed name is never someone's own."""
    if _PLAIN_OWNER.fullmatch(owner):
        return owner
    return f"={sha256(owner.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _is_kept(target: Path, size: int) -> bool:
    try:
        return target.lstat().st_size == size
    except FileNotFoundError:
        return False


def _is_renewed(target: Path, size: int) -> bool:
    """Whether it is there, and counts as put now."""
    if not _is_kept(target, size):
        return False
    os.utime(target, follow_symlinks=False)
    return True


@contextmanager
def held(root: Path, how: int) -> Iterator[None]:
    """Hold the folder, shared by those who put something into it, or alone to take something away."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, how)
        yield
    finally:
        os.close(fd)


def _make(folder: Path) -> None:
    """Make a folder and those above it, each entry durable."""
    if folder.is_dir():
        return
    _make(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    _sync(folder.parent)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sweep(folder: Path) -> None:
    """Remove what a process that was killed had begun; nothing takes an hour to write."""
    for draft in folder.iterdir() if folder.is_dir() else ():
        try:
            if draft.lstat().st_mtime < time.time() - 3600:
                draft.unlink()
        except FileNotFoundError:
            continue  # finished, or swept by another process
