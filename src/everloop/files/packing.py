"""Files on their way out of the house: into a new folder, or one after the other into a zip that is sent, or written,
while it is made. A piece of one file at a time is in memory."""

import asyncio
import errno
import io
import os
import shutil
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from ..errors import HomeError
from ..ports import HomeFile
from .disk_space import ENTRY, DiskSpace

_EARLIEST, _LATEST = datetime(1980, 1, 1, tzinfo=UTC), datetime(2107, 12, 31, tzinfo=UTC)  # that a zip can say


async def zipped(files: AsyncIterator[HomeFile], now: float) -> AsyncGenerator[bytes]:
    """The bytes of a zip file, whose members are of now."""
    made = min(max(datetime.fromtimestamp(now, UTC), _EARLIEST), _LATEST).timetuple()[:6]
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as pack:
        async for file in files:
            if file.pieces is None:
                continue
            about = zipfile.ZipInfo(file.path, made)
            about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
            with pack.open(about, "w", force_zip64=True) as entry:
                async for piece in file.pieces:
                    await asyncio.to_thread(entry.write, piece)
                    if packed := sink.take():
                        yield packed
            if packed := sink.take():
                yield packed
    yield sink.take()


async def write_zip(files: AsyncIterator[HomeFile], path: Path, now: float) -> None:
    """A new file, whole or not at all. Raises HomeError."""
    try:
        await _write(path, zipped(files, now), DiskSpace(path.parent))
    except OSError as error:
        raise HomeError(f"{path} cannot be written ({error.strerror}): name another file") from error


async def write_folder(files: AsyncIterator[HomeFile], folder: Path) -> None:
    """A folder that is new, or empty: with all of it, or empty again. Raises HomeError."""
    try:
        await asyncio.to_thread(_make, folder)
        room = DiskSpace(folder)
        with _emptied_unless_whole(folder):
            async for file in files:
                if file.pieces is not None:
                    await _write(folder / file.path, file.pieces, room)
    except OSError as error:
        raise HomeError(f"{folder} cannot be written ({error.strerror}): name another folder") from error


async def _write(path: Path, pieces: AsyncIterator[bytes], room: DiskSpace) -> None:
    target = await asyncio.to_thread(_new, path)
    try:
        room.take(ENTRY)
        async for piece in pieces:
            room.take(len(piece))
            await asyncio.to_thread(target.write, piece)
        await asyncio.to_thread(target.close)
    except BaseException:
        target.close()
        os.unlink(path)
        raise


@contextmanager
def _emptied_unless_whole(folder: Path) -> Iterator[None]:
    """A full disk is not left full, and nobody takes the half of something for all of it."""
    try:
        yield
    except BaseException:
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        raise


def _make(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(errno.ENOTEMPTY, "there is something in it", str(folder))


def _new(path: Path) -> BinaryIO:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600))


class _Sink(io.RawIOBase):
    """What a zip is written to; it cannot be sought in, so that nothing has to be kept."""

    def __init__(self) -> None:
        self._pieces = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)  # type: ignore[call-overload]
        self._pieces += piece
        return len(piece)

    def take(self) -> bytes:
        taken, self._pieces = bytes(self._pieces), bytearray()
        return taken
