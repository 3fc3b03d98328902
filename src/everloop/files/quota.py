"""The Files port within quotas: nobody has more kept than they may.

What comes in at the same moment counts from its first byte, so that many uploads at once get no further than one after
the other. Each process counts its own: on several machines someone may get ahead by what is under way on the others.
"""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from hashlib import sha256

from ..errors import NoRoom
from ..ports import Files, KeptFile
from ..ports.workspace import OpenFile
from .names import LEAST, ref_of

QuotaOf = Callable[[str], Awaitable[int]]
"""How many bytes may be kept for someone; 0: as many as there is room for."""


class QuotaFiles:
    def __init__(self, files: Files, quota_of: QuotaOf) -> None:
        self._files = files
        self.quota_of = quota_of
        self._coming: Counter[str] = Counter()  # bytes, of each owner
        self._came: Counter[str] = Counter()

    async def put(self, owner: str, content: bytes, name: str) -> str:
        """Raises NoRoom, StoreFull. What is there already takes no more room."""
        quota = await self.quota_of(owner)
        if not quota or await self._has(owner, content):
            return await self._files.put(owner, content, name)
        async with self._room(owner, quota, name) as room:
            room.take(len(content))
            return await self._files.put(owner, content, name)

    async def keep(self, owner: str, pieces: AsyncIterable[bytes], name: str) -> KeptFile:
        """Raises NoRoom, StoreFull."""
        quota = await self.quota_of(owner)
        if not quota:
            return await self._files.keep(owner, pieces, name)
        async with self._room(owner, quota, name) as room:
            return await self._files.keep(owner, _counted(pieces, room), name)

    async def get(self, owner: str, ref: str) -> bytes:
        return await self._files.get(owner, ref)

    def open(self, owner: str, ref: str) -> AbstractAsyncContextManager[OpenFile]:
        return self._files.open(owner, ref)

    async def used(self, owner: str) -> int:
        return await self._files.used(owner)

    async def _has(self, owner: str, content: bytes) -> bool:
        try:
            async with self._files.open(owner, ref_of(sha256(content).hexdigest())) as file:
                return file.size == len(content)
        except FileNotFoundError:
            return False

    @asynccontextmanager
    async def _room(self, owner: str, quota: int, name: str) -> "AsyncGenerator[_FreeRoom]":
        before = self._came[owner]
        used = await self._files.used(owner)

        def check() -> None:
            if used + self._came[owner] - before + self._coming[owner] > quota:
                raise NoRoom(
                    f"{name or 'the file'} is not kept: together with it your files would take more than "
                    f"{quota:,} bytes (files.quota)"
                )

        room = _FreeRoom(self._coming, owner, check)
        try:
            yield room
            self._came[owner] += room.size
        finally:
            self._coming[owner] -= room.size


class _FreeRoom:
    """What one file takes of it, while it comes in."""

    def __init__(self, coming: Counter[str], owner: str, check: Callable[[], None]) -> None:
        self._coming = coming
        self._owner = owner
        self._check = check
        self._bytes = 0
        self.size = 0

    def take(self, size: int) -> None:
        self._bytes += size
        more = max(self._bytes, LEAST) - self.size
        self.size += more
        self._coming[self._owner] += more
        self._check()


async def _counted(pieces: AsyncIterable[bytes], room: _FreeRoom) -> AsyncIterator[bytes]:
    async for piece in pieces:
        room.take(len(piece))
        yield piece
