"""The platform of the channel in `plugged/`, and the way to have that package installed."""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import invalidate_caches
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestServer

PLUGGED = Path(__file__).parent / "plugged"
TOKEN = "canary-of-a-parrot-77c1"
PASSWORD = "canary-of-a-password-19d0"


class Cage:
    """Where the parrot lives: who asks with its token is told its name and what it may do."""

    def __init__(self) -> None:
        self.token = TOKEN
        self.scopes = ["speak", "fly"]
        self.url = ""

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Cage"]:
        app = web.Application()
        app.router.add_get("/me", self._me)
        async with TestServer(app, host="127.0.0.1") as server:
            self.url = f"http://127.0.0.1:{server.port}"
            yield self

    async def _me(self, request: web.Request) -> web.Response:
        if request.headers.get("X-Password") == PASSWORD:
            return web.json_response({"token": self.token})
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401)
        return web.json_response({"name": "polly", "scopes": self.scopes})


@contextmanager
def plugged_in() -> Iterator[None]:
    """As long as the block lasts, the package is installed here."""
    sys.path.insert(0, str(PLUGGED))
    invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(PLUGGED))
        invalidate_caches()
