"""The web hooks of channels, each at /hooks/<channel>…: open to all, for the channel itself knows who may call it."""

from collections.abc import Mapping, Sequence

from aiohttp import web

from ..ports.channel import Hook, HookRequest
from .access.permissions import PUBLIC, Route
from .http.errors import Refused
from .http.handler import Handler


def routes(hooks: Mapping[str, Sequence[Hook]]) -> list[Route]:
    return [
        Route(hook.method, f"/hooks/{channel}{hook.path}", _handler(hook), PUBLIC)
        for channel, its in hooks.items()
        for hook in its
    ]


def _handler(hook: Hook) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        headers: dict[str, str] = {}
        for name, value in request.headers.items():  # one that comes twice is neither of the two
            headers[name.lower()] = f"{headers[name.lower()]},{value}" if name.lower() in headers else value
        body = await _body(request, hook.largest)
        answer = await hook.answer(HookRequest(request.method, headers, body, dict(request.query)))
        told = {"Content-Type": "application/json", **answer.headers}
        return web.Response(status=answer.status, body=answer.body, headers=told)

    return handle


async def _body(request: web.Request, largest: int) -> bytes:
    """Raises Refused; what is too much is not read."""
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > largest:
            raise Refused(413, "too_large", f"the request has more than {largest:,} bytes")
    return bytes(body)
