"""What lies in the folder of files: how much it is, what nothing names any more, and how that goes.

Files are written before the entry that names them, so a crash in between leaves one behind that nobody will ever ask
for; so does an upload that no message has named. What is named is not looked at twice: it stays.
"""

import asyncio
import fcntl
import math
import os
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from pathlib import Path

from ..ports import FileRecords, FileShelves, KeptFile, Removal
from ..ports.backup import StoreCopies
from .folder import HALF_WRITTEN, folders_in, held, plain_in, sweep
from .names import SHORTEST, folder_of


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


class RecordedShelves:
    """FileShelves, of which what is removed is not known by name any more either."""

    def __init__(self, shelves: FileShelves, records: FileRecords) -> None:
        self._shelves = shelves
        self._records = records

    async def files(self) -> list[KeptFile]:
        return await self._shelves.files()

    async def beginning(self, digits: Collection[str]) -> list[KeptFile]:
        return await self._shelves.beginning(digits)

    async def unused(self, store: Removal) -> list[KeptFile]:
        return await unused(self._shelves, store)

    async def remove_own(self, owner: str, ref: str) -> bool:
        """Remove one of the owner's files, whatever names it; whether there was one, by its whole reference."""
        there = [file for file in await self.beginning([ref.removeprefix("file:")]) if file.owner == folder_of(owner)]
        gone = [file async for file in self.remove(there, math.inf)]
        return await self._records.forget_file(owner, ref) or bool(gone)

    async def remove(self, files: Iterable[KeptFile], before: float) -> AsyncIterator[KeptFile]:
        async for file in self._shelves.remove(files, before):
            for owner in await self._records.owners_of_file(file.ref):
                if folder_of(owner) == file.owner:
                    await self._records.forget_file(owner, file.ref)
            yield file


class SharedShelves:
    """FileShelves in a bucket. As long as this home is a restored copy that nobody has adopted, the bucket is the
    original's, which names what the copy does not know: so nothing is removed there."""

    def __init__(self, shelves: FileShelves, copies: StoreCopies) -> None:
        self._shelves = shelves
        self._copies = copies

    async def files(self) -> list[KeptFile]:
        return await self._shelves.files()

    async def beginning(self, digits: Collection[str]) -> list[KeptFile]:
        return await self._shelves.beginning(digits)

    async def remove(self, files: Iterable[KeptFile], before: float) -> AsyncIterator[KeptFile]:
        if await self._copies.restored() is None:
            async for file in self._shelves.remove(files, before):
                yield file


async def unused(shelves: FileShelves, store: Removal) -> list[KeptFile]:
    """Those that nothing in the store names. Files first: what is put from now on is not among them."""
    files = await shelves.files()
    named = await store.files_named()
    return [file for file in files if digits_of(file) not in named]


def digits_of(file: KeptFile) -> str:
    """By which a store says that it is named."""
    return file.ref.removeprefix("file:")[:SHORTEST]


def _files_in(root: Path) -> Iterator[KeptFile]:
    for owner in _owners_in(root):
        for part in folders_in(Path(owner.path)):
            yield from (_kept(owner.name, file) for file in plain_in(Path(part.path)))


def _beginning(root: Path, digits: Collection[str]) -> Iterator[KeptFile]:
    wanted = {part: tuple(each for each in digits if each.startswith(part)) for part in {each[:2] for each in digits}}
    for owner in _owners_in(root):
        for part in folders_in(Path(owner.path)):
            if part.name in wanted:
                found = [file for file in plain_in(Path(part.path)) if file.name.startswith(wanted[part.name])]
                yield from (_kept(owner.name, file) for file in found)


def _kept(owner: str, file: "os.DirEntry[str]") -> KeptFile:
    status = file.stat(follow_symlinks=False)
    return KeptFile(owner, f"file:{file.name}", status.st_size, status.st_mtime)


def _owners_in(root: Path) -> list["os.DirEntry[str]"]:
    return [folder for folder in folders_in(root) if folder.name != HALF_WRITTEN]
