"""A packed body, unpacked in pieces of limited size: a little may become much."""

import zlib
from collections.abc import Iterator

_PIECE = 2**18
_EITHER_HEADER = 47  # zlib finds out whether gzip's or its own header begins a body
_MAGIC = b"\x1f"


class Unzip:
    """gzip, of which a file may be several, one after another, or zlib's own form. Raises zlib.error."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_EITHER_HEADER)

    @property
    def is_whole(self) -> bool:
        return self._member.eof

    def pieces(self, data: bytes) -> Iterator[bytes]:
        piece = b""
        while data or len(piece) == _PIECE:
            if self._member.eof:
                if not data.startswith(_MAGIC):
                    return  # some servers fill up what follows
                self._member = zlib.decompressobj(_EITHER_HEADER)
            piece = self._member.decompress(data, _PIECE)
            if piece:
                yield piece
            data = self._member.unconsumed_tail or self._member.unused_data
