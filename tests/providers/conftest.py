"""A real server on loopback, and the real way to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

import pytest
import uvloop
from aiohttp import web

from everloop.net.trusted import TrustedHttp

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[[Handler], Awaitable[str]]


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """What a connection does is shown on both event loops: a host program has the one, our own process the other."""
    both = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
    return both if item.path.name == "test_net.py" else {"asyncio": asyncio.new_event_loop}


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Answers every request with the handler; gives the server's address."""
    async with AsyncExitStack() as stack:

        async def start(handler: Handler) -> str:
            runner = web.ServerRunner(web.Server(handler, handler_cancellation=True), shutdown_timeout=0.01)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            return f"http://{host}:{port}"

        yield start


@pytest.fixture
async def http() -> AsyncIterator[TrustedHttp]:
    http = TrustedHttp()
    yield http
    await http.close()
