"""Files in a folder: `<root>/<owner>/<aa>/<sha256>`, written once and never changed.

A reference is `file:<sha256>`, which a model can hand to `read_file` as it is; the first twelve digits are enough when
they are unambiguous. When `put` returns, the file and every folder above it are on the disk. Its time of change is that
of the last `put`: what nothing names is removed some time after that, and never in the middle of one.
"""

import asyncio
import errno
import fcntl
import os
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path

from ..errors import StoreFull
from ..ports import KeptFile
from .draft import HashedDraft, OpenedFile, finish
from .names import LEAST, folder_of, is_digest, ref_of, whole_digits

HALF_WRITTEN = ".half-written"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG}


class Folder:
    """The Files port over a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._swept = False
        self._sizes = FolderSizes()

    async def put(self, owner: str, content: bytes, name: str) -> str:
        """Keep `content` for `owner`, durably; the same content again costs nothing. Raises StoreFull."""
        with self._explained(name):
            return await asyncio.to_thread(self._put, owner, content)

    async def keep(self, owner: str, pieces: AsyncIterable[bytes], name: str) -> KeptFile:
        with self._explained(name):
            draft = self._draft()
            try:
                async for piece in pieces:
                    await finish(partial(draft.write, piece))
                await finish(partial(self._place_draft, owner, draft))
            finally:
                draft.close()
        return KeptFile(owner, ref_of(draft.digest), draft.size, time.time())

    async def get(self, owner: str, ref: str) -> bytes:
        """The content of one of the owner's files.

        Raises ValueError when `ref` is no reference, FileNotFoundError when the owner has no such file (whether or not
        someone else has), and OSError when what lies on the disk is not what was put there.
        """
        return await asyncio.to_thread(self._get, owner, ref)

    @asynccontextmanager
    async def open(self, owner: str, ref: str) -> AsyncGenerator[OpenedFile]:
        """Its hash is not looked at again, which would be to read all of it."""
        file = await asyncio.to_thread(self._open, owner, ref)
        try:
            yield file
        finally:
            file.close()

    async def used(self, owner: str) -> int:
        return await asyncio.to_thread(self._sizes.of, self.of(owner))

    def of(self, owner: str) -> Path:
        """Where the owner's files lie."""
        return self._root / folder_of(owner)

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            raise StoreFull(f"{name or 'A file'} cannot be kept under {self._root} ({error.strerror})") from error

    def _put(self, owner: str, content: bytes) -> str:
        digest = sha256(content).hexdigest()
        target = self._place(owner, digest)
        _make(self._root)
        with held(self._root, fcntl.LOCK_SH):
            if not _is_renewed(target, len(content)):
                self._write(target, content)
        self._sync_above(target)
        return ref_of(digest)

    def _draft(self) -> HashedDraft:
        half_written = self._root / HALF_WRITTEN
        _make(half_written)
        if not self._swept:
            self._swept = True
            sweep(half_written)
        return HashedDraft(half_written / f"upload-{secrets.token_hex(8)}")

    def _place_draft(self, owner: str, draft: HashedDraft) -> None:
        target = self._place(owner, draft.digest)
        with held(self._root, fcntl.LOCK_SH):
            if not _is_renewed(target, draft.size):
                _make(target.parent)
                draft.move(target)
        self._sync_above(target)

    def _write(self, target: Path, content: bytes) -> None:
        _make(target.parent)
        draft = self._draft()
        try:
            draft.write(content)
            draft.move(target)
        finally:
            draft.close()

    def _sync_above(self, target: Path) -> None:
        # A twin of this call may have renamed the file and not yet synced the folder, so we always do.
        for folder in (target.parent, target.parent.parent, self._root):
            _sync(folder)

    def _get(self, owner: str, ref: str) -> bytes:
        file = self._open(owner, ref)
        try:
            content = file.read_at(0, file.size)
        finally:
            file.close()
        if sha256(content).hexdigest() != file.tag:
            raise OSError(errno.EIO, "the file is damaged", str(self._place(owner, file.tag)))
        return content

    def _open(self, owner: str, ref: str) -> OpenedFile:
        return OpenedFile(self._place(owner, whole_digits(ref, lambda digits: self._beginning(owner, digits))))

    def _beginning(self, owner: str, digits: str) -> list[str]:
        names = os.listdir(self._place(owner, digits).parent)
        return [name for name in names if name.startswith(digits)]

    def _place(self, owner: str, digest: str) -> Path:
        return self.of(owner) / digest[:2] / digest


class FolderSizes:
    """How much lies in folders. One changes its time when a file comes or goes, so only those that did are counted
    again."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int]] = {}  # a folder's time of change, and what lay in it then

    def of(self, folder: Path) -> int:
        return sum(self._size_of(each) for each in folders_in(folder))

    def _size_of(self, folder: "os.DirEntry[str]") -> int:
        changed = folder.stat().st_mtime_ns
        if self._seen.get(folder.path, (0, 0))[0] != changed:
            sizes = (max(file.stat().st_size, LEAST) for file in plain_in(Path(folder.path)))
            self._seen[folder.path] = (changed, sum(sizes))
        return self._seen[folder.path][1]


def folders_in(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def plain_in(folder: Path) -> list["os.DirEntry[str]"]:
    with os.scandir(folder) as entries:
        return [entry for entry in entries if is_digest(entry.name) and entry.is_file(follow_symlinks=False)]


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


def sweep(folder: Path, seconds: float = 3600) -> None:
    """Remove what a process that was killed had begun, or nobody came back for; nothing takes an hour to write."""
    for draft in folder.iterdir() if folder.is_dir() else ():
        try:
            if draft.lstat().st_mtime < time.time() - seconds:
                draft.unlink()
        except FileNotFoundError:
            continue  # finished, or swept by another process
