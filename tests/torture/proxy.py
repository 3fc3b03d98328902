"""A line between everloop and a host that misbehaves as it is told: toxiproxy's faults, in a thread of the campaign.

It carries bytes and knows nothing of what they say, but for one thing: when an answer of a model is over, so that a
connection that is cut can be told from one that is cut in the middle of something paid for.
"""

import asyncio
import random
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from msgspec import Struct

Toxic = Literal["latency", "trickle", "slice", "hole", "refuse", "cut", "half-close"]
TOXICS: tuple[Toxic, ...] = ("latency", "trickle", "slice", "hole", "refuse", "cut", "half-close")

_LAST_CHUNK = b"0\r\n\r\n"
_JUST_NOW = 0.3  # seconds after its end for which an answer may not have been read yet
_RESET = struct.pack("ii", 1, 0)


class _Line(Struct, eq=False):
    """One connection through the proxy, with its two ends."""

    client: asyncio.StreamWriter
    host: asyncio.StreamWriter
    asked: bool = False  # something was asked, and its answer is not over
    over: float = 0.0  # when the last answer was
    halved: bool = False

    @property
    def is_busy(self) -> bool:
        return self.asked or time.monotonic() - self.over < _JUST_NOW


class Proxy:
    """Made by a Network. `port` is where everloop connects to; `broken` counts the lines that were broken in the middle
    of something."""

    def __init__(self, to: int, rng: random.Random) -> None:
        self._to = to
        self._rng = rng
        self._lines: set[_Line] = set()
        self._toxic: Toxic | None = None
        self._clear = asyncio.Event()
        self._clear.set()
        self.port = 0
        self.broken = 0

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])

    def begin(self, toxic: Toxic) -> None:
        self._toxic = toxic
        if toxic == "hole":
            self._clear.clear()
        if toxic in ("cut", "refuse"):
            for line in list(self._lines):
                self._break(line)
        if toxic == "half-close":
            for line in self._lines:
                self._halve(line)

    def end(self) -> None:
        self._toxic = None
        self._clear.set()

    def _break(self, line: _Line) -> None:
        self.broken += line.is_busy and not line.halved
        self._lines.discard(line)
        for writer in (line.client, line.host):
            _reset(writer)

    def _halve(self, line: _Line) -> None:
        """Nothing more comes from the host, while what is said to it still arrives."""
        self.broken += line.is_busy and not line.halved
        line.halved = True
        with suppress(OSError, RuntimeError):
            line.client.write_eof()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._toxic == "refuse":
            _reset(writer)
            return
        await self._clear.wait()
        try:
            up, host = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            _reset(writer)
            return
        line = _Line(writer, host)
        self._lines.add(line)
        try:
            await asyncio.gather(self._ask(reader, line), self._answer(up, line))
        except OSError:  # one end has gone: so does the other
            self._break(line)
        finally:
            self._lines.discard(line)
            for each in (writer, host):
                each.close()

    async def _ask(self, reader: asyncio.StreamReader, line: _Line) -> None:
        async for piece in self._carried(reader):
            line.asked = True
            line.host.write(piece)
            await line.host.drain()
        line.host.close()

    async def _answer(self, reader: asyncio.StreamReader, line: _Line) -> None:
        last = b""
        async for piece in self._carried(reader):
            if line.halved:
                continue
            line.client.write(piece)
            await line.client.drain()
            last = (last + piece)[-len(_LAST_CHUNK) :]
            if last == _LAST_CHUNK:
                line.asked, line.over = False, time.monotonic()
        line.client.close()

    async def _carried(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        while data := await reader.read(65536):
            await self._clear.wait()
            size = {"slice": 7, "trickle": 256}.get(self._toxic or "", len(data))
            if self._toxic == "latency":
                await asyncio.sleep(self._rng.uniform(0.01, 0.2))
            for at in range(0, len(data), size):
                if self._toxic == "trickle":
                    await asyncio.sleep(0.02)
                elif self._toxic == "slice":
                    await asyncio.sleep(0)
                yield data[at : at + size]


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as a router does that has forgotten it, and not as a program does."""
    connection = writer.get_extra_info("socket")
    with suppress(OSError):  # it is closed already
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


class Network:
    """The thread in which the proxies of one world run."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def proxy(self, to: int) -> Proxy:
        async def make() -> Proxy:
            proxy = Proxy(to, self._rng)
            await proxy.listen()
            return proxy

        return asyncio.run_coroutine_threadsafe(make(), self._loop).result()

    @contextmanager
    def toxic(self, toxic: Toxic, *proxies: Proxy) -> Iterator[None]:
        """While the block lasts, these misbehave."""
        try:
            for proxy in proxies:
                self._loop.call_soon_threadsafe(proxy.begin, toxic)
            yield
        finally:
            for proxy in proxies:
                self._loop.call_soon_threadsafe(proxy.end)

    def close(self) -> None:
        async def end() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
