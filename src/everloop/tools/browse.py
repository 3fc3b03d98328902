"""A workspace as its person looks at it: what is there, what a file holds, and how one gets in or out.

It opens what the file tools open, and in their way: beneath the folder's descriptor, no FIFO is waited for, the home is
out of reach. What a person puts here is their own doing, as if they had copied it there by hand (docs/untrusted.md).
"""

import asyncio
import os
import stat
import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from itertools import islice

from ..errors import EverloopError, PathRefused, ToolError
from ..ports import Files
from ..ports.workspace import FileWritten, FolderPage, WorkspaceEntry
from .changes import LARGEST_KEPT
from .draft import UploadDraft
from .workspace import Workspace

MOST = 200_000  # names of a folder that are counted
LARGEST = 200_000_000  # bytes of an upload
_COUNTING = 2.0  # seconds
QuotaOf = Callable[[str], Awaitable[int]]
_JOINERS = "\u200c\u200d"  # they make one letter or picture of several, and cannot mislead


class WorkspaceBrowser:
    """The WorkspaceFiles port. What is replaced or removed is kept in `files` for `owner`, as tools keep it."""

    def __init__(
        self,
        workspace: Workspace,
        files: Files,
        owner: str,
        largest: int = LARGEST,
        quota_of: QuotaOf | None = None,
    ) -> None:
        """`quota_of` says how much may lie in the workspace before nothing more is put there; 0: as much as fits."""
        self._workspace = workspace
        self._files = files
        self._owner = owner
        self._largest = largest
        self._quota_of = quota_of

    async def list(self, path: str, *, hidden: bool = False, skip: int = 0, limit: int = 500) -> FolderPage:
        with _refusing():
            return await asyncio.to_thread(self._listed, _here(path), hidden, skip, limit)

    @asynccontextmanager
    async def open(self, path: str) -> AsyncGenerator["BrowsedFile"]:
        with ExitStack() as stack:
            with _refusing():
                opened = self._workspace.opened(_here(path))
                fd, status = await asyncio.to_thread(stack.enter_context, opened)
            yield BrowsedFile(fd, status)

    async def put(self, path: str, pieces: AsyncIterable[bytes], *, replace: bool = False) -> FileWritten:
        above, name = self._split(path)
        size = 0
        room = await self._room()
        with _refusing(), ExitStack() as stack:
            folder = await asyncio.to_thread(stack.enter_context, self._workspace.folder(above))
            draft = await asyncio.to_thread(lambda: stack.enter_context(UploadDraft(folder, name, replace)))
            async for piece in pieces:
                size += len(piece)
                if size > self._largest:
                    raise PathRefused(f"the file is larger than {self._largest:,} bytes", "too_large")
                if room is not None and size > room:
                    raise PathRefused("with this file the workspace would take more than files.quota", "no_room")
                await asyncio.to_thread(draft.write, piece)
            kept = await self._keep(path) if draft.replaces else ""
            await asyncio.to_thread(draft.put)
        return FileWritten(_said(above, name), size, kept)

    async def remove(self, path: str) -> FileWritten:
        above, name = self._split(path)
        with _refusing():
            status = await asyncio.to_thread(self._remove_other, above, name)
            if status is not None:
                return FileWritten(_said(above, name), 0)
            seen = await asyncio.to_thread(self._workspace.look, _here(path), LARGEST_KEPT)
            if seen.status is None:
                raise PathRefused(f"there is no {path!r}", "missing")
            kept = await self._keep(path)
            await asyncio.to_thread(self._workspace.remove, _here(path), seen)
        return FileWritten(_said(above, name), seen.status.st_size, kept)

    async def _room(self) -> int | None:
        """Bytes that may still be put here; None: as many as fit."""
        quota = await self._quota_of(self._owner) if self._quota_of else 0
        return quota - await asyncio.to_thread(_taken, self._workspace) if quota else None

    def _split(self, path: str) -> tuple[str, str]:
        """The folder that a path is in, and its name there."""
        with _refusing():
            parts = self._workspace.parts_of(_here(path))
        if not parts:
            raise PathRefused("that is the workspace itself; name a file in it")
        return _here("/".join(parts[:-1])), parts[-1]

    def _listed(self, path: str, hidden: bool, skip: int, limit: int) -> FolderPage:
        with self._workspace.folder(path) as fd, os.scandir(fd) as found:
            entries = list(islice(found, MOST + 1))
            cut = len(entries) > MOST
            plain = [entry for entry in entries if not entry.name.startswith(".")]
            shown = sorted(entries if hidden else plain, key=_order)
            page = [self._entry(fd, path, entry) for entry in shown[skip : skip + limit]]
            said = "/".join(self._workspace.parts_of(path))
            return FolderPage(said, len(shown), len(entries) - len(plain), [each for each in page if each], cut)

    def _entry(self, folder: int, path: str, entry: os.DirEntry[str]) -> WorkspaceEntry | None:
        """None for what is gone by now, and for everloop's home, of which nothing is told."""
        try:
            status = os.stat(entry.name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return None
        if (status.st_dev, status.st_ino) == self._workspace.hidden:
            return None
        name = entry.name if _can_be_asked_for(entry.name) else ""
        if stat.S_ISLNK(status.st_mode):
            led = self._behind(f"{path}/{name}") if name else None
            if led is None:
                return WorkspaceEntry(name, _for_eyes(entry.name), "other", 0, status.st_mtime, link=True)
            status = led
        kind = "folder" if stat.S_ISDIR(status.st_mode) else "file" if stat.S_ISREG(status.st_mode) else "other"
        size = status.st_size if kind == "file" else 0
        link = entry.is_symlink()
        return WorkspaceEntry(name, _for_eyes(entry.name), kind, size, status.st_mtime, link)  # type: ignore[arg-type]

    def _behind(self, path: str) -> os.stat_result | None:
        """Where a link leads, if that is in the workspace: a file or a folder."""
        with suppress(ToolError), self._workspace.opened(path) as (_, status):
            return status
        with suppress(ToolError), self._workspace.folder(path) as fd:
            return os.fstat(fd)
        return None

    def _remove_other(self, above: str, name: str) -> os.stat_result | None:
        """Remove what is no regular file, if that can be; None if it is one."""
        with self._workspace.folder(above) as folder:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                return None
            if stat.S_ISDIR(status.st_mode):
                os.rmdir(name, dir_fd=folder)
            elif stat.S_ISLNK(status.st_mode):
                os.unlink(name, dir_fd=folder)
            else:
                raise PathRefused(f"{name!r} is no file; remove it in a terminal")
            return status

    async def _keep(self, path: str) -> str:
        """What a file holds, unless it is too large; without room for it nothing is changed."""
        seen = await asyncio.to_thread(self._workspace.look, _here(path), LARGEST_KEPT)
        if not seen.content:
            return ""
        try:
            return await self._files.put(self._owner, seen.content, path)
        except EverloopError as error:
            raise PathRefused(f"what {path!r} holds could not be kept, so it was not changed ({error})") from error


class BrowsedFile:
    """The OpenFile port."""

    def __init__(self, fd: int, status: os.stat_result) -> None:
        self._fd = fd
        self.size = status.st_size
        self.changed = status.st_mtime
        self.tag = f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"

    async def read(self, at: int, most: int) -> bytes:
        return await asyncio.to_thread(os.pread, self._fd, most, at)


@contextmanager
def _refusing() -> Iterator[None]:
    """What goes wrong with a path, in words for a person."""
    try:
        yield
    except ToolError as error:
        missing = isinstance(error.__cause__, FileNotFoundError)
        said = str(error).removesuffix("; ask the user").replace("'./", "'", 1)
        raise PathRefused(said, "missing" if missing else "refused") from error
    except FileExistsError as error:
        raise PathRefused("there is a file of that name already", "exists") from error
    except OSError as error:
        kind = "missing" if isinstance(error, FileNotFoundError) else "refused"
        raise PathRefused(f"that cannot be done ({error.strerror or error})", kind) from error


def _here(path: str) -> str:
    """A path of the workspace, also one that begins with a letter which means something else to tools."""
    return path if path.startswith("/") else f"./{path}"


def _taken(workspace: Workspace) -> int:
    """How much lies there, as far as it is counted: `MOST` names, and no longer than a moment."""
    total, seen, waiting, until = 0, 0, ["."], time.monotonic() + _COUNTING
    while waiting and seen < MOST and time.monotonic() < until:
        above = waiting.pop()
        with suppress(ToolError, OSError), workspace.folder(above) as fd, os.scandir(fd) as entries:
            for entry in entries:
                seen += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{above}/{entry.name}")
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    return total


def _said(above: str, name: str) -> str:
    return f"{above.removeprefix('./')}/{name}".lstrip("/")


def _order(entry: os.DirEntry[str]) -> tuple[bool, str, str]:
    return not entry.is_dir(follow_symlinks=False), entry.name.casefold(), entry.name


def _can_be_asked_for(name: str) -> bool:
    """As `Workspace.parts_of` has it."""
    return not any(ord(letter) < 32 or ord(letter) == 127 or "\ud800" <= letter <= "\udfff" for letter in name)


def _for_eyes(name: str) -> str:
    return "".join(each if each.isprintable() or each in _JOINERS else f"\\u{{{ord(each):x}}}" for each in name)
