"""What waits to be sent to one WebSocket, in order and bounded (backpressure).

A client that reads too slowly first gets several pieces of an answer as one, and is cut off when even that is too much:
it can come back and resume, and nothing is lost, because the log has it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

LIMIT = 4_000_000  # bytes that may wait
LARGE = LIMIT // 4  # as which a frame counts at most: an answer that is larger has to get through, as piece and whole
ROOM = 500_000  # below which more history is read for it
FRAMES = 5000
JOIN = 8  # frames that wait, from which on pieces are joined

Frame = dict[str, Any]
Later = Callable[[], Awaitable[Frame]]  # a frame that has to be looked up when its turn has come

_encode = msgspec.json.Encoder(enc_hook=str).encode


class _Waiting:
    """A frame in its place, about how many bytes it is, and further pieces of the same answer."""

    __slots__ = ("item", "more", "size")

    def __init__(self, item: Frame | Later, size: int) -> None:
        self.item = item
        self.size = size
        self.more: list[Frame] = []

    def takes(self, piece: Frame) -> bool:
        last = self.item
        return isinstance(last, dict) and last["type"] == "stream_chunk" and last["msg"] == piece["msg"]

    def add(self, piece: Frame) -> int:
        """Returns by how much it has grown."""
        grown = len(piece["delta"]) + len(piece["reasoning"])
        self.size += grown
        self.more.append(piece)
        return grown

    async def whole(self) -> Frame:
        frame = self.item if isinstance(self.item, dict) else await self.item()
        if not self.more:
            return frame
        pieces = [frame, *self.more]
        joined = {name: "".join(piece[name] for piece in pieces) for name in ("delta", "reasoning")}
        return {**pieces[-1], **joined}


class SendQueue:
    """`put` never waits; `run` sends until it is cancelled. `overflow` is called once, when it became too much."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], overflow: Callable[[], None]) -> None:
        self._send = send
        self._overflow = overflow
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._over = False
        self._some = asyncio.Event()
        self._room = asyncio.Event()

    def put(self, item: Frame | Later, size: int = 0) -> None:
        """`size` is for what may be large: about how many bytes it is."""
        if self._over:
            return
        last = self._waiting[-1] if len(self._waiting) >= JOIN else None
        if last and isinstance(item, dict) and item["type"] == "stream_chunk" and last.takes(item):
            self._bytes += last.add(item)
        else:
            self._waiting.append(_Waiting(item, min(size or _size(item), LARGE)))
            self._bytes += self._waiting[-1].size
        self._some.set()
        if self._bytes > LIMIT or len(self._waiting) > FRAMES:
            self.drop()
            self._overflow()

    def drop(self) -> None:
        """Forget what waits, and whatever else is put."""
        self._over = True
        self._waiting.clear()
        self._bytes = 0
        self._room.set()

    async def room(self) -> None:
        """Wait until little is waiting."""
        while self._bytes > ROOM:
            self._room.clear()
            await self._room.wait()

    async def run(self) -> None:
        while True:
            while self._waiting:
                waiting = self._waiting.popleft()
                self._bytes -= waiting.size
                await self._send(_encode(await waiting.whole()))
                self._room.set()
            self._some.clear()
            await self._some.wait()


def _size(item: Frame | Later) -> int:
    """About how many bytes; what is looked up later is not there yet."""
    if not isinstance(item, dict):
        return 500
    if item["type"] == "stream_chunk":
        return 200 + len(item["delta"]) + len(item["reasoning"])
    data = item.get("data", item)
    return 200 + sum(len(value) for value in data.values() if isinstance(value, str))
