"""The elements of a JSON array, one after the other, however long the array is: no more than one of them is in memory.

What is broken is passed over if its end can be found, else all that follows is lost; both are told.
"""

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Any

from .values import Remark

PIECE = 1 << 20
LARGEST = 64 << 20  # characters of one element
MOST = 8 << 30  # bytes of all of it
_BLANK = re.compile(r"[\s,]*")
_MARK = re.compile(r'["{}\[\],]')
_STRING_END = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)  # remembers no place to go back to


def elements(file: IO[bytes], name: str) -> Iterator[Any]:
    """Values, and a Remark for each that is broken or too large."""
    window = _Window(file)
    if window.next() != "[":
        yield Remark(f"{name} is no JSON array: nothing in it can be read; is it the file that the service gave you?")
        return
    window.at += 1
    number = 0
    while (first := window.next()) and first != "]":
        number += 1
        value = window.value()
        if value is not _BROKEN:
            yield value
            continue
        if not window.skip():
            yield Remark(f"{name} is broken from element {number} on: what follows it cannot be read")
            return
        yield Remark(f"element {number} of {name} is broken or larger than {LARGEST:,} characters, and was passed over")
    if not first:
        yield Remark(f"{name} ends too early, after {number} elements: it may have been cut off; download it again")


_BROKEN = object()


class _Window:
    """What was read of a file and not used yet."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._text = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._decoder = json.JSONDecoder()
        self._read = 0
        self._ended = False
        self.held = ""
        self.at = 0

    def next(self) -> str:
        """The character that begins what comes next; "" at the end."""
        while True:
            found = _BLANK.match(self.held, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.held):
                return self.held[self.at]
            if not self._more(PIECE):
                return ""

    def value(self) -> Any:
        while True:
            try:
                value, self.at = self._decoder.raw_decode(self.held, self.at)
            except (ValueError, RecursionError):
                size = len(self.held) - self.at
                if size > LARGEST or not self._more(max(PIECE, size)):
                    return _BROKEN
            else:
                return value

    def skip(self) -> bool:
        """Go behind the element that begins here, by its brackets, however long it is. Whether its end was found."""
        scan = _Scan()
        while True:
            end = scan.end_in(self.held, self.at)
            if end is not None:
                self.at = end
                return True
            self.at = scan.at
            if not self._more(PIECE):
                return False

    def _more(self, size: int) -> bool:
        """Whether there was more to read."""
        if self._ended:
            return False
        data = self._file.read(size) if self._read < MOST else b""
        self._read += len(data)
        self._ended = not data
        self.held, self.at = self.held[self.at :] + self._text.decode(data, self._ended), 0
        return bool(data)


class _Scan:
    """Where an element ends, told by its brackets and quotation marks alone; goes on from piece to piece."""

    def __init__(self) -> None:
        self.at = 0
        self._depth = 0
        self._in_string = False

    def end_in(self, text: str, at: int) -> int | None:
        """None: not in this text, of which all before `self.at` has been looked at."""
        self.at = at
        while True:
            if self._in_string:
                found = _STRING_END.match(text, self.at)
                if not found:
                    self.at = max(self.at, len(text) - 1 if text.endswith("\\") else len(text))
                    return None
                self.at, self._in_string = found.end(), False
            mark = _MARK.search(text, self.at)
            if not mark:
                self.at = len(text)
                return None
            self.at = mark.end()
            if mark[0] == '"':
                self._in_string = True
            elif self._depth == 0 and mark[0] in ",]}":
                return mark.start()
            else:
                self._depth += {"{": 1, "[": 1, ",": 0}.get(mark[0], -1)
                if self._depth == 0 and mark[0] != ",":
                    return mark.end()
