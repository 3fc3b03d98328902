"""Attachments, produced files, whole results."""

from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct

from .workspace import OpenFile


class KeptFile(Struct, frozen=True):
    """A file that lies there: in whose folder, and when it was put there the last time."""

    owner: str
    ref: str
    size: int
    at: float


class FileRecord(Struct, frozen=True):
    """A file that a person has sent or is given: what they call it, and what it is by what it holds."""

    owner: str
    ref: str
    name: str
    mime: str
    size: int
    at: float = 0.0


class Files(Protocol):
    """Whole tool results, attachments, produced files; content-addressed.

    `get` and `open` raise ValueError when `ref` is no reference, FileNotFoundError when the owner has no such file
    (whether or not someone else has), and OSError when it cannot be read. What is put raises StoreFull."""

    async def put(self, owner: str, content: bytes, name: str) -> str: ...

    async def keep(self, owner: str, pieces: AsyncIterable[bytes], name: str) -> KeptFile:
        """As `put`, piece by piece: never more than a few of them are in memory."""
        ...

    async def get(self, owner: str, ref: str) -> bytes: ...

    def open(self, owner: str, ref: str) -> AbstractAsyncContextManager[OpenFile]:
        """To be read in parts. Its `tag` is the whole hash."""
        ...

    async def used(self, owner: str) -> int:
        """How many bytes are kept for someone, a file counting as at least 4 kB."""
        ...


class FileRecords(Protocol):
    """What is known of files beside their bytes. Raises StoreError."""

    async def note_file(self, record: FileRecord, sent: bool = True) -> None:
        """The same file `sent` again is known by its new name; one that was made for them leaves the name under which
        it is known, so that what somebody has sent is found by it."""

    async def recorded_files(self, owner: str, *, limit: int = 100, skip: int = 0) -> list[FileRecord]:
        """The latest first, after the first `skip`."""
        ...

    async def recorded_file(self, owner: str, ref: str) -> FileRecord | None: ...

    async def owners_of_file(self, ref: str) -> list[str]: ...

    async def threads_of_file(self, owner: str, ref: str) -> list[str]:
        """The conversations of the owner's that tell of it, the latest first. All that was said is read for it."""
        ...

    async def forget_file(self, owner: str, ref: str) -> bool: ...


class KeepsFiles(Protocol):
    """Keeps what a person is to have, within their quota, and under a name. Raises NoRoom, StoreFull."""

    @property
    def largest(self) -> int:
        """Bytes of one file."""
        ...

    async def keep(self, owner: str, pieces: AsyncIterable[bytes], name: str) -> FileRecord: ...


class FileShelves(Protocol):
    """The files of everyone, as they lie there."""

    async def files(self) -> list[KeptFile]:
        """The largest first."""
        ...

    async def beginning(self, digits: Collection[str]) -> list[KeptFile]:
        """Those whose hashes begin so, whosever they are."""
        ...

    def remove(self, files: Iterable[KeptFile], before: float) -> AsyncIterator[KeptFile]:
        """Remove these, one after the other, but none that was put again since `before`; tells which are gone."""
        ...
