"""What one gzip member holds. A library's reader goes on with whatever members follow it, and reads over zeros: here a
file ends where the backup ends."""

import zlib
from typing import Protocol

from ..errors import BackupDamaged
from .pack import PIECE

_GZIP = 16 + zlib.MAX_WBITS


class Source(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Inflating:
    """Raises BackupDamaged, and zlib.error."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._inflater = zlib.decompressobj(_GZIP)

    def read(self, size: int, /) -> bytes:
        """Not more than so many bytes; b"" at the end."""
        while not self._inflater.eof:
            packed = self._inflater.unconsumed_tail or self._source.read(PIECE)
            if not packed:
                raise BackupDamaged("it is cut off")
            if found := self._inflater.decompress(packed, size):
                return found
        if self._inflater.unused_data or self._source.read(1):
            raise BackupDamaged("something follows its end")
        return b""
