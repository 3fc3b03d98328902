"""The tar of a backup: ustar, with an extended header where a name is long or a number large (PAX), and no other.

A library's reader takes whatever a header asks for into memory; here each header has a limit. A library's writer keeps
a line of each member, and goes on writing when it is thrown away half done: here it only writes.
"""

import re
import tarfile
from collections.abc import Iterator
from typing import Protocol

from ..errors import BackupDamaged, BackupError

BLOCK = tarfile.BLOCKSIZE
LONGEST_HEADER = 65_536  # bytes: two paths as long as Linux has them are 8,192
_PIECE = 262_144
_RECORD = re.compile(rb"(\d{1,6}) ([^=]{1,100})=")


class Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Sink(Protocol):
    def write(self, data: bytes, /) -> int: ...


def is_file(info: tarfile.TarInfo) -> bool:
    return info.type in (tarfile.REGTYPE, tarfile.AREGTYPE)


class TarWriter:
    """Member by member; only `end` makes it a tar."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def add(self, info: tarfile.TarInfo, stream: Stream | None = None) -> None:
        """`stream` has as many bytes as the header says, or more."""
        self._sink.write(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        left = info.size
        while stream and left:
            piece = stream.read(min(left, _PIECE))
            if not piece:
                raise BackupError(f"{info.name!r} ended before its end")
            self._sink.write(piece)
            left -= len(piece)
        self._sink.write(bytes(-info.size % BLOCK))

    def end(self) -> None:
        self._sink.write(bytes(2 * BLOCK))


class TarReader:
    """Member by member; the bytes of one are asked for before the next header. Raises BackupDamaged."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._left = self._padding = 0

    def next(self) -> tarfile.TarInfo | None:
        """None at the end. What was not read of the one before is read over."""
        for _ in self.pieces():
            pass
        self._exactly(self._padding)
        self._padding = 0
        info = self._header()
        if info is not None and info.type == tarfile.XHDTYPE:
            info = _extended(self._records(info), self._header())
        if info is None:
            return None
        if info.size < 0 or (info.size and not is_file(info)):
            raise BackupDamaged(f"the size of {info.name!r} cannot be")
        self._left, self._padding = info.size, -info.size % BLOCK
        return info

    def pieces(self) -> Iterator[bytes]:
        """What is left of this member."""
        while self._left:
            yield self.read(_PIECE)

    def read(self, size: int) -> bytes:
        """So many bytes of this member, or what is left of it."""
        data = self._exactly(min(size, self._left))
        self._left -= len(data)
        return data

    def _header(self) -> tarfile.TarInfo | None:
        block = self._exactly(BLOCK)
        if not any(block):
            return None
        try:
            return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError, OverflowError) as error:
            raise BackupDamaged(f"a header in it cannot be read ({error})") from error

    def _records(self, info: tarfile.TarInfo) -> dict[bytes, bytes]:
        if not 0 < info.size <= LONGEST_HEADER:
            raise BackupDamaged(f"a header in it says that it has {info.size:,} bytes")
        data = self._exactly(info.size + -info.size % BLOCK)[: info.size]
        found, at = dict[bytes, bytes](), 0
        while at < len(data):
            begins = _RECORD.match(data, at)
            end = at + int(begins[1]) if begins else 0
            if begins is None or not begins.end() < end <= len(data) or data[end - 1 : end] != b"\n":
                raise BackupDamaged("a header in it cannot be read")
            found[begins[2]] = data[begins.end() : end - 1]
            at = end
        return found

    def _exactly(self, size: int) -> bytes:
        """At most a piece at a time is asked for, so that what is not there takes no memory."""
        found = bytearray()
        while len(found) < size and (piece := self._stream.read(min(size - len(found), _PIECE))):
            found += piece
        if len(found) < size:
            raise BackupDamaged("it is cut off")
        return bytes(found)


def _extended(records: dict[bytes, bytes], info: tarfile.TarInfo | None) -> tarfile.TarInfo:
    """With what the header before says of it: what is long, large or not ASCII."""
    if info is None or info.type == tarfile.XHDTYPE or any(key.startswith(b"GNU.") for key in records):
        raise BackupDamaged("a header in it stands before no file")
    if b"path" in records:
        info.name = records[b"path"].decode("utf-8", "surrogateescape").removesuffix("/" if info.isdir() else "")
    if b"linkpath" in records:
        info.linkname = records[b"linkpath"].decode("utf-8", "surrogateescape")
    if b"size" in records:
        if not re.fullmatch(rb"\d{1,18}", records[b"size"]):
            raise BackupDamaged(f"the size of {info.name!r} cannot be")
        info.size = int(records[b"size"])
    return info
