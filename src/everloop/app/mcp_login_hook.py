"""Where a browser comes back to after somebody has logged in to an MCP server from the page: /hooks/mcp/login.

It is open to all, for a browser that comes from another site brings no login of ours along: a login that waits is known
by its `state`, which nobody else has been told.
"""

from collections.abc import Awaitable, Callable
from html import escape
from urllib.parse import urlencode

from ..errors import EverloopError
from ..ports.channel import Hook, HookAnswer, HookRequest

NAME = "mcp"
PATH = f"/hooks/{NAME}/login"
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'",
}
_PAGE = '<!doctype html><html lang="en"><title>everloop</title><p>{text}</p>'
DONE = "You are logged in to {name}. You can close this page and go back to everloop."


class McpLoginHook:
    def __init__(self, finish: Callable[[str], Awaitable[str]]) -> None:
        """`finish` is given the query of the address, and gives the name of the server."""
        self._finish = finish
        self.hooks = (Hook("GET", "/login", self.answer),)

    async def answer(self, request: HookRequest) -> HookAnswer:
        try:
            text = DONE.format(name=await self._finish(urlencode(request.query)))
            return HookAnswer(200, _PAGE.format(text=escape(text)).encode(), _HEADERS)
        except EverloopError as error:
            return HookAnswer(400, _PAGE.format(text=escape(str(error))).encode(), _HEADERS)
