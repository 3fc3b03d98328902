"""An open WebSocket: the protocol on a connection, with limits on what waits and on how long the host may be silent."""

import asyncio
from collections.abc import Callable

from websockets.exceptions import PayloadTooBig, ProtocolError
from websockets.protocol import State

from ..errors import SocketClosed
from ..ports import SocketTerms
from .connection import HttpConnection
from .socket_liveness import Liveness
from .socket_protocol import Message, SocketProtocol

_MOST_WAITING = 2**18  # bytes of messages that nobody has taken yet: more of them have to wait at the host
_SLICE = 2**14  # bytes that are understood at a time, of which every two may be a frame
_PACKED_SLICE = 2**10  # the same where they are packed, and may become a thousand times as many
_FRAMES_AT_ONCE = 500  # after which others have their turn
_FAREWELL_SECONDS = 5.0  # that the host has to answer ours
_GOING_SECONDS = 1.0  # that it has to go after its own, or after what ended it
_IN_PEACE = (1000, 1001, 1005)


class WebSocketConnection(asyncio.Protocol):
    """The WebSocket port. `host` is its name in errors; `clean` makes a line without secrets of what it says there."""

    def __init__(self, protocol: SocketProtocol, host: str, terms: SocketTerms, clean: Callable[[str], str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._protocol = protocol
        self._host = host
        self._clean = clean
        self._max_bytes = terms.max_bytes
        self._slice = _PACKED_SLICE if protocol.extensions else _SLICE
        self._unread = memoryview(b"")
        self._next_slice: asyncio.Handle | None = None
        self._pong = b""  # that waits until there is room
        self._has_ended = self._is_held = False  # what the host says; the reading of it
        self._why = self._sentence = ""  # it is over
        self._reader: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._gone = self._loop.create_future()
        self._end_timer: asyncio.TimerHandle | None = None
        self._liveness = Liveness(self._loop, terms, self._ping, self._find_dead)
        self._transport: asyncio.Transport

    def start(self, connection: HttpConnection) -> None:
        """Take over the connection on which the host has agreed."""
        self._transport = connection.transport
        heard, is_over = connection.hand_over(self)
        self._liveness.start(self._transport)
        self.data_received(heard)
        if is_over:
            self.connection_lost(None)

    @property
    def subprotocol(self) -> str:
        return self._protocol.subprotocol or ""

    @property
    def code(self) -> int:
        if self._protocol.close_rcvd:
            return int(self._protocol.close_rcvd.code)
        return 1006 if self._why else 0

    @property
    def reason(self) -> str:
        return self._clean(self._protocol.close_rcvd.reason) if self._protocol.close_rcvd else ""

    def __aiter__(self) -> "WebSocketConnection":
        return self

    async def __anext__(self) -> Message:
        if self._protocol.messages or await self._wait():
            return self._take()
        if self._why == "left" or (self._why == "closed" and self.code in _IN_PEACE):
            raise StopAsyncIteration
        raise self._closed()

    async def receive(self) -> Message:
        if self._protocol.messages or await self._wait():
            return self._take()
        raise self._closed()

    async def send(self, message: Message) -> None:
        while not self._room.is_set() and not self._why:
            await self._room.wait()
        if self._why:
            raise self._closed()
        if isinstance(message, str):
            self._protocol.send_text(message.encode())
        else:
            self._protocol.send_binary(message)
        self._write()

    async def close(self, code: int = 1000, reason: str = "") -> None:
        self._leave(code, reason, _FAREWELL_SECONDS)
        await self._until_gone()

    async def leave(self, code: int, in_haste: bool) -> None:
        """The block is left, in haste when by an error or because its task was cancelled."""
        self._leave(code, "", _GOING_SECONDS if in_haste else _FAREWELL_SECONDS)
        await self._until_gone()

    def data_received(self, data: bytes) -> None:
        self._liveness.hear()
        if self._unread:
            self._unread = memoryview(bytes(self._unread) + data)  # it was held, and something came all the same
        elif len(data) <= self._slice:
            self._feed(data)
            if self._protocol.weight >= _MOST_WAITING:
                self._hold(True)
        else:
            self._unread = memoryview(data)
            self._understand()

    def eof_received(self) -> None:
        self._end()
        self._go_within(_GOING_SECONDS)

    def connection_lost(self, error: Exception | None) -> None:
        self._liveness.stop()
        if self._end_timer:
            self._end_timer.cancel()
        self._end()
        self._room.set()
        if not self._gone.done():
            self._gone.set_result(None)

    def pause_writing(self) -> None:
        self._room.clear()
        self._liveness.block()

    def resume_writing(self) -> None:
        self._room.set()
        self._liveness.unblock()
        if self._pong and not self._transport.is_closing():
            self._transport.write(self._pong)
        self._pong = b""

    def _understand(self) -> None:
        """As much as may wait, and not all at once: a little can be work for long."""
        if self._next_slice:
            self._next_slice.cancel()
        self._next_slice, until = None, self._protocol.frames + _FRAMES_AT_ONCE
        while self._unread and self._protocol.weight < _MOST_WAITING:
            if self._protocol.frames >= until:
                self._next_slice = self._loop.call_soon(self._understand)
                break
            piece, self._unread = self._unread[: self._slice], self._unread[self._slice :]
            self._feed(bytes(piece))
        if self._has_ended and not self._unread:
            self._protocol.receive_eof()
            self._judge()
        self._hold(bool(self._unread) or self._protocol.weight >= _MOST_WAITING)
        if self._why:
            self._wake()

    def _feed(self, piece: bytes) -> None:
        frames = self._protocol.frames
        self._protocol.receive_data(piece)
        if self._protocol.frames != frames:
            self._liveness.meet()
        if self._protocol.writes:
            self._answer()
        if self._protocol.state is not State.OPEN or self._why:
            self._judge()
        if self._protocol.messages:
            self._wake()

    def _answer(self) -> None:
        """A pong for the last ping will do (RFC 6455, 5.5.3): a host that asks much and hears nothing would fill our
        memory."""
        if self._room.is_set() or self._protocol.state is not State.OPEN:
            self._write()
        else:
            self._pong = self._protocol.data_to_send()[-1]

    def _judge(self) -> None:
        """Whether it is over, and why."""
        stumbled, farewell = self._protocol.parser_exc, self._protocol.close_rcvd
        if self._why == "left":
            self._protocol.forget()
        elif stumbled is not None and not isinstance(stumbled, EOFError):
            self._finish("broken", f"{self._host} {self._explain(stumbled)}, so the WebSocket was closed.")
        elif farewell is not None:
            said = f"{self.code}: {self.reason}" if self.reason else f"{self.code}"
            self._finish("closed", f"{self._host} has closed the WebSocket ({said}).")
        elif stumbled is not None:
            self._finish("cut", f"{self._host} broke off the WebSocket without a farewell.")
        if farewell is not None or stumbled is not None:
            self._go_within(_GOING_SECONDS)

    def _explain(self, stumbled: Exception) -> str:
        match stumbled:
            case UnicodeDecodeError():
                return "sends text that is not UTF-8"
            case PayloadTooBig() if "fragments" in str(stumbled):
                return f"sends a message of {stumbled}"
            case PayloadTooBig():
                return f"sends a message of more than {self._max_bytes:,} bytes"
            case ProtocolError():
                return f"does not keep to the protocol of WebSockets ({stumbled})"
            case _:
                return f"sends what cannot be understood ({type(stumbled).__name__})"

    def _leave(self, code: int, reason: str, seconds: float) -> None:
        if self._protocol.state is State.OPEN and not self._why:
            try:
                self._protocol.send_close(code, reason)
            except ProtocolError as error:
                raise ValueError(f"A WebSocket cannot be closed with {code} and this reason: {error}.") from error
            self._write()
        self._finish("left", f"The WebSocket to {self._host} was closed here.")
        self._protocol.forget()
        self._go_within(seconds)
        self._understand()

    async def _until_gone(self) -> None:
        try:
            await asyncio.shield(self._gone)
        finally:
            self._transport.abort()

    def _finish(self, why: str, sentence: str) -> None:
        if not self._why:
            self._why, self._sentence = why, sentence
            self._liveness.stop()
            self._room.set()
            self._wake()

    def _closed(self) -> SocketClosed:
        return SocketClosed(self._sentence, self._why, self.code, self.reason)

    def _find_dead(self, sentence: str) -> None:
        self._finish("silent", f"{self._host} {sentence}")
        self._unread = memoryview(b"")
        self._transport.abort()

    def _ping(self) -> None:
        self._protocol.send_ping(b"")
        self._write()

    def _write(self) -> None:
        data = b"".join(self._protocol.data_to_send())
        if data and not self._transport.is_closing():
            self._transport.write(data)

    def _end(self) -> None:
        self._has_ended = True
        if self._next_slice is None:
            self._understand()

    def _go_within(self, seconds: float) -> None:
        """A host that does not end the connection is not waited for."""
        due = self._loop.time() + seconds
        if self._gone.done() or (self._end_timer and self._end_timer.when() <= due):
            return
        if self._end_timer:
            self._end_timer.cancel()
        self._end_timer = self._loop.call_at(due, self._transport.abort)

    def _hold(self, is_held: bool) -> None:
        """Whether what comes next has to wait at the host."""
        if is_held != self._is_held and not self._transport.is_closing():
            self._is_held = is_held
            self._liveness.hold(is_held)
            if is_held:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _take(self) -> Message:
        message = self._protocol.take()
        if (self._is_held or self._unread) and self._next_slice is None and self._protocol.weight < _MOST_WAITING // 2:
            self._understand()
        return message

    async def _wait(self) -> bool:
        """Whether there is a message; there is none when it is over."""
        if self._reader is not None:
            raise RuntimeError("two tasks read from one WebSocket")
        while not self._protocol.messages and not (self._why and not self._unread):
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return bool(self._protocol.messages)

    def _wake(self) -> None:
        if self._reader and not self._reader.done():
            self._reader.set_result(None)
