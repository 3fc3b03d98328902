"""Attachments, produced files, whole results."""

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
