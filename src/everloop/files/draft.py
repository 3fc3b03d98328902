"""A file that is written piece by piece and known by its hash when it is whole; and one that is read in parts."""

import asyncio
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path


async def finish(work: Callable[[], None]) -> None:
    """Have it done in a thread, to its end also where nobody waits any more: what it writes to is closed after that,
    and the number of a closed file may be another's."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise


class HashedDraft:
    """Written at `path`, and moved from there; what is not moved is gone when it is closed. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._hash = sha256()
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def write(self, piece: bytes) -> None:
        self._hash.update(piece)
        self.size += len(piece)
        left = memoryview(piece)
        while left:
            left = left[os.write(self._fd, left) :]

    def move(self, target: Path) -> None:
        """To its place, durably but for the folder's own entry."""
        os.fsync(self._fd)
        self.path.rename(target)

    def close(self) -> None:
        os.close(self._fd)
        self.path.unlink(missing_ok=True)


class OpenedFile:
    """The OpenFile port over a kept file, whose name is its hash."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        status = os.fstat(self._fd)
        self.size = status.st_size
        self.changed = status.st_mtime
        self.tag = path.name

    async def read(self, at: int, most: int) -> bytes:
        return await asyncio.to_thread(self.read_at, at, most)

    def read_at(self, at: int, most: int) -> bytes:
        """All of it that there is: the system may give less at once."""
        data = os.pread(self._fd, most, at)
        while len(data) < most and (more := os.pread(self._fd, most - len(data), at + len(data))):
            data += more
        return data

    def close(self) -> None:
        os.close(self._fd)
