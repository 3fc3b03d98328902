"""A gateway with the doors that are tried, an everloop behind it, and tokens that tests make up: in this process."""

import io
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from PIL import Image

import everloop
from everloop.app import open_desk
from everloop.core.people import Role
from everloop.gateway import openai, platform
from everloop.gateway.access.principal import Principal
from everloop.gateway.access.scopes import SCOPES
from everloop.testing import ScriptedModel

from .guarded import guarded

TOKEN = "a-token-for-tests"
PLATFORMS = ("discord", "d", "web", "irc", "chat")  # for whose people tokens of tests speak


class Served:
    """An open house and the address of its gateway."""

    def __init__(self, agent: everloop.Agent, url: str) -> None:
        self.agent = agent
        self.url = url
        self.clients: list[Any] = []

    def client(self, **more) -> Any:
        """OpenAI's own, which is closed before the gateway is: left to the collector, it would complain in another
        test."""
        from openai import AsyncOpenAI  # which takes long to load

        more = {"api_key": TOKEN, "max_retries": 0, **more}
        self.clients.append(AsyncOpenAI(base_url=f"{self.url}/v1", **more))
        return self.clients[-1]

    async def entries(self, session: str):
        row = await self.agent.store.session(session)
        return await self.agent.store.read(row.id)


def named(token: str) -> Principal | None:
    """The token names its user and, after a bar, its scopes; else it has all."""
    if not token.startswith(TOKEN):
        return None
    user, _, scopes = token.removeprefix(TOKEN).removeprefix(":").partition("|")
    held = frozenset(scopes.split("+") if scopes else SCOPES)
    return Principal(user or "owner", Role.OWNER, held, "token", token, platforms=frozenset(PLATFORMS))


Serve = Callable[..., AbstractAsyncContextManager[Served]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """`async with serve(model, tools=…) as served`."""

    @asynccontextmanager
    async def open(model: ScriptedModel | None, **more) -> AsyncIterator[Served]:
        async with open_desk(home=tmp_path / "home", provider=model, **more) as agent:
            server = TestServer(guarded([*openai.routes(agent), *platform.routes(agent)], named))
            await server.start_server()
            served = Served(agent, str(server.make_url("")).rstrip("/"))
            try:
                yield served
            finally:
                for each in served.clients:
                    await each.close()
                await server.close()

    return open


@pytest.fixture
async def canary() -> AsyncIterator[str]:
    """The address of an image on this very machine, where nothing that a stranger names may be fetched."""
    made = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(made, "PNG")

    async def show(request: web.Request) -> web.Response:
        return web.Response(body=made.getvalue(), content_type="image/png")

    app = web.Application()
    app.router.add_get("/canary.png", show)
    server = TestServer(app)
    await server.start_server()
    try:
        yield str(server.make_url("/canary.png"))
    finally:
        await server.close()
