"""What waits to be sent to one WebSocket, in order and bounded (backpressure).

What waits together goes out together: frames of a turn come in bursts, and a write for each would be a system call for
each. A client that reads too slowly first gets several pieces of an answer as one, and is cut off when even that is too
much: it can come back and resume, and nothing is lost, because the log has it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from struct import pack
from typing import Any, cast

import msgspec
from aiohttp import web

from ..metrics import FRAMES_OUT, Metrics

PATIENCE = 2.0  # seconds that a client has to take note of its end
LIMIT = 4_000_000  # bytes that may wait
LARGE = LIMIT // 4  # as which a frame counts at most: an answer that is larger has to get through, as piece and whole
ROOM = 500_000  # below which more history is read for it
UNKNOWN = 500  # as which one counts that has to be looked up
FRAMES = 5000
JOIN = 8  # frames that wait, from which on pieces are joined
TOGETHER = 64_000  # bytes, from which on no further frame goes out with the same write

Frame = dict[str, Any]
Later = Callable[[], Awaitable[Frame]]  # a frame that has to be looked up when its turn has come

_encode = msgspec.json.Encoder(enc_hook=str).encode


class _Pieces:
    """A piece of an answer in its place, and further ones of the same answer, for a client that reads slowly."""

    __slots__ = ("_more", "_piece", "size")

    def __init__(self, piece: Frame) -> None:
        self._piece = piece
        self._more: list[Frame] = []
        self.size = min(200 + _length(piece), LARGE)

    def takes(self, piece: Frame) -> bool:
        return bool(self._piece["msg"] == piece["msg"])

    def add(self, piece: Frame) -> int:
        """Returns by how much it has grown."""
        grown = _length(piece)
        self.size += grown
        self._more.append(piece)
        return grown

    def written(self) -> bytes:
        pieces = [self._piece, *self._more]
        joined = {name: "".join(piece[name] for piece in pieces) for name in ("delta", "reasoning")}
        return _written({**pieces[-1], **joined})


class SendQueue:
    """`put` never waits; `run` sends until it is cancelled, to a `send` that takes all that go out with one
    write. `write` does the same without waiting, and says False where that cannot be: mostly it can, and nobody has to
    be woken. `overflow` is called once, when it became too much."""

    def __init__(
        self,
        send: Callable[[Sequence[bytes]], Awaitable[None]],
        overflow: Callable[[], None],
        write: Callable[[Sequence[bytes]], bool] = lambda frames: False,
    ) -> None:
        self._send = send
        self._write = write
        self._overflow = overflow
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes | _Pieces | Later] = deque()
        self._bytes = 0
        self._unwritten = 0  # of those that wait: how many are no text yet
        self._over = False
        self._idle: asyncio.Future[None] | None = None  # while `run` has nothing to send
        self._is_due = False  # in the next round of the event loop what waits goes out
        self._room = asyncio.Event()

    def put(self, *items: Frame | Later) -> None:
        for item in items:
            if self._over:
                return
            if not isinstance(item, dict):
                self._put_unwritten(item, UNKNOWN)
            elif len(self._waiting) >= JOIN and item["type"] == "stream_chunk":
                self._join(item)
            else:
                text = _written(item)
                self._waiting.append(text)
                self._bytes += min(len(text), LARGE)
            if self._bytes > LIMIT or len(self._waiting) > FRAMES:
                self.drop()
                self._overflow()
        if self._idle is not None and not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._go_out)

    def _go_out(self) -> None:
        self._is_due = False
        if not self._waiting:
            return  # it was dropped meanwhile
        is_small = not self._unwritten and self._bytes < TOGETHER
        if is_small and self._write(cast(deque[bytes], self._waiting)):
            self._waiting.clear()
            self._bytes = 0
        elif self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def _join(self, piece: Frame) -> None:
        last = self._waiting[-1]
        if isinstance(last, _Pieces) and last.takes(piece):
            self._bytes += last.add(piece)
        else:
            pieces = _Pieces(piece)
            self._put_unwritten(pieces, pieces.size)

    def _put_unwritten(self, item: _Pieces | Later, size: int) -> None:
        self._waiting.append(item)
        self._bytes += size
        self._unwritten += 1

    def drop(self) -> None:
        """Forget what waits, and whatever else is put."""
        self._over = True
        self._waiting.clear()
        self._bytes = self._unwritten = 0
        self._room.set()

    @property
    def is_full(self) -> bool:
        return self._bytes > ROOM

    async def room(self) -> None:
        """Wait until little is waiting."""
        while self.is_full:
            self._room.clear()
            await self._room.wait()

    async def run(self) -> None:
        while True:
            while self._waiting:
                await self._send(self._ready() or [await self._looked_up()])
                self._room.set()
            self._idle = self._loop.create_future()
            await self._idle
            self._idle = None

    def _ready(self) -> list[bytes]:
        """The texts that go out together: none of them waits for one that has to be looked up."""
        texts: list[bytes] = []
        size = 0
        while self._waiting and size < TOGETHER:
            item = self._waiting[0]
            if isinstance(item, bytes):
                text, counted = item, min(len(item), LARGE)
            elif isinstance(item, _Pieces):
                text, counted = item.written(), item.size
                self._unwritten -= 1
            else:
                break
            del self._waiting[0]
            self._bytes -= counted
            texts.append(text)
            size += len(text)
        return texts

    async def _looked_up(self) -> bytes:
        later = self._waiting.popleft()
        self._bytes -= UNKNOWN
        self._unwritten -= 1
        assert not isinstance(later, bytes | _Pieces)
        return _written(await later())


class ClientSocket:
    """The WebSocket of one client: several frames go out with one write, where aiohttp has one for each. What aiohttp
    itself sends, pings and the close, stands between ours."""

    def __init__(self, request: web.Request, wire: web.WebSocketResponse, metrics: Metrics) -> None:
        self._request = request
        self._metrics = metrics
        self.wire = wire

    def write(self, frames: Sequence[bytes]) -> bool:
        """Whether they are on their way: not so when something else still is, or the client has gone."""
        transport = self._request.transport
        if transport is None or transport.is_closing() or self.wire.closed or transport.get_write_buffer_size():
            return False
        self._metrics.count_frames(len(frames), FRAMES_OUT)
        transport.write(b"".join(frames))
        return True

    async def send(self, frames: Sequence[bytes]) -> None:
        """As soon as there is room. Raises ConnectionError when the client has gone."""
        transport = self._request.transport
        if transport is None or transport.is_closing() or self.wire.closed:
            raise ConnectionResetError("the client has gone")
        self._metrics.count_frames(len(frames), FRAMES_OUT)
        transport.write(b"".join(frames))
        await self._request.writer.drain()

    async def close(self, code: int, why: str, seconds: float = PATIENCE) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.wire.close(code=code, message=why.encode())
        except TimeoutError:
            if self._request.transport is not None:
                self._request.transport.abort()


def _written(frame: Frame) -> bytes:
    text = _encode(frame)
    return head_of(len(text)) + text


@lru_cache(maxsize=2048)
def head_of(length: int) -> bytes:
    """What stands before a text of so many bytes that is a message of its own, and masks nothing, as a server's does:
    https://www.rfc-editor.org/rfc/rfc6455#section-5.2"""
    if length < 126:
        return pack("!BB", 0x81, length)
    if length < 2**16:
        return pack("!BBH", 0x81, 126, length)
    return pack("!BBQ", 0x81, 127, length)


def _length(piece: Frame) -> int:
    return len(piece["delta"]) + len(piece["reasoning"])
