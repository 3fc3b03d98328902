"""What lies in the folder of files: how much it is, what nothing names any more, and how that goes.

Files are written before the entry that names them, so a crash in between leaves one behind that nobody will ever ask
for; so does an upload that no message has named. What is named is not looked at twice: it stays.
"""

import asyncio
import fcntl
import os
import re
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from pathlib import Path

from ..core.errors import NoRoom
from ..core.ports import KeptFile, Removal
from .folder import HALF_WRITTEN, SHORTEST, Folder, held, sweep

_DIGEST = re.compile(r"[0-9a-f]{64}")
LEAST = 4096  # bytes that even the smallest file takes of a disk


class FileInventory:
    def __init__(self, root: Path) -> None:
        self._root = root

    async def files(self) -> list[KeptFile]:
        """The largest first."""
        found = await asyncio.to_thread(lambda: [*_files_in(self._root)])
        return sorted(found, key=lambda file: (-file.size, file.ref, file.owner))

    async def beginning(self, digits: Collection[str]) -> list[KeptFile]:
        """Those whose hashes begin so, whosever they are."""
        return await asyncio.to_thread(lambda: [*_beginning(self._root, digits)])

    async def unused(self, store: Removal) -> list[KeptFile]:
        """Those that nothing in the store names. Files first: what is put from now on is not among them."""
        files = await self.files()
        named = await store.files_named()
        return [file for file in files if digits_of(file) not in named]

    async def remove(self, files: Iterable[KeptFile], before: float) -> AsyncIterator[KeptFile]:
        """Remove these, one after the other, but none that was put again since `before`; tells which are gone."""
        for file in files:
            if await asyncio.to_thread(self._remove, file, before):
                yield file
        await asyncio.to_thread(sweep, self._root / HALF_WRITTEN)

    def _remove(self, file: KeptFile, before: float) -> bool:
        digest = file.ref.removeprefix("file:")
        path = self._root / file.owner / digest[:2] / digest
        with held(self._root, fcntl.LOCK_EX):  # whoever puts it now finds it and renews it, or writes it anew
            try:
                if path.lstat().st_mtime >= before:
                    return False
                path.unlink()
            except FileNotFoundError:
                return False
        return True


class BoundedFiles:
    """The Files port over a folder in which nobody has more than `most` bytes."""

    def __init__(self, folder: Folder, most: int) -> None:
        self._folder = folder
        self._most = most
        self._seen: dict[Path, tuple[int, int]] = {}  # a folder's time of change, and what lay in it then

    async def put(self, owner: str, content: bytes, name: str) -> str:
        """Raises NoRoom, StoreFull."""
        if not await asyncio.to_thread(self._fits, owner, content):
            raise NoRoom(
                f"{name or 'the file'} is not kept: together with it your files would take more than "
                f"{self._most:,} bytes (gateway.bytes_per_user)"
            )
        return await self._folder.put(owner, content, name)

    async def get(self, owner: str, ref: str) -> bytes:
        return await self._folder.get(owner, ref)

    def _fits(self, owner: str, content: bytes) -> bool:
        """What is there already takes no more room."""
        size = max(len(content), LEAST)
        return self._size_of(self._folder.of(owner)) + size <= self._most or self._folder.keeps(owner, content)

    def _size_of(self, folder: Path) -> int:
        """A folder changes its time when a file comes or goes, so only those that did are counted again."""
        total = 0
        for each in _folders_in(folder):
            changed = each.stat().st_mtime_ns
            path = Path(each.path)
            if self._seen.get(path, (0, 0))[0] != changed:
                self._seen[path] = (changed, sum(max(file.stat().st_size, LEAST) for file in _plain_in(path)))
            total += self._seen[path][1]
        return total


def digits_of(file: KeptFile) -> str:
    """By which a store says that it is named."""
    return file.ref.removeprefix("file:")[:SHORTEST]


def _files_in(root: Path) -> Iterator[KeptFile]:
    for owner in _owners_in(root):
        for part in _folders_in(Path(owner.path)):
            yield from (_kept(owner.name, file) for file in _plain_in(Path(part.path)))


def _beginning(root: Path, digits: Collection[str]) -> Iterator[KeptFile]:
    wanted = {part: tuple(each for each in digits if each.startswith(part)) for part in {each[:2] for each in digits}}
    for owner in _owners_in(root):
        for part in _folders_in(Path(owner.path)):
            if part.name in wanted:
                found = [file for file in _plain_in(Path(part.path)) if file.name.startswith(wanted[part.name])]
                yield from (_kept(owner.name, file) for file in found)


def _kept(owner: str, file: "os.DirEntry[str]") -> KeptFile:
    status = file.stat(follow_symlinks=False)
    return KeptFile(owner, f"file:{file.name}", status.st_size, status.st_mtime)


def _owners_in(root: Path) -> list["os.DirEntry[str]"]:
    return [folder for folder in _folders_in(root) if folder.name != HALF_WRITTEN]


def _folders_in(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def _plain_in(folder: Path) -> list["os.DirEntry[str]"]:
    with os.scandir(folder) as entries:
        return [entry for entry in entries if _DIGEST.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)]
