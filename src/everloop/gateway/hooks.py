"""The web hooks of channels, each at /hooks/<channel>…: open to all, for the channel itself knows who may call it.

Channels come and go while the gateway runs, so who is called is looked up with each call. A hook that there is not is
answered as any other address that there is not.
"""

from collections.abc import Mapping, Sequence

from aiohttp import web

from ..ports.channel import ANY_PATH, Hook, HookRequest
from .access.guard import NONE
from .access.permissions import PUBLIC, Route
from .http.errors import Refused

PATH = "/hooks/{channel:[^/]+}{path:(?:/.*)?}"

Hooks = Mapping[str, Sequence[Hook]]


def routes(hooks: Hooks) -> list[Route]:
    """`hooks` are those of the channels that are open just now."""

    async def handle(request: web.Request) -> web.StreamResponse:
        hook = _hook_of(hooks, request)
        headers: dict[str, str] = {}
        for name, value in request.headers.items():  # one that comes twice is neither of the two
            headers[name.lower()] = f"{headers[name.lower()]},{value}" if name.lower() in headers else value
        body = await _body(request, hook.largest)
        answer = await hook.answer(HookRequest(request.method, headers, body, dict(request.query)))
        told = {"Content-Type": "application/json", **answer.headers}
        return web.Response(status=answer.status, body=answer.body, headers=told)

    return [Route(method, PATH, handle, PUBLIC) for method in ("GET", "POST")]


def _hook_of(hooks: Hooks, request: web.Request) -> Hook:
    """Raises Refused."""
    method = "GET" if request.method == "HEAD" else request.method
    channel, path = request.match_info["channel"], request.match_info["path"]
    for hook in hooks.get(channel, ()):
        if hook.method == method and hook.path in (path, ANY_PATH):
            return hook
    raise Refused(401, "unauthorized", NONE)


async def _body(request: web.Request, largest: int) -> bytes:
    """Raises Refused; what is too much is not read."""
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > largest:
            raise Refused(413, "too_large", f"the request has more than {largest:,} bytes")
    return bytes(body)
