"""The other ends of a WebSocket: a bare host that says what it likes, and a line without a network."""

import asyncio
import base64
import hashlib
import re
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress

from everloop.net.socket_connection import WebSocketConnection
from everloop.net.socket_protocol import SocketProtocol
from everloop.ports import PLAIN_TERMS, SocketTerms

CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(
    opcode: int, data: bytes = b"", *, fin: bool = True, rsv: int = 0, mask: bytes = b"", size: int = -1
) -> bytes:
    """With `size` it claims another length than it has."""
    size = len(data) if size < 0 else size
    head = bytes([fin << 7 | rsv << 4 | opcode])
    masked = 0x80 if mask else 0
    if size < 126:
        head += bytes([masked | size])
    elif size < 1 << 16:
        head += bytes([masked | 126]) + struct.pack("!H", size)
    else:
        head += bytes([masked | 127]) + struct.pack("!Q", size)
    return head + mask + (bytes(each ^ mask[n % 4] for n, each in enumerate(data)) if mask else data)


def farewell(code: int, reason: bytes = b"") -> bytes:
    return frame(CLOSE, struct.pack("!H", code) + reason)


def frames_in(data: bytes) -> Iterator[tuple[int, bytes]]:
    """What a client has sent, as opcodes and contents; a client masks all of it."""
    while data:
        opcode, size, at = data[0] & 15, data[1] & 127, 2
        assert data[1] & 128, "a client's frame is masked"
        if size >= 126:
            at = 4 if size == 126 else 10
            size = int.from_bytes(data[2:at])
        mask, content = data[at : at + 4], data[at + 4 : at + 4 + size]
        assert len(content) == size, "a client's frame is whole"
        yield opcode, bytes(each ^ mask[n % 4] for n, each in enumerate(content))
        data = data[at + 4 + size :]


def code_in(data: bytes) -> list[int]:
    """The codes of the farewells in there."""
    return [int.from_bytes(content[:2]) if content else 1005 for opcode, content in frames_in(data) if opcode == CLOSE]


class Peer:
    """One connection of a client, as its host sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.asked = ""

    async def hear_request(self) -> str:
        """Its head; gives what Sec-WebSocket-Accept has to be."""
        self.asked = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        key = re.search(r"(?im)^sec-websocket-key: (\S+)", self.asked)
        assert key
        return base64.b64encode(hashlib.sha1(key[1].encode() + _GUID).digest()).decode()

    async def agree(self, then: bytes = b"", more: str = "") -> None:
        accept = await self.hear_request()
        self.writer.write(agreement(accept, more) + then)

    async def hear_all(self) -> bytes:
        """Whatever comes until the client goes."""
        heard = b""
        with suppress(ConnectionError):
            while data := await self.reader.read(1 << 16):
                heard += data
        return heard

    async def hear_farewell(self) -> None:
        """And whatever comes before it; then nobody waits for this host."""
        while (await self.hear_frame())[0] != CLOSE:
            pass

    async def hear_frame(self) -> tuple[int, bytes]:
        head = await self.reader.readexactly(2)
        size = head[1] & 127
        wide = {126: 2, 127: 8}.get(size, 0)
        length = await self.reader.readexactly(wide)
        size = int.from_bytes(length) if wide else size
        ((opcode, content),) = frames_in(head + length + await self.reader.readexactly(4 + size))
        return opcode, content


def agreement(accept: str, more: str = "") -> bytes:
    head = f"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n"
    return f"{head}{more}\r\n".encode()


Speak = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def hosting(speak: Speak, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A host whose connections end with what it has to say, and with it."""
    talks: set[asyncio.Task[None]] = set()

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        with suppress(asyncio.CancelledError, ConnectionError, asyncio.IncompleteReadError):
            await speak(Peer(reader, writer))
        writer.close()

    async with await asyncio.start_server(note, "127.0.0.1", 0, ssl=context) as server:
        yield f"ws{'s' if context else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks)


class Line:
    """A transport that leads nowhere, and the connection that is handed over with it."""

    def __init__(self) -> None:
        self.written = b""
        self.is_over = False
        self.listening = asyncio.Event()
        self.listening.set()
        self.unsent = 0
        self._wire: WebSocketConnection

    @property
    def transport(self) -> "Line":
        return self

    def hand_over(self, wire: WebSocketConnection) -> tuple[bytes, bool]:
        self._wire = wire
        return b"", False

    def set_protocol(self, wire: WebSocketConnection) -> None:
        self._wire = wire

    def write(self, data: bytes) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def pause_reading(self) -> None:
        self.listening.clear()

    def resume_reading(self) -> None:
        self.listening.set()

    def is_closing(self) -> bool:
        return self.is_over

    def abort(self) -> None:
        if not self.is_over:
            self.is_over = True
            asyncio.get_running_loop().call_soon(self._wire.connection_lost, None)


def wired(terms: SocketTerms = PLAIN_TERMS, more: str = "") -> tuple[WebSocketConnection, Line]:
    """A WebSocket whose host has agreed, `more` with these headers."""
    protocol, line = SocketProtocol(terms), Line()
    key = protocol.asking()["Sec-WebSocket-Key"]
    accept = base64.b64encode(hashlib.sha1(key.encode() + _GUID).digest()).decode()
    agreed = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": accept}
    protocol.agree({**agreed, "Sec-WebSocket-Extensions": more} if more else agreed)
    wire = WebSocketConnection(protocol, "host", terms, str)
    wire.start(line)  # type: ignore[arg-type]
    return wire, line
