"""The client of MCP servers over HTTP: what befalls a server on the web is told to the call, and overcome where it can
be."""

import asyncio
from base64 import b64encode
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from tests.ports import free_port
from tests.tools.mcp.authorization import guarded_server
from tests.tools.mcp.hosts import Asked, Network, answer, demo_server, network, saying, server_at, serving
from tests.tools.mcp.test_http_failures import host, rpc
from tests.tools.mcp.test_oauth import log_in
from tests.tools.mcp.wires import CONTEXT, allowed, connections

from everloop.errors import McpDown, McpLogin, McpLost
from everloop.ports.mcp import McpServer
from everloop.ports.tools import Shown

DONE = {"content": [{"type": "text", "text": "done"}]}


class OverHttp:
    """Wires over our `net`; `opened` counts them."""

    def __init__(self, net: Network) -> None:
        self._net = net
        self.opened = 0

    def open(self, server: McpServer) -> AbstractAsyncContextManager[Any]:
        self.opened += 1
        return self._net.wire(server)


def said(result: Any) -> bool:
    return isinstance(result, Shown) and "3" in str(result.text)


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_tool_of_a_server_on_the_web_is_called(transport: str):
    demo = demo_server()
    app = demo.sse_app(sse_path="/mcp") if transport == "sse" else demo.streamable_http_app()
    async with serving(app) as origin, network() as net, connections(OverHttp(net)) as client:
        server = server_at(f"{origin}/mcp", transport=transport)
        pins = await allowed(client, server)
        assert said(await client.call(server, pins["add"], {"a": 1, "b": 2}, CONTEXT))


async def test_a_login_that_stands_in_the_address_is_told_with_each_request():
    heard: list[str] = []

    async def on_call(asked: Asked, writer: asyncio.StreamWriter) -> None:
        heard.append(asked.headers.get("authorization", ""))
        writer.write(answer(200, rpc(asked, DONE)))

    async with saying(host(on_call)) as (_, origin), network() as net, connections(OverHttp(net)) as client:
        server = server_at(f"{origin.replace('://', '://me:canary-of-me@')}/mcp")
        await client.call(server, (await allowed(client, server))["t"], {}, CONTEXT)
    assert heard == [f"Basic {b64encode(b'me:canary-of-me').decode()}"]


async def test_a_session_that_a_restart_has_ended_is_begun_anew_within_the_call():
    port = free_port()
    server = server_at(f"http://127.0.0.1:{port}/mcp", seconds=20.0)
    async with network() as net, connections(wires := OverHttp(net)) as client:
        async with serving(demo_server().streamable_http_app(), port):
            pins = await allowed(client, server)
            assert said(await client.call(server, pins["add"], {"a": 1, "b": 2}, CONTEXT))
        async with serving(demo_server().streamable_http_app(), port):
            assert said(await client.call(server, pins["add"], {"a": 1, "b": 2}, CONTEXT))
    assert wires.opened >= 1


async def test_a_login_is_asked_for_and_is_enough():
    async with guarded_server() as place, network() as net, connections(OverHttp(net)) as client:
        server = server_at(place.url)
        with pytest.raises(McpLogin, match="demo wants you to log in: everloop mcp login demo"):
            await client.look(server)
        await log_in(net, server)
        await client.end("demo")
        pins = await allowed(client, server)
        assert said(await client.call(server, pins["add"], {"a": 1, "b": 2}, CONTEXT))
        place.desk.accesses.clear()
        place.desk.refreshes.clear()
        with pytest.raises(McpLogin, match="demo wants you to log in: everloop mcp login demo"):
            await client.call(server, pins["add"], {"a": 1, "b": 2}, CONTEXT)


async def test_whether_a_call_was_carried_out_is_told_by_what_befell_it():
    replies: list[bytes] = []

    async def on_call(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(replies.pop() if replies else answer(200, rpc(asked, DONE)))

    async with saying(host(on_call)) as (_, origin), network() as net, connections(OverHttp(net)) as client:
        server = server_at(f"{origin}/mcp")
        pins = await allowed(client, server)
        replies.append(answer(500))
        with pytest.raises(McpLost, match=r"demo has failed \(500\)"):
            await client.call(server, pins["t"], {}, CONTEXT)
        replies.append(answer(429, b"", Retry_After="7"))
        with pytest.raises(McpDown, match=r"asked too much \(429\). Try again in 7 s") as raised:
            await client.call(server, pins["t"], {}, CONTEXT)
        assert not isinstance(raised.value, McpLost)
        replies.append(answer(404))  # of a session that it does not know: begun anew, and called there
        assert isinstance(await client.call(server, pins["t"], {}, CONTEXT), Shown)


async def test_a_server_that_is_away_is_a_sentence_and_comes_back():
    port = free_port()
    server = server_at(f"http://127.0.0.1:{port}/mcp")
    async with network() as net, connections(OverHttp(net)) as client:
        with pytest.raises(McpDown, match="cannot be reached: connection refused"):
            await client.look(server)
        async with serving(demo_server().streamable_http_app(), port):
            await client.end("demo")
            assert [each.tool for each in (await client.look(server)).definitions] == ["add", "count", "large"]
