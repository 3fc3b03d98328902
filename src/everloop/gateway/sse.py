"""Server-sent events. The answer begins with the first thing that is sent, so that what fails before it has its status;
after a while of silence it begins anyway, and comments keep the connection open."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

import msgspec
from aiohttp import web

SILENCE = 10.0  # seconds before an answer begins without anything to say
BEAT = 3.0  # seconds between two signs of life, once it has begun
_HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}

Item = TypeVar("Item")


class Sse:
    def __init__(self, request: web.Request, headers: dict[str, str]) -> None:
        self._request = request
        self.response = web.StreamResponse(headers={**_HEADERS, **headers})

    @property
    def begun(self) -> bool:
        return self.response.prepared

    async def send(self, data: Any, event: str = "") -> None:
        """Raises ConnectionError when nobody is there any more."""
        text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
        await self._write(f"event: {event}\ndata: {text}\n\n" if event else f"data: {text}\n\n")

    async def beat(self) -> None:
        await self._write(": still here\n\n")

    async def _write(self, text: str) -> None:
        if not self.response.prepared:
            await self.response.prepare(self._request)
        await self.response.write(text.encode())


async def with_beats(
    items: AsyncGenerator[Item], sse: Sse, silence: float = SILENCE, beat: float = BEAT
) -> AsyncGenerator[Item]:
    """The items as they come, and a sign of life whenever none has come for a while."""
    coming = asyncio.ensure_future(anext(items))
    try:
        while True:
            await asyncio.wait({coming}, timeout=beat if sse.begun else silence)
            if not coming.done():
                await sse.beat()
                continue
            try:
                item = coming.result()
            except StopAsyncIteration:
                return
            yield item
            coming = asyncio.ensure_future(anext(items))
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)
        await items.aclose()
