"""A connection to a host, which carries one request and its answer at a time."""

import asyncio
import re
import select
import ssl
import sys
from math import inf
from typing import cast

from .answer_reader import AnswerReader, NotHttp
from .failures import TookTooLong

_MOST_WAITING = 2**18  # bytes of a body that nobody has taken yet: more of it has to wait at the host
_LARGE = 2**16  # bytes of a request of which a host may not have read all when it answers
_SLOWEST = 2**16  # bytes of a request in a second: so much longer its answer may take
_FAREWELL_SECONDS = 0.2
_MOST_REST = 60.0  # seconds, whatever a host promises: others in between forget a connection
_ON_ITS_WAY = 1.0  # seconds before a host closes a connection, in which a request could meet its farewell
_PROMISE = re.compile(r"timeout\s*=\s*(\d{1,9})", re.IGNORECASE)


class HttpConnection(asyncio.Protocol):
    """After `send`, `head` gives the answer as soon as its head has come, and `read` its body, piece by piece.

    Both raise NotHttp when the host says what is no answer, and EOFError or OSError when it is gone. The whole head has
    to come within `patience`, and so much longer as a large request may take to be sent; then the next bytes of the
    body, whatever else the host says in between. Else they raise TimeoutError. With a `deadline`, a time of the loop's
    clock, both raise TookTooLong when it has passed and the answer has not ended, however much the host has to say.

    One timer looks now and then whether the host is late: to set one whenever something is waited for would cost more
    than to read what comes.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = AnswerReader()
        self._body = b""
        self._waiter: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._lost = self._paused = self._is_large = False
        self._patience = self._until = self._due = 0.0  # how long, until when, and when the timer looks
        self._deadline = inf
        self._timer: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport
        self.rests_until = 0.0

    @property
    def is_usable(self) -> bool:
        """Whether it can carry another request: that would wait behind what the host has not read of the one before."""
        may = self._reader.done and self._reader.keeps and not (self._lost or (self._is_large and self._is_refused))
        return may and not self.transport.get_write_buffer_size()

    @property
    def has_ended(self) -> bool:
        """Whether all of the answer has come, and nothing of it waits."""
        return self._reader.done and not (self._body or self._paused)

    @property
    def is_rested(self) -> bool:
        """Whether one that was let rest can carry another request. The loop may not know yet that it was closed."""
        return self.is_usable and self._loop.time() < self.rests_until and not self._is_readable()

    def rest(self, seconds: float) -> None:
        """So long, or as long as the host has said that it will wait, there may be another request."""
        promise = _PROMISE.search(self._reader.headers.get("Keep-Alive", ""))
        if promise:
            seconds = min(int(promise[1]) - _ON_ITS_WAY, _MOST_REST)
        self.rests_until = self._loop.time() + seconds

    def send(self, request: bytes, patience: float, bodiless: bool = False, deadline: float | None = None) -> None:
        """`bodiless`: the answer to this request has a head alone.

        A request is written as a whole, whatever its size: the loop then reads before it writes more, and so hears a
        host that refuses, and closes, before it has read all.
        """
        self._reader = AnswerReader(bodiless)
        self._is_large = len(request) > _LARGE
        self._patience = patience
        self._until = self._loop.time() + patience + len(request) / _SLOWEST
        self._deadline = inf if deadline is None else deadline
        self._take()  # of the answer before nobody wants to know more
        if not self._lost:
            self.transport.write(request)

    async def head(self) -> AnswerReader:
        while not self._reader.status:
            await self._wait()
        return self._reader

    async def read(self) -> bytes:
        """Some of the body; nothing when it has ended."""
        if not self._reader.done:
            now = self._loop.time()
            if now >= self._deadline:
                raise TookTooLong
            self._until = now + self._patience
        while not self._body:
            if self._reader.done:
                return b""
            await self._wait()
        return self._take()

    async def take_leave(self) -> None:
        """Wait a moment for the end of a body of which we have seen all that we want.

        Only a connection whose answer has ended can be used again, and the end may come a packet later.
        """
        self._until = self._loop.time() + min(self._patience, _FAREWELL_SECONDS)
        self._take()
        while not (self._reader.done or self._body):
            await self._wait()

    async def secure(self, trust: ssl.SSLContext, host: str) -> None:
        """From here on nobody in between understands a word. Raises OSError."""
        try:
            transport = await self._loop.start_tls(self.transport, self, trust, server_hostname=host)
        except TypeError as error:
            # Python 3.11 stumbles when TLS fails within TLS, as behind an https proxy; the reason stands behind it.
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None
        self.transport = cast(asyncio.Transport, transport)

    def hand_over(self, protocol: asyncio.Protocol) -> tuple[bytes, bool]:
        """After a 101 what is said here is another's. Gives what has come since the head, and whether that was all."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self.transport.set_protocol(protocol)
        return self._reader.upgraded or b"", self._lost

    def close(self) -> None:
        self._lost = True
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its name

    def data_received(self, data: bytes) -> None:
        if self._reader.done:  # and nothing was asked since
            if self._reader.upgraded is None:
                self.close()
            else:
                self._reader.upgraded += data
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

    @property
    def _is_refused(self) -> bool:
        """Who refuses a large request may not have read it, and with TLS nobody knows how much of it is on its way."""
        return self._is_large and self._reader.status >= 400

    def _is_readable(self) -> bool:
        """Of what has come since the loop has looked, or of the end."""
        number = self.transport.get_extra_info("socket").fileno()
        if sys.platform == "win32":
            return bool(select.select([number], [], [], 0)[0])
        poll = select.poll()  # select knows no numbers above 1023
        poll.register(number, select.POLLIN)
        return bool(poll.poll(0))

    def _end(self, error: Exception | None) -> None:
        try:
            # Whoever closes a connection without reading all that is sent tears it down, and maybe its own last words.
            self._reader.end(by_force=self._lost or error is not None, in_part=self._is_refused)
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
        due = min(self._until, self._deadline)
        if self._timer is None or self._due > due:
            if due <= self._loop.time():  # the timer looked while nobody waited
                raise self._lateness()
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
        due = min(self._until, self._deadline)
        if due > self._loop.time():
            self._look_at(due)
        else:
            self._waiter.set_exception(self._lateness())

    def _lateness(self) -> TimeoutError:
        return TookTooLong() if self._deadline <= self._until else TimeoutError()
