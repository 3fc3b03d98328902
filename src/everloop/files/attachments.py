"""What people send and are given: kept within their quota, by name, and made a part of a message.

Every file is kept, whatever it is. The model sees pictures and reads texts; of anything else it is told the name, the
reference, the kind and the size, and which tool can use it. Nothing is ever unpacked.
"""

import asyncio
import os
import stat
from collections.abc import AsyncIterable, AsyncIterator, Callable
from pathlib import Path

from ..core.message import Media, Part
from ..errors import FileTooLarge, MailRefused
from ..ports import FileRecord, FileRecords, Files
from ..ports.workspace import OpenFile
from ..readings.filenames import plain_name
from ..readings.media import LARGEST_IMAGE, SNIFFED, mime_of, mime_of_head
from .enclosing import described, shown_text
from .pictures import AttachedFile, looked_at

PIECE = 1 << 20
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a FIFO must not make us wait


class Attachments:
    """The KeepsFiles port. `largest` says what one file may have at the moment, in bytes."""

    def __init__(self, files: Files, records: FileRecords, largest: Callable[[], int]) -> None:
        self._files = files
        self._records = records
        self._largest = largest

    @property
    def largest(self) -> int:
        return self._largest()

    async def keep(self, owner: str, pieces: AsyncIterable[bytes], name: str, sent: bool = False) -> FileRecord:
        """`sent` by the person, and not made for them. Raises FileTooLarge, NoRoom, StoreFull."""
        name = plain_name(name)
        head = bytearray()
        kept = await self._files.keep(owner, self._sniffed(pieces, name, head), name)
        record = FileRecord(owner, kept.ref, name, mime_of_head(bytes(head), kept.size), kept.size, kept.at)
        await self._records.note_file(record, sent)
        return record

    async def take(self, owner: str, name: str, data: bytes) -> Part:
        """The part of a message that stands for a file: whoever made it, the person has not said it. Raises
        FileTooLarge, NoRoom, StoreFull."""
        if len(data) > self.largest:
            raise self._too_large(name)
        attached = await looked_at(plain_name(name), data)
        file = await self._files.put(owner, attached.data, attached.name)
        size = len(attached.data)
        await self._records.note_file(FileRecord(owner, file, attached.name, mime_of(attached.data), size))
        return _part(attached, file, owner)

    async def name(self, owner: str, ref: str, name: str) -> Part:
        """As `take`, for one that the owner has already: under this name, or the one that it has. Raises what
        `Files.open` raises."""
        async with self._files.open(owner, ref) as file:
            size, whole, head = file.size, f"file:{file.tag}", await file.read(0, SNIFFED)
        if not name and (known := await self._records.recorded_file(owner, whole)):
            name = known.name
        if size <= LARGEST_IMAGE:
            return await self.take(owner, name, await self._files.get(owner, whole))
        record = FileRecord(owner, whole, plain_name(name), mime_of_head(head, size), size)
        await self._records.note_file(record)
        return described(record)

    async def attach(self, owner: str, path: str | Path) -> Part:
        """As `take`, for a file of this machine. Raises MailRefused when it cannot be read."""
        try:
            fd = await asyncio.to_thread(os.open, path, _READ)
        except (OSError, ValueError) as error:  # ValueError: a name with a zero byte
            raise MailRefused(f"{path} cannot be read ({getattr(error, 'strerror', None) or error})") from error
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise MailRefused(f"{path} is not a file that can be read as a whole")
            if status.st_size <= LARGEST_IMAGE:
                return await self.take(owner, Path(path).name, await asyncio.to_thread(_all_of, fd))
            if status.st_size > self.largest:
                raise self._too_large(str(path))
            return described(await self.keep(owner, _pieces_of(fd), Path(path).name, sent=True))
        finally:
            os.close(fd)

    async def _sniffed(self, pieces: AsyncIterable[bytes], name: str, head: bytearray) -> AsyncIterator[bytes]:
        size = 0
        async for piece in pieces:
            size += len(piece)
            if size > self.largest:
                raise self._too_large(name)
            if len(head) < SNIFFED:
                head += piece[: SNIFFED - len(head)]
            yield piece

    def _too_large(self, name: str) -> FileTooLarge:
        return FileTooLarge(f"{name} is not kept: it has more than {self.largest:,} bytes (files.max_bytes)")


def _part(attached: AttachedFile, file: str, owner: str) -> Part:
    if attached.mime:
        return Media(file, attached.mime, attached.name, owner)
    record = FileRecord(owner, file, attached.name, attached.kind, len(attached.data))
    if attached.kind:
        return described(record, attached.why)
    return shown_text(record, attached.data.decode())


async def pieces_of(file: OpenFile) -> AsyncIterator[bytes]:
    """All of it, as long as it was when it was opened."""
    at = 0
    while at < file.size and (piece := await file.read(at, min(PIECE, file.size - at))):
        yield piece
        at += len(piece)


async def _pieces_of(fd: int) -> AsyncIterator[bytes]:
    at = 0
    while piece := await asyncio.to_thread(os.pread, fd, PIECE, at):
        yield piece
        at += len(piece)


def _all_of(fd: int) -> bytes:
    with open(fd, "rb", closefd=False) as file:
        return file.read(LARGEST_IMAGE + 1)
