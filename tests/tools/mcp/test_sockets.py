"""The SDK opens no socket: whatever it sends over our wire, and for a login, goes through `net`."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.tools.mcp.authorization import agree, guarded_server
from tests.tools.mcp.hosts import connected, demo_server, network, server_at, serving

import everloop
from everloop.ports.mcp import McpOAuth
from everloop.tools.mcp.oauth import McpLogins

NET = str(Path(everloop.__file__).parent / "net")
REDIRECT = "http://127.0.0.1:9/callback"
_watchers: list[list[str]] = []
_EVENTS = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}


def _hear(event: str, args: tuple) -> None:
    if not _watchers or event not in _EVENTS or _is_local(args):
        return
    word = "net" if _is_called_by_net(sys._getframe()) else f"somebody else ({event})"
    for watcher in _watchers:
        watcher.append(word)


def _is_local(args: tuple) -> bool:
    """A loop wakes itself by a pair of sockets."""
    return isinstance(args[-1], str)


def _is_called_by_net(frame: FrameType | None) -> bool:
    while frame:
        if frame.f_code.co_filename.startswith(NET):
            return True
        frame = frame.f_back
    return False


sys.addaudithook(_hear)  # which nobody can take out again


@contextmanager
def watched() -> Iterator[list[str]]:
    """Who connects, by the stack at the moment of it."""
    heard: list[str] = []
    _watchers.append(heard)
    try:
        yield heard
    finally:
        _watchers.remove(heard)


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_all_that_the_sdk_asks_goes_through_net(transport: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_PROXY", "")
    server = demo_server()
    app = server.sse_app(sse_path="/mcp") if transport == "sse" else server.streamable_http_app()
    async with serving(app) as origin:
        with watched() as heard:
            async with connected(f"{origin}/mcp", transport=transport) as client:
                await client.call_tool("add", {"a": 1, "b": 2})
    assert heard
    assert set(heard) == {"net"}


async def test_a_login_and_its_renewal_go_through_net():
    async with guarded_server(apart=True) as place, network() as net:
        server = server_at(place.url, oauth=McpOAuth(issuers=(place.issuer,)))
        came: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def show(url: str) -> None:
            _watchers.remove(heard)  # a browser is not ours
            came.set_result(await asyncio.to_thread(agree, url))
            _watchers.append(heard)

        async def wait() -> str:
            return await came

        with watched() as heard:
            logins = McpLogins(vault=net.vault, trusted=net.trusted, open=net.open)
            await logins.log_in(server, redirect=REDIRECT, show_url=show, wait_for_code=wait)
            place.desk.accesses.clear()
            async with net.client(server, mode="legacy") as client:
                await client.call_tool("add", {"a": 1, "b": 2})
    assert place.desk.renewals == 1
    assert len(heard) >= 2
    assert set(heard) == {"net"}


async def test_neither_a_proxy_nor_a_password_of_the_surroundings_is_used_beside_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """A proxy is `net`'s business, which knows that loopback has none."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login ann password s3cret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    async with serving(demo_server().streamable_http_app()) as origin:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with watched() as heard:
            async with connected(f"{origin}/mcp") as client:
                await client.call_tool("add", {"a": 1, "b": 2})
    assert set(heard) == {"net"}


async def test_the_sdk_with_a_client_of_its_own_is_noticed():
    async with serving(demo_server().streamable_http_app()) as origin:
        with watched() as heard:
            async with httpx2.AsyncClient() as client:
                await client.get(f"{origin}/mcp")
        assert set(heard) == {"somebody else (socket.connect)"}
        with watched() as heard:
            async with Client(streamable_http_client(f"{origin}/mcp"), mode="legacy") as sdk:
                await sdk.call_tool("add", {"a": 1, "b": 2})
        assert set(heard) == {"somebody else (socket.connect)"}
