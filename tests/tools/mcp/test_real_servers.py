"""Servers that others wrote, over our wire in the sandbox, with the SDK's own client."""

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.mcp_servers import node_server, python_server
from tests.tools.mcp.stdio_world import CONFINED, WAYS, StdioWorld, stdio_world


@pytest.fixture(params=WAYS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StdioWorld]:
    async with stdio_world(tmp_path, request.param) as made:
        yield made


@pytest.fixture(params=CONFINED)
async def confined(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[StdioWorld]:
    async with stdio_world(tmp_path, request.param) as made:
        yield made


async def _names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


def _text(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


async def test_the_time_server_tells_the_time(world: StdioWorld):
    async with world.client(python_server("mcp-server-time")) as client:
        assert await _names(client) == {"get_current_time", "convert_time"}
        told = await client.call_tool("get_current_time", {"timezone": "Asia/Tokyo"})
        assert '"timezone": "Asia/Tokyo"' in _text(told)


async def test_the_git_server_reads_a_repository_of_the_workspace(confined: StdioWorld):
    git = ("git", "init", "-q", "-b", "trunk", str(confined.workspace))
    await asyncio.to_thread(subprocess.run, git, check=True)
    settings = {"GIT_CONFIG_NOSYSTEM": "1"}  # of the machine, which Landlock closes and git insists on
    async with confined.client(python_server("mcp-server-git"), workspace=True, env=settings) as client:
        assert "git_status" in await _names(client)
        told = await client.call_tool("git_status", {"repo_path": str(confined.workspace)})
        assert "On branch trunk" in _text(told)


async def test_the_fetch_server_reaches_nothing_without_hosts(confined: StdioWorld):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        async with confined.client(python_server("mcp-server-fetch"), "--ignore-robots-txt") as client:
            assert await _names(client) == {"fetch"}
            assert (await client.call_tool("fetch", {"url": url})).is_error
        with pytest.raises(BlockingIOError):  # nobody has come
            listener.accept()


async def test_the_everything_server_adds(world: StdioWorld):
    async with world.client(*node_server("mcp-server-everything")) as client:
        assert "get-sum" in await _names(client)
        assert "5" in _text(await client.call_tool("get-sum", {"a": 2, "b": 3}))
