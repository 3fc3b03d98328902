"""Servers on loopback for tests of the HTTP wire: real ones made with the SDK, and ones that say what they are told."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from mcp import Client
from mcp.server.mcpserver import Context, MCPServer

from everloop.net.open import OpenHttp
from everloop.net.trusted import TrustedHttp
from everloop.ports.mcp import McpServer
from everloop.tools.mcp.http import http_wire


class DictVault:
    """A Vault of plain values."""

    def __init__(self) -> None:
        self.kept_values: dict[str, str] = {}

    async def get(self, name: str) -> str | None:
        return self.kept_values.get(name)

    async def set(self, name: str, value: str) -> None:
        self.kept_values[name] = value

    async def names(self) -> list[str]:
        return sorted(self.kept_values)

    async def kept(self) -> dict[str, float]:
        return dict.fromkeys(sorted(self.kept_values), 0.0)

    async def forget(self, name: str) -> bool:
        return self.kept_values.pop(name, None) is not None


def demo_server(**more: Any) -> MCPServer:
    server = MCPServer("demo", **more)

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool()
    async def count(to: int, ctx: Context) -> str:
        for step in range(to):
            await ctx.report_progress(step + 1, to)
        return f"counted to {to}"

    @server.tool()
    def large(size: int) -> str:
        return "x" * size

    return server


@asynccontextmanager
async def serving(app: Any, port: int = 0) -> AsyncIterator[str]:
    """An ASGI app on loopback; gives its origin."""
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:
            assert not task.done(), "the server has not started"
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True  # streams of events stay open for as long as they may
        await task


class Asked:
    """A request, as a host of our own hears it."""

    def __init__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body


Say = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


class Host:
    """Says what it is told, byte by byte; remembers what it was asked."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self.asked: list[Asked] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, target, _ = head[0].split(" ")
                headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in head[1:])}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                asked = Asked(method, target, headers, body)
                self.asked.append(asked)
                await self._say(asked, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def saying(say: Say) -> AsyncIterator[tuple[Host, str]]:
    """A Host, and its origin."""
    host = Host(say)
    tasks: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(host.answer(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(begin, "127.0.0.1", 0, limit=2**20)
    try:
        yield host, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in [*tasks]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answer(status: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Network:
    """Our `net` for a test, and a vault."""

    def __init__(self) -> None:
        self.trusted = TrustedHttp()
        self.open = OpenHttp()
        self.vault = DictVault()

    def wire(self, server: McpServer) -> Any:
        return http_wire(server, trusted=self.trusted, open=self.open, vault=self.vault)

    def client(self, server: McpServer, **more: Any) -> Client:
        return Client(self.wire(server), **more)


@asynccontextmanager
async def network() -> AsyncIterator[Network]:
    net = Network()
    try:
        yield net
    finally:
        await net.trusted.close()
        await net.open.close()


@asynccontextmanager
async def connected(url: str, mode: Any = "legacy", **more: Any) -> AsyncIterator[Client]:
    """The SDK's client over our wire to the server at this address."""
    async with network() as net, net.client(server_at(url, **more), mode=mode) as client:
        yield client


def server_at(url: str, **more: Any) -> McpServer:
    more = {"name": "demo", "transport": "http", "seconds": 5.0} | more
    return McpServer(url=url, **more)
