"""Small wires for tests: to the evil server as a plain process, and to servers of the SDK in this process."""

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from mcp.client._memory import InMemoryTransport
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.mcpserver import MCPServer

from everloop.core.people import Role
from everloop.core.tool import Effect
from everloop.ports.mcp import McpDefinition, McpPin, McpServer
from everloop.ports.tools import CallContext
from everloop.runtime.clock import MACHINE
from everloop.tools.mcp.client import McpConnections
from everloop.tools.mcp.questions import AnsweredBy

EVIL = Path(__file__).with_name("evil.py")
CONTEXT = CallContext("t:1:0", "t", "cli:direct", "owner", role=Role.OWNER)


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"It does {name}.", "inputSchema": {"type": "object"}, **more}


class Processes:
    """Each server is a process, as it is configured; `opened` tells how often one was. `said` is what they say beside
    their messages."""

    def __init__(self, said: str = "") -> None:
        self.opened: list[str] = []
        self.said = said

    def open(self, server: McpServer) -> AbstractAsyncContextManager[Any]:
        self.opened.append(server.name)
        program, *args = server.command
        return stdio_client(StdioServerParameters(command=program, args=args))

    def last_said(self, server: McpServer) -> str:
        return self.said


class InThisProcess:
    """Servers of the SDK, by their names, each anew for each connection."""

    def __init__(self, servers: Mapping[str, MCPServer]) -> None:
        self._servers = servers

    def open(self, server: McpServer) -> AbstractAsyncContextManager[Any]:
        return InMemoryTransport(self._servers[server.name])


def evil(folder: Path, *tools: dict[str, Any], how: str = "plain", **more: Any) -> McpServer:
    """A server that lists these tools."""
    (folder / "tools.json").write_text(json.dumps(tools))
    named = {"name": "evil", "seconds": 20.0, **more}
    return McpServer(command=(sys.executable, str(EVIL), str(folder), how), **named)


def called(folder: Path) -> list[str]:
    file = folder / "called"
    return [line for line in file.read_text().splitlines() if line != "listed"] if file.exists() else []


def pin(server: McpServer, definition: McpDefinition, effect: Effect = Effect.UNSAFE) -> McpPin:
    return McpPin(server=server.name, definition=definition, effect=effect, setup=server.setup, by="owner")


@asynccontextmanager
async def connections(wires: Any = None, **more: Any) -> AsyncIterator[McpConnections]:
    given = {"wires": wires or Processes(), "questions": AnsweredBy(), "clock": MACHINE, **more}
    client = McpConnections(**given)
    try:
        yield client
    finally:
        await client.close()


async def allowed(client: McpConnections, server: McpServer) -> dict[str, McpPin]:
    """All that a server offers, pinned."""
    offer = await client.look(server)
    return {each.tool: pin(server, each) for each in offer.definitions}


class Answers:
    """Asked a person or a model, it says this."""

    def __init__(self, answer: dict[str, Any] | None) -> None:
        self._answer = answer
        self.asked: list[tuple[Any, ...]] = []

    async def ask_person(self, *asked: Any) -> dict[str, Any] | None:
        self.asked.append(asked)
        return self._answer

    async def ask_model(self, *asked: Any) -> dict[str, Any] | None:
        self.asked.append(asked)
        return self._answer
