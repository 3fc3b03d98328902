"""One prepared statement on a connection of its own, asked over and over: the way of all that is written often.

asyncpg makes the connection and is then out of the way. Its own way to ask is a chain of coroutines, with a timer and
rounds of the event loop of their own for each question; here a question is one write to the socket, and whoever
asked is told from where the answer is read. What is said on it:
https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from struct import Struct
from typing import Any, Generic, NamedTuple, TypeVar

import asyncpg

from .keepalive import transport_of
from .server import ANSWER_SECONDS, Connection

Question = TypeVar("Question")
Row = TypeVar("Row")
Heard = Callable[[list[Row] | Exception], None]

REST_SECONDS = 300.0  # after which a connection is not trusted: what stands between may have forgotten it

_ROOM = 65536  # read into over and over; asyncio would else map a quarter of a megabyte for every answer

_INT = Struct("!i")
_MESSAGE = Struct("!ci")  # what it is, and how long it is without that
_HEAD = _MESSAGE.size
_ARRAY = Struct("!5i")
_NULL = _INT.pack(-1)
_BINARY = b"\0\1\0\1"
_EXECUTE_AND_SYNC = b"E\0\0\0\x09\0\0\0\0\0" + b"S\0\0\0\4"
_TEXT_OID = 25


class Statement(NamedTuple, Generic[Question, Row]):
    """What is asked. Its first values are the `same` each time, `packed` as the server reads them."""

    name: str
    sql: str
    values: int  # how many it takes
    same: Sequence[object]
    packed: Sequence[bytes]
    pack: Callable[[Question], Sequence[bytes | None]]
    plain: Callable[[Question], Sequence[object]]  # the same for asyncpg
    read: Callable[[bytes, int], Row]  # of the message that begins at a place in the bytes
    row: Callable[..., Row]  # of its columns


class Wire(asyncio.BufferedProtocol, Generic[Question, Row]):
    """One question at a time. Closes itself when none was asked for REST_SECONDS."""

    def __init__(self, connection: Connection, statement: Statement[Question, Row]) -> None:
        """Raises AttributeError when asyncpg is not what it was; the connection is then as before."""
        name, count = statement.name.encode(), statement.values.to_bytes(2)
        self._connection = connection
        self._begin = b"".join((b"\0", name, b"\0", _BINARY, count, *map(_sized, statement.packed)))
        self._pack = statement.pack
        self._read = statement.read
        self._loop = asyncio.get_running_loop()
        self._room = memoryview(bytearray(_ROOM))  # a view, for TLS reads into slices of it
        self._rest = b""  # of a message that has not come whole
        self._rows: list[Row] = []
        self._error: asyncpg.PostgresError | None = None
        self._heard: Heard[Row] | None = None
        transport = transport_of(connection)
        self._write = transport.write
        self._is_closing = transport.is_closing
        self._lost = transport.get_protocol().connection_lost
        self._new_error = asyncpg.PostgresError.new
        transport.set_protocol(self)
        self._asked = self._loop.time()
        self._watch = self._loop.call_later(ANSWER_SECONDS, self._look_at_the_clock)

    def ask(self, question: Question, heard: Heard[Row]) -> None:
        """Then `heard` is called once: with the rows, or with what went wrong."""
        bind = b"".join((self._begin, *map(_sized, self._pack(question)), _BINARY))
        self._heard, self._asked = heard, self._loop.time()
        self._write(_MESSAGE.pack(b"B", len(bind) + 4) + bind + _EXECUTE_AND_SYNC)

    def is_closed(self) -> bool:
        return bool(self._is_closing())

    def close(self) -> None:
        self._watch.cancel()
        self._connection.terminate()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        data = self._rest + self._room[:nbytes]
        at, length = 0, len(data)
        while at + _HEAD <= length:
            kind, size = _MESSAGE.unpack_from(data, at)
            end = at + 1 + size
            if end > length:
                break
            if kind == b"D":
                self._rows.append(self._read(data, at))
            elif kind == b"E":
                self._error = self._error_of(data[at + _HEAD : end])
            elif kind == b"Z":  # all of the answer has been said
                self._tell(self._error or self._rows)
            at = end
        self._rest = data[at:]

    def connection_lost(self, exc: Exception | None) -> None:
        why = f": {self._error}" if self._error else ""
        lost = asyncpg.ConnectionDoesNotExistError(f"connection was closed in the middle of operation{why}")
        lost.__cause__ = exc
        self._watch.cancel()
        self._lost(exc)
        self._tell(lost)

    def _tell(self, answer: list[Row] | Exception) -> None:
        heard, self._heard, self._rows, self._error = self._heard, None, [], None
        if heard is not None:
            heard(answer)

    def _error_of(self, body: bytes) -> Any:
        fields = (field.decode(errors="replace") for field in body.split(b"\0") if field)
        return self._new_error({field[0]: field[1:] for field in fields})

    def _look_at_the_clock(self) -> None:
        """One timer for many questions: it looks how long the one that is open, or the rest, has lasted."""
        self._watch.cancel()
        limit = REST_SECONDS if self._heard is None else ANSWER_SECONDS
        left = self._asked + limit - self._loop.time()
        if left > 0:
            self._watch = self._loop.call_later(min(left, ANSWER_SECONDS), self._look_at_the_clock)
            return
        self.close()  # what the server was doing is not known, so this one is not used again
        self._tell(TimeoutError())


def texts(values: Collection[str]) -> bytes | None:
    """An array of texts, as a value; null if there are none."""
    if not values:
        return None
    parts = [_ARRAY.pack(1, 0, _TEXT_OID, len(values), 1)]  # dimensions, nulls, type; length and first index
    for value in values:
        encoded = value.encode()
        parts += (_INT.pack(len(encoded)), encoded)
    return b"".join(parts)


def text_at(data: bytes, at: int) -> tuple[str | None, int]:
    """The text whose length stands there, and where the next column begins."""
    (length,) = _INT.unpack_from(data, at)
    begin = at + _INT.size
    return (None, begin) if length < 0 else (data[begin : begin + length].decode(), begin + length)


def _sized(value: bytes | None) -> bytes:
    return _NULL if value is None else _INT.pack(len(value)) + value
