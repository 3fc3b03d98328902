"""MCP over HTTP against servers made with the SDK, on loopback: each of its forms carries calls, and ends."""

import asyncio

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp_types import TextContent
from tests.mcp_servers import node_server
from tests.ports import free_port
from tests.tools.mcp.hosts import Network, connected, demo_server, network, server_at, serving

from everloop.ports.mcp import McpServer

FORMS = {
    "stateful, events": {},
    "stateful, JSON": {"json_response": True},
    "stateless, events": {"stateless_http": True},
    "stateless, JSON": {"stateless_http": True, "json_response": True},
}


async def said_by(client: Client, tool: str, **args: object) -> str:
    (content,) = (await client.call_tool(tool, args)).content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("form", FORMS)
async def test_streamable_http_carries_calls_and_progress(form: str, mode: str):
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    app = demo_server().streamable_http_app(**FORMS[form])
    async with serving(app) as origin, connected(f"{origin}/mcp", mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["add", "count", "large"]
        assert await said_by(client, "add", a=2, b=3) == "5"
        result = await client.call_tool("count", {"to": 3}, progress_callback=hear)
        assert [part.text for part in result.content if isinstance(part, TextContent)] == ["counted to 3"]
    if "JSON" not in form:
        assert heard == [1, 2, 3]


async def test_the_older_sse_carries_calls():
    async with serving(demo_server().sse_app()) as origin, connected(f"{origin}/sse", transport="sse") as client:
        assert await said_by(client, "add", a=2, b=3) == "5"
        assert len(await said_by(client, "large", size=400_000)) == 400_000


async def test_an_answer_of_several_megabytes_comes_whole_in_either_form():
    for form in FORMS.values():
        async with (
            serving(demo_server().streamable_http_app(**form)) as origin,
            connected(f"{origin}/mcp", mode="auto") as client,
        ):
            assert len(await said_by(client, "large", size=4_000_000)) == 4_000_000


async def test_calls_side_by_side_do_not_wait_for_one_another():
    async with (
        serving(demo_server().streamable_http_app()) as origin,
        connected(f"{origin}/mcp", mode="auto") as client,
    ):
        said = await asyncio.gather(*(said_by(client, "add", a=n, b=n) for n in range(20)))
    assert said == [str(2 * n) for n in range(20)]


async def test_server_everything_speaks_over_http():
    port = free_port()
    program = await asyncio.create_subprocess_exec(
        *node_server("mcp-server-everything"),
        "streamableHttp",
        env={"PORT": str(port), "PATH": "/usr/bin:/bin"},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert program.stderr is not None
        while b"listening" not in (line := await program.stderr.readline()):
            assert line, "it has ended"
        async with connected(f"http://127.0.0.1:{port}/mcp") as client:
            assert await said_by(client, "echo", message="hello") == "Echo: hello"
    finally:
        program.terminate()
        await program.wait()


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_nothing_is_left_open_behind_a_wire(transport: str):
    server = demo_server()
    app = server.sse_app(sse_path="/mcp") if transport == "sse" else server.streamable_http_app()
    async with serving(app) as origin, network() as net:
        for _ in range(3):
            async with net.client(server_at(f"{origin}/mcp", transport=transport), mode="legacy") as client:
                assert await said_by(client, "add", a=2, b=3) == "5"
            with pytest.raises(ZeroDivisionError):
                await fail_inside(net, server_at(f"{origin}/mcp", transport=transport))
        assert net.trusted._busy == set()


async def fail_inside(net: Network, server: McpServer) -> None:
    async with net.client(server, mode="legacy"):
        raise ZeroDivisionError


async def test_a_call_that_is_cancelled_lets_its_connection_go():
    begun = asyncio.Event()
    server = MCPServer("slow")

    @server.tool()
    async def wait() -> str:
        begun.set()
        await asyncio.get_running_loop().create_future()
        return ""

    async with serving(server.streamable_http_app()) as origin, network() as net:
        async with net.client(server_at(f"{origin}/mcp"), mode="auto") as client:
            call = asyncio.create_task(client.call_tool("wait", {}))
            await begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        assert net.trusted._busy == set()
