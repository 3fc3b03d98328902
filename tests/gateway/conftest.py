"""A gateway in front of a real house with a scripted model, and clients that come to it over real sockets."""

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from everloop.app import open_desk
from everloop.app import serve as open_gateway
from everloop.app.access import new_token, token_scopes
from everloop.app.records import open_records
from everloop.core.tool import Effect
from everloop.gateway import page
from everloop.gateway.access.auth import Auth
from everloop.gateway.access.permissions import Permission
from everloop.gateway.metrics import Metrics
from everloop.gateway.server import PERMISSIONS, application
from everloop.gateway.transport.limits import ConnectionLimits
from everloop.gateway.transport.origins import Origins
from everloop.gateway.ws.connection import ConnectionContext
from everloop.gateway.ws.connections import ClientConnections
from everloop.gateway.ws.hub import Hub
from everloop.ports.tools import Tool
from everloop.settings.shape import GatewaySection
from everloop.testing import ScriptedModel
from everloop.tools.decorator import tool

from .http_doors import PLATFORMS, canary, serve  # noqa: F401  # fixtures of three folders

FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]  # as a container without much wants them


class Door:
    """An open gateway and the means to come to it: tokens, plain requests, WebSockets."""

    def __init__(self, home: Path, url: str, link: str) -> None:
        self.home = home
        self.url = url
        self.link = link
        self.tokens = 0

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    async def token(self, *scopes: str, name: str = "") -> str:
        self.tokens += 1
        async with open_records(self.home) as records:
            wanted = scopes or token_scopes()
            named = PLATFORMS if "chat" in wanted else ()
            return await new_token(records.store, "owner", name or f"token {self.tokens}", wanted, platforms=named)

    async def revoke(self, name: str) -> bool:
        async with open_records(self.home) as records:
            return await records.store.forget_token("owner", name)

    @asynccontextmanager
    async def client(self, token: str = "", **headers: str) -> AsyncIterator[aiohttp.ClientSession]:
        sent = {"Authorization": f"Bearer {token}"} if token else {}
        jar = aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(self.url, headers={**sent, **headers}, cookie_jar=jar) as session:
            yield session

    @asynccontextmanager
    async def socket(self, token: str = "", **headers: str) -> "AsyncIterator[Wire]":
        async with (
            self.client(token or await self.token(), **headers) as client,
            client.ws_connect("/ws", max_msg_size=0) as wire,
        ):
            yield Wire(wire)


class Wire:
    """A WebSocket, and the frames that came over it."""

    def __init__(self, wire: aiohttp.ClientWebSocketResponse) -> None:
        self.raw = wire

    async def send(self, type: str, **fields: Any) -> None:
        await self.raw.send_json({"type": type, **fields})

    async def next(self) -> dict[str, Any]:
        frame = await self.raw.receive_json(timeout=30)
        assert isinstance(frame, dict)
        return frame

    async def until(self, type: str, **fields: Any) -> list[dict[str, Any]]:
        """All frames up to one of this type, with these fields."""
        frames = [await self.next()]
        while frames[-1]["type"] != type or any(frames[-1][name] != value for name, value in fields.items()):
            frames.append(await self.next())
        return frames

    async def ask(self, content: str, id: str = "m1", session: str = "api:default") -> list[dict[str, Any]]:
        await self.send("message", id=id, session=session, content=content)
        return await self.until("response", id=id)


@pytest.fixture
async def openings(tmp_path: Path) -> AsyncIterator[Any]:
    """Open a gateway: `door = await openings(model, gateway={…}, tools=…)`."""
    async with AsyncExitStack() as stack:

        async def open(
            model: ScriptedModel,
            gateway: dict[str, Any] | None = None,
            files: dict[str, Any] | None = None,
            **more: Any,
        ) -> Door:
            home = tmp_path / "home"
            settings = {"gateway": {"port": 0, **(gateway or {})}, "files": files or {}}
            opened = await stack.enter_async_context(open_gateway(home, settings, provider=model, **more))
            return Door(home, opened.url, opened.link)

        yield open


def plain(frames: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """What the frames say, without where: their type and the field that matters most."""
    telling = {"stream_chunk": "delta", "response": "content", "event": "event", "error": "code", "stream_end": "kept"}
    return [(frame["type"], frame.get(telling.get(frame["type"], "id"))) for frame in frames]


@pytest.fixture
def gated_send() -> Tool:
    @tool(Effect.UNSAFE, name="send", guarded=True)
    async def send() -> str:
        """Send something."""
        return "sent it"

    return send


@pytest.fixture
async def mounted(tmp_path: Path) -> Any:
    """An application with every route that the gateway answers."""

    async def look() -> web.Application:
        async with open_desk(home=tmp_path / "other", provider=ScriptedModel([])) as agent:
            auth = Auth(agent.store, Origins(frozenset(), frozenset(), 0))
            context = ConnectionContext(agent, Hub(agent, Metrics()), auth, Metrics(), "")
            sockets, limits = ClientConnections(context), ConnectionLimits(GatewaySection())
            return application(agent, auth, context.metrics, sockets, limits)

    return look


@pytest.fixture
async def routes_of(mounted: Any) -> Any:
    """What every method and path needs, with something in place of what varies, but for the page's own files."""

    async def look() -> dict[tuple[str, str], Permission]:
        table = (await mounted())[PERMISSIONS].table
        page_files = {route.path for route in page.routes()}
        return {
            (m, p.replace("{", "").replace("}", "")): needs for (m, p), needs in table.items() if p not in page_files
        }

    return look


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Any]:
    """Debian's chromium, driven by Playwright: one for all tests of a process."""
    playwright = pytest.importorskip(
        "playwright.async_api", reason="Playwright is not installed (pip install playwright)"
    )
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    async with playwright.async_playwright() as driver:
        opened = await driver.chromium.launch(executable_path=chromium, args=FLAGS, timeout=100_000)
        yield opened
        await opened.close()
