"""Attachments, produced files, whole results."""

from collections.abc import AsyncIterator, Collection, Iterable
from typing import Protocol

from msgspec import Struct


class KeptFile(Struct, frozen=True):
    """A file that lies there: in whose folder, and when it was put there the last time."""

    owner: str
    ref: str
    size: int
    at: float


class Files(Protocol):
    """Whole tool results, attachments, produced files; content-addressed."""

    async def put(self, owner: str, content: bytes, name: str) -> str: ...

    async def get(self, owner: str, ref: str) -> bytes: ...


class FileShelves(Protocol):
    """The files of everyone, as they lie there."""

    async def beginning(self, digits: Collection[str]) -> list[KeptFile]:
        """Those whose hashes begin so, whosever they are."""

    def remove(self, files: Iterable[KeptFile], before: float) -> AsyncIterator[KeptFile]:
        """Remove these, one after the other, but none that was put again since `before`; tells which are gone."""
