"""Reads an HTTP/1.1 answer from the bytes of a connection, however the network cuts them.

llhttp understands the bytes, and refuses what is no HTTP. It has no limits of its own, and does not know what was asked
for: that is added here.
"""

from collections.abc import Mapping
from urllib.parse import quote_from_bytes

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from multidict import CIMultiDict

_MOST_IN_A_HEAD = 2**16  # bytes
_MOST_IN_VAIN = 2**18  # bytes in a row that neither end a head nor are part of a body
_MOST_FIELDS = 1000  # of a head, or after a body
_MOST_HINTS = 1000  # heads that say only that the answer is still to come
_LINE_BREAKS = b"\r\n"
_IN_ADDRESSES = bytes(range(0x20, 0x7F))
_NO_HEADERS: Mapping[str, str] = {}


class NotHttp(Exception):
    """These bytes are no answer."""


class AnswerReader:
    """One answer. `feed` gives what there is of its body in the bytes; `status` is 0 until the head has come.

    After `done` the connection can carry another answer if it `keeps`. A body may also end with the connection: `end`.

    The methods that begin with `on_` are called by the parser, which holds its reader as the reader holds it: it is let
    go as soon as the answer, or the connection, has ended.
    """

    __slots__ = (
        "_bodiless",
        "_fields",
        "_hints",
        "_in_vain",
        "_parser",
        "_pieces",
        "_until_the_end",
        "done",
        "headers",
        "keeps",
        "on_body",
        "status",
        "upgraded",
    )

    def __init__(self, bodiless: bool = False) -> None:
        self._bodiless = bodiless
        self._fields: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._hints = self._in_vain = 0
        self._until_the_end = False
        self.status = 0
        self.headers: Mapping[str, str] = _NO_HEADERS
        self.done = self.keeps = False
        self.upgraded: bytes | None = None  # what has come after the head of a 101, in another protocol
        self.on_body = self._pieces.append
        self._parser: HttpResponseParser | None = None

    def feed(self, data: bytes) -> bytes:
        """Raises NotHttp."""
        if self.done:
            self._hear_more(data)
            return b""
        parser = self._parser or self._begin()
        self._in_vain += len(data)
        try:
            if self._bodiless:
                self._feed_head(parser, data)
            else:
                parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self.upgraded = data[upgrade.args[0] :]
        except HttpParserError as error:
            self._stumble(error)
        body = b"".join(self._pieces)
        self._pieces.clear()
        if self.done:
            self._parser = None
        else:
            self._limit(body)
        return body

    def end(self, by_force: bool = False, in_part: bool = False) -> None:
        """The connection has ended: in peace, or by force. Raises EOFError if the answer has not, unless a part of it
        will do."""
        self._parser = None
        if not (self.done or in_part) and (by_force or not self._until_the_end):
            raise EOFError
        self.done = True

    def on_message_begin(self) -> None:
        if self.done:
            raise NotHttp("it says more than was asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        fields, self._fields = self._fields, []
        # It is measured only where it can be too long.
        if len(fields) > _MOST_FIELDS or (self._in_vain > _MOST_IN_A_HEAD and _size(fields) > _MOST_IN_A_HEAD):
            raise NotHttp("its head does not end")
        if 100 <= status < 200 and status != 101:
            self._hints += 1
            if self._hints > _MOST_HINTS:
                raise NotHttp("its answer never comes")
        else:
            self._understand(self._parser, status, CIMultiDict(_texts(fields)))

    def on_message_complete(self) -> None:
        if self.status:
            self.done = True
        elif self._pieces:
            raise NotHttp("only the answer has a body")

    def _begin(self) -> HttpResponseParser:
        self._parser = HttpResponseParser(self)
        # Some hosts end lines with LF alone, and some fill up the size of a piece with spaces.
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True)
        return self._parser

    def _understand(self, parser: HttpResponseParser, status: int, headers: "CIMultiDict[str]") -> None:
        version, coding = parser.get_http_version(), ",".join(headers.getall("Transfer-Encoding", ()))
        if version not in ("1.1", "1.0") or status < 100:
            raise NotHttp("this is not the head of an answer")
        if coding and coding.lower() != "chunked":
            raise NotHttp("it is coded in a way that was not asked for")
        self.status, self.headers = status, headers
        # Whoever changes to another protocol (101) is not asked anything in this one, and who does not know the coding
        # (1.0) has hardly meant it.
        self.keeps = parser.should_keep_alive() and status != 101 and not (coding and version == "1.0")
        self._until_the_end = not coding and "Content-Length" not in headers
        self.done = self._bodiless

    def _feed_head(self, parser: HttpResponseParser, data: bytes) -> None:
        """Line by line, for llhttp expects a body after the head."""
        start = 0
        while start < len(data) and not self.done:
            end = data.find(b"\n", start) + 1 or len(data)
            parser.feed_data(data[start:end])
            start = end
        self._hear_more(data[start:])

    def _hear_more(self, data: bytes) -> None:
        """Whoever says more than was asked for is not understood. Line breaks say nothing."""
        if data.strip(_LINE_BREAKS):
            self.keeps = False

    def _stumble(self, error: HttpParserError) -> None:
        reason = error.__context__ or error
        if not isinstance(reason, NotHttp | HttpParserError):
            raise reason
        if not self.done:
            raise NotHttp(str(reason)) from error
        self.keeps = False

    def _limit(self, body: bytes) -> None:
        if body and not self.status:
            raise NotHttp("only the answer has a body")
        if body:
            self._in_vain = 0
        if self._in_vain > _MOST_IN_VAIN or len(self._fields) > _MOST_FIELDS:
            raise NotHttp("its head does not end")


def _size(fields: list[tuple[bytes, bytes]]) -> int:
    return sum(len(name) + len(value) for name, value in fields)


def _texts(fields: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    found = []
    for name, value in fields:
        value = value.strip(b" \t")
        is_address = not value.isascii() and name.lower() == b"location"
        found.append((name.decode(), _address(value) if is_address else value.decode(errors="replace")))
    return found


def _address(value: bytes) -> str:
    """One that is not UTF-8 keeps its bytes, as escapes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return quote_from_bytes(value, safe=_IN_ADDRESSES)
