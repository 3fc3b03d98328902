"""A packed body, unpacked in pieces of limited size: a little may become much (a decompression bomb)."""

import asyncio
import zlib
from collections.abc import Iterator

_PIECE = 2**18
_SLICE = 2**14  # bytes at a time: zlib copies all that follows a file, of which the smallest has 20
_EITHER_HEADER = 47  # zlib finds out whether gzip's or its own header begins a body
_MAGIC = b"\x1f"


class Unzip:
    """gzip, of which a file may be several, one after another, or zlib's own form. Raises zlib.error."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_EITHER_HEADER)
        self._has_begun = self._has_ended = False

    @property
    def is_whole(self) -> bool:
        """As nothing at all is."""
        return self._member.eof or not self._has_begun

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Some are empty: after each step of work there is one, or one of full size, so that nobody works for long."""
        for start in range(0, len(data), _SLICE):
            yield from self._unpacked(data[start : start + _SLICE])
            yield b""

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        piece, self._has_begun = b"", True
        while (data or len(piece) == _PIECE) and not self._has_ended:
            if self._member.eof:
                if not data.startswith(_MAGIC):
                    self._has_ended = bool(data)  # some servers fill up what follows
                    return
                self._member = zlib.decompressobj(_EITHER_HEADER)
            piece = self._member.decompress(data, _PIECE)
            if piece:
                yield piece
            data = self._member.unconsumed_tail or self._member.unused_data


async def make_room(piece: bytes) -> None:
    """To unpack is to work without waiting, and a few bytes may be work for seconds. After each step others have their
    turn."""
    if len(piece) in (0, _PIECE):
        await asyncio.sleep(0)
