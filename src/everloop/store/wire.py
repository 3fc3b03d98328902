"""One prepared statement on a connection of its own, asked over and over: the way of all that is written often.

asyncpg makes the connection and is then out of the way. Its own way to ask is a chain of coroutines, with a timer and
rounds of the event loop of their own for each question; here a question is one write to the socket, and whoever
asked is told from where the answer is read. What is said on it:
https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from struct import Struct
from typing import Any, Generic, TypeVar

import asyncpg

from .server import ANSWER_SECONDS, Connection

Row = TypeVar("Row")
Read = Callable[[bytes, int], Row]
Heard = Callable[[list[Row] | Exception], None]

_ROOM = 65536  # read into over and over; asyncio would else map a quarter of a megabyte for every answer

_INT = Struct("!i")
_MESSAGE = Struct("!ci")  # what it is, and how long it is without that
_HEAD = _MESSAGE.size
_ARRAY = Struct("!5i")
_NULL = _INT.pack(-1)
_BINARY = b"\0\1\0\1"
_EXECUTE_AND_SYNC = b"E\0\0\0\x09\0\0\0\0\0" + b"S\0\0\0\4"
_TEXT_OID = 25


class Wire(asyncio.BufferedProtocol, Generic[Row]):
    """One question at a time, each with `count` values, which begin with the `same`.

    `read` makes a row of the message that begins at a place in the bytes.
    """

    def __init__(
        self, connection: Connection, statement: str, count: int, same: Sequence[bytes], read: Read[Row]
    ) -> None:
        self._connection = connection
        self._begin = b"".join((b"\0", statement.encode(), b"\0", _BINARY, count.to_bytes(2), *map(_sized, same)))
        self._read = read
        self._loop = asyncio.get_running_loop()
        self._room = memoryview(bytearray(_ROOM))  # a view, for TLS reads into slices of it
        self._rest = b""  # of a message that has not come whole
        self._rows: list[Row] = []
        self._error: asyncpg.PostgresError | None = None
        self._heard: Heard[Row] | None = None
        self._asked = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self._transport = connection._transport  # asyncpg has no other name for it
        self._before = self._transport.get_protocol()
        self._transport.set_protocol(self)

    def ask(self, values: Sequence[bytes | None], heard: Heard[Row]) -> None:
        """Then `heard` is called once: with the rows, or with what went wrong."""
        bind = b"".join((self._begin, *map(_sized, values), _BINARY))
        self._heard, self._asked = heard, self._loop.time()
        if self._watch is None:
            self._watch = self._loop.call_later(ANSWER_SECONDS, self._look_at_the_clock)
        self._transport.write(_MESSAGE.pack(b"B", len(bind) + 4) + bind + _EXECUTE_AND_SYNC)

    def is_closed(self) -> bool:
        return bool(self._transport.is_closing())

    def close(self) -> None:
        if self._watch is not None:
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
                self._error = _error_of(data[at + _HEAD : end])
            elif kind == b"Z":  # all of the answer has been said
                self._tell(self._error or self._rows)
            at = end
        self._rest = data[at:]

    def connection_lost(self, exc: Exception | None) -> None:
        why = f": {self._error}" if self._error else ""
        lost = asyncpg.ConnectionDoesNotExistError(f"connection was closed in the middle of operation{why}")
        lost.__cause__ = exc
        self._before.connection_lost(exc)
        self._tell(lost)

    def _tell(self, answer: list[Row] | Exception) -> None:
        heard, self._heard, self._rows, self._error = self._heard, None, [], None
        if heard is not None:
            heard(answer)

    def _look_at_the_clock(self) -> None:
        """One timer for many questions: it looks how long the one that is open has been waiting."""
        self._watch = None
        if self._heard is None:
            return
        left = self._asked + ANSWER_SECONDS - self._loop.time()
        if left > 0:
            self._watch = self._loop.call_later(left, self._look_at_the_clock)
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


def _error_of(body: bytes) -> Any:
    fields = (field.decode(errors="replace") for field in body.split(b"\0") if field)
    return asyncpg.PostgresError.new({field[0]: field[1:] for field in fields})
