"""Server-sent events. The answer begins with the first thing that is sent, so that what fails before it has its status;
after a while of silence it begins anyway, and comments keep the connection open."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from aiohttp import web

SILENCE = 10.0  # seconds before an answer begins without anything to say
BEAT = 3.0  # seconds between two signs of life, once it has begun
_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_encode = msgspec.json.Encoder().encode


class _Streamed(web.StreamResponse):
    _send_headers_immediately = False  # they go out with what is sent first, in one write


class Sse:
    def __init__(self, request: web.Request, headers: Mapping[str, str]) -> None:
        self._request = request
        self._beats = 0
        self.response = _Streamed(headers={**_HEADERS, **headers})

    @property
    def begun(self) -> bool:
        return self.response.prepared

    async def send_all(self, told: Iterable[tuple[Any, str]]) -> None:
        """Each as an event of its name. Raises ConnectionError when nobody is there any more."""
        if data := b"".join([_event(each, name) for each, name in told]):
            await self._write(data)

    async def send_last(self, told: Iterable[tuple[Any, str]]) -> None:
        """As `send_all`, with the end of the answer in the same write."""
        if not self.response.prepared:
            await self.response.prepare(self._request)
        await self.response.write_eof(b"".join([_event(each, name) for each, name in told]))

    async def beat(self) -> None:
        """Nothing has come for BEAT seconds: a sign of life, once that is long enough."""
        self._beats += 1
        if self.begun or self._beats * BEAT >= SILENCE:
            await self._write(b": still here\n\n")

    async def _write(self, data: bytes) -> None:
        if not self.response.prepared:
            await self.response.prepare(self._request)
        await self.response.write(data)


def _event(data: Any, name: str) -> bytes:
    text = data.encode() if isinstance(data, str) else _encode(data)
    return b"event: %b\ndata: %b\n\n" % (name.encode(), text) if name else b"data: %b\n\n" % text
