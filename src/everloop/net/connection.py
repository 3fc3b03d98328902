"""A connection to a host, which carries one request and its answer at a time."""

import asyncio
import ssl
from math import inf
from typing import cast

from .answer_reader import AnswerReader, NotHttp
from .failures import TookTooLong

_MOST_WAITING = 2**18  # bytes of a body that nobody has taken yet: more of it has to wait at the host
_MOST_AT_ONCE = 2**16  # bytes of a request
_FAREWELL_SECONDS = 0.2


class Connection(asyncio.Protocol):
    """After `send`, `head` gives the answer as soon as its head has come, and `read` its body, piece by piece.

    Both raise TimeoutError when the host is silent for longer than `patience`, NotHttp when it says what is no answer,
    and EOFError or OSError when it is gone. One timer looks now and then whether it is silent: to set one whenever
    something is waited for would cost more than to read what comes. With a `deadline`, a time of the loop's clock,
    both raise TookTooLong when it has passed and the answer has not ended, however much the host has to say.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = AnswerReader()
        self._body = b""
        self._waiter: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._lost = self._paused = False
        self._unsent = memoryview(b"")  # what is left of a large request
        self._is_full = False  # on the way to the host there is no room for more now
        self._patience = self._since = self._due = 0.0  # how long, since when, and when the timer looks
        self._deadline = inf
        self._timer: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport
        self.idle_since = 0.0

    @property
    def is_usable(self) -> bool:
        """Whether it can carry another request."""
        may = self._reader.done and self._reader.keeps and not self._lost
        return may and not self._is_full  # or the next would wait behind what nobody reads

    def send(self, request: bytes, patience: float, bodiless: bool = False, deadline: float | None = None) -> None:
        """`bodiless`: the answer to this request has a head alone."""
        self._reader = AnswerReader(bodiless)
        self._patience = patience
        self._deadline = inf if deadline is None else deadline
        self._take()  # of the answer before nobody wants to know more
        if len(request) > _MOST_AT_ONCE:
            self._unsent = memoryview(request)
            self._write_on()
        elif not self._lost:
            self.transport.write(request)

    async def head(self) -> AnswerReader:
        while not self._reader.status:
            await self._wait()
        return self._reader

    async def read(self) -> bytes:
        """Some of the body; nothing when it has ended."""
        if not self._reader.done and self._loop.time() >= self._deadline:
            raise TookTooLong
        while not self._body:
            if self._reader.done:
                return b""
            await self._wait()
        return self._take()

    async def take_leave(self) -> None:
        """Wait a moment for the end of a body of which we have seen all that we want.

        Only a connection whose answer has ended can be used again, and the end may come a packet later.
        """
        if not self._reader.done:
            self._patience = min(self._patience, _FAREWELL_SECONDS)
            self._take()
            await self._wait()

    async def secure(self, trust: ssl.SSLContext, host: str) -> None:
        """From here on nobody in between understands a word. Raises OSError."""
        try:
            transport = await self._loop.start_tls(self.transport, self, trust, server_hostname=host)
        except TypeError as error:
            # Python 3.11 stumbles when TLS fails within TLS, as behind an https proxy; the reason stands behind it.
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None
        self.transport = cast(asyncio.Transport, transport)

    def close(self) -> None:
        self._lost = True
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its name

    def data_received(self, data: bytes) -> None:
        if self._reader.done:  # and nothing was asked since
            self.close()
            return
        try:
            self._body += self._reader.feed(data)
        except NotHttp as error:
            self._failure = error
            self.close()
        if len(self._body) > _MOST_WAITING and not (self._paused or self._lost or self._reader.done):
            self._paused = True
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._end(None)

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer:
            self._timer.cancel()
        self._end(error)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._since = self._loop.time()  # a host that takes what it is sent is not silent
        self._write_on()

    def _write_on(self) -> None:
        """Piece by piece, or with TLS nobody would learn how much of it the host has taken."""
        while self._unsent and not (self._is_full or self._lost):
            piece, self._unsent = self._unsent[:_MOST_AT_ONCE], self._unsent[_MOST_AT_ONCE:]
            self.transport.write(piece)

    def _end(self, error: Exception | None) -> None:
        try:
            self._reader.end(by_force=self._lost or error is not None)
        except EOFError as end:
            self._failure = self._failure or error or end
        self._lost = True
        self._wake()

    def _take(self) -> bytes:
        body, self._body = self._body, b""
        if self._paused and not self._lost:
            self._paused = False
            self.transport.resume_reading()
        return body

    async def _wait(self) -> None:
        if self._failure:
            raise self._failure
        self._since = self._loop.time()
        due = min(self._since + self._patience, self._deadline)
        if self._timer is None or self._due > due:
            self._look_at(due)
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if self._failure and not self._body:
            raise self._failure

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def _look_at(self, due: float) -> None:
        if self._timer:
            self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_at(due, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        due, now = min(self._since + self._patience, self._deadline), self._loop.time()
        if due > now:
            self._look_at(due)
        else:
            self._waiter.set_exception(TimeoutError() if now < self._deadline else TookTooLong())
