"""Reads an HTTP/1.1 answer from the bytes of a connection, however the network cuts them."""

import re
from collections.abc import Callable, Mapping
from urllib.parse import quote_from_bytes

from multidict import CIMultiDict

_MOST_WAITING = 2**16  # bytes of a head, or of a line that says how long a piece is
_MOST_FIELDS = 1000
_MOST_HINTS = 1000  # heads that say only that the answer is still to come
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9]\d\d)(?: |$)")
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([^\x00-\x08\x0a-\x1f\x7f]*)")
_LENGTH = re.compile(r"[0-9]{1,18}")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")
_IN_ADDRESSES = bytes(range(0x20, 0x7F))
_NO_HEADERS: Mapping[str, str] = {}
_SIZE_COMES, _BREAK_COMES, _TRAILER_COMES = 0, -1, -2  # what follows when no bytes of a piece are left


class NotHttp(Exception):
    """These bytes are no answer."""


class AnswerReader:
    """One answer. `feed` gives what there is of its body in the bytes; `status` is 0 until the head has come.

    After `done` the connection can carry another answer if it `keeps`. A body may also end with the connection: `end`.
    """

    __slots__ = ("_bodiless", "_feed", "_hints", "_left", "_rest", "done", "headers", "keeps", "status")

    def __init__(self, bodiless: bool = False) -> None:
        self._bodiless = bodiless
        self._feed: _Feed = AnswerReader._read_head  # not bound: it would hold its reader, which holds it
        self._hints = 0
        self._left = 0  # bytes of the body, or of the piece
        self._rest = b""  # cannot be understood before more has come
        self.status = 0
        self.headers: Mapping[str, str] = _NO_HEADERS
        self.done = self.keeps = False

    def feed(self, data: bytes) -> bytes:
        """Raises NotHttp."""
        if self._rest:
            data, self._rest = self._rest + data, b""
        return self._feed(self, data)

    def end(self, by_force: bool = False) -> None:
        """The connection has ended: in peace, or by force. Raises EOFError if the answer has not."""
        if not self.done and (by_force or self._feed is not AnswerReader._read_all):
            raise EOFError
        self.done = True

    def _read_head(self, data: bytes) -> bytes:
        while not self.status:
            end, after = data.find(b"\r\n\r\n"), 4
            short = data.find(b"\n\n")
            if 0 <= short < end or end < 0:
                end, after = short, 2
            if not data.startswith(b"HTTP/"[: len(data)]) or end > _MOST_WAITING:
                raise NotHttp("something else speaks there")
            if end < 0:
                return self._wait_for_more(data)
            self._understand(data[:end].replace(b"\r\n", b"\n").split(b"\n"))
            data = data[end + after :]
        return self._feed(self, data)

    def _understand(self, lines: list[bytes]) -> None:
        first = _STATUS.match(lines[0])
        if first is None or len(lines) > _MOST_FIELDS:
            raise NotHttp("this is not the head of an answer")
        status = int(first[2])
        if status < 200 and status != 101:
            self._hints += 1
            if self._hints > _MOST_HINTS:
                raise NotHttp("its answer never comes")
            return
        headers = CIMultiDict([_field(line) for line in lines[1:]])
        self.status, self.headers = status, headers
        wish = ",".join(headers.getall("Connection", ())).lower()
        # Whoever changes to another protocol (101) is not asked anything in this one.
        self.keeps = "close" not in wish and (first[1] == b"1" or "keep-alive" in wish) and status != 101
        self._feed = self._way_to_read(headers)

    def _way_to_read(self, headers: "CIMultiDict[str]") -> "_Feed":
        coding = headers.get("Transfer-Encoding", "").strip().lower()
        lengths = set(headers.getall("Content-Length", ()))
        if self._bodiless or self.status in (101, 204, 304):
            return AnswerReader._read_length  # which is 0
        if coding:
            if coding != "chunked":
                raise NotHttp("it is coded in a way that was not asked for")
            return AnswerReader._read_pieces
        if not lengths:
            self.keeps = False
            return AnswerReader._read_all
        length = lengths.pop()
        if lengths or not _LENGTH.fullmatch(length):
            raise NotHttp("its length is not a number")
        self._left = int(length)
        return AnswerReader._read_length

    def _read_all(self, data: bytes) -> bytes:
        return data

    def _read_length(self, data: bytes) -> bytes:
        body = data[: self._left]
        self._left -= len(body)
        if not self._left:
            self._finish(len(data) - len(body))
        return body

    def _read_pieces(self, data: bytes) -> bytes:
        """Each piece says how long it is, and ends with a line break; the last one has no length."""
        pieces: list[bytes] = []
        at = 0
        while at < len(data):
            if self._left > 0:
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left = self._left - len(piece) or _BREAK_COMES
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._wait_for_more(data[at:])
                break
            line = data[at:end].rstrip(b"\r")
            at = end + 1
            if self._left == _SIZE_COMES:
                self._left = _size(line) or _TRAILER_COMES
            elif self._left == _BREAK_COMES:
                if line:
                    raise NotHttp("a piece is longer than it says")
                self._left = _SIZE_COMES
            elif not line:
                self._finish(len(data) - at)
                break
        return b"".join(pieces)

    def _finish(self, more: int) -> None:
        self.done = True
        self._feed = AnswerReader._read_too_much
        self.keeps = self.keeps and not more

    def _read_too_much(self, data: bytes) -> bytes:
        self.keeps = False  # whoever says more than was asked for is not understood
        return b""

    def _wait_for_more(self, data: bytes) -> bytes:
        if len(data) > _MOST_WAITING:
            raise NotHttp("its head does not end")
        self._rest = data
        return b""


_Feed = Callable[[AnswerReader, bytes], bytes]


def _field(line: bytes) -> tuple[str, str]:
    field = _FIELD.fullmatch(line)
    if field is None:
        raise NotHttp("a header is none")
    name, value = field[1].decode(), field[2].strip(b" \t")
    if not value.isascii() and name.lower() == "location":
        return name, _address(value)
    return name, value.decode(errors="replace")


def _address(value: bytes) -> str:
    """One that is not UTF-8 keeps its bytes, as escapes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return quote_from_bytes(value, safe=_IN_ADDRESSES)


def _size(line: bytes) -> int:
    size = _SIZE.fullmatch(line)
    if size is None:
        raise NotHttp("a piece does not say how long it is")
    return int(size[1], 16)
