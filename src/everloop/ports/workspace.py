"""A person's own workspace, as they look at it themselves: listed, read, added to."""

from collections.abc import AsyncIterable
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from msgspec import Struct


class WorkspaceEntry(Struct, frozen=True):
    """What lies in a folder. `name` is "" where nobody can ask for it: it holds control characters, or is no UTF-8.
    `shown` is for eyes: what cannot be seen, or would turn letters around, is written as its number. A link that stays
    inside is what it leads to; any other is `other`."""

    name: str
    shown: str
    kind: Literal["folder", "file", "other"]
    size: int
    changed: float
    link: bool = False


class FolderPage(Struct, frozen=True):
    """A part of a folder, folders first, each by name. `total` can be asked for; `hidden` more have names that begin
    with a dot. `cut`: there are more than are ever counted."""

    path: str
    total: int
    hidden: int
    entries: list[WorkspaceEntry]
    cut: bool = False


class FileWritten(Struct, frozen=True):
    """`kept` is the reference of what was there before, if that could be kept: `GET /api/files/{ref}` has it."""

    path: str
    size: int
    kept: str = ""


class OpenFile(Protocol):
    """A regular file, as long as it had when it was opened. `tag` is another one after a change."""

    size: int
    changed: float
    tag: str

    async def read(self, at: int, most: int) -> bytes: ...


class WorkspaceFiles(Protocol):
    """Nothing outside of the workspace is seen or touched, and nothing of everloop's home. Raises PathRefused."""

    async def list(self, path: str, *, hidden: bool = False, skip: int = 0, limit: int = 500) -> FolderPage: ...

    def open(self, path: str) -> AbstractAsyncContextManager[OpenFile]: ...

    async def put(self, path: str, pieces: AsyncIterable[bytes], *, replace: bool = False) -> FileWritten:
        """A file, whole or not at all, in a folder that is there. Without `replace` no file is replaced."""
        ...

    async def remove(self, path: str) -> FileWritten:
        """A file, a link (not what it leads to), or an empty folder."""
        ...
