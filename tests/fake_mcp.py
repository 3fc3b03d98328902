"""MCP servers that are none: an McpClient whose servers a test describes, changes, breaks and asks what was called."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from everloop.errors import McpDown, ToolError
from everloop.ports.mcp import McpDefinition, McpHealth, McpOffer, McpPin, McpServer
from everloop.ports.tools import CallContext, Result, Shown


def described(tool: str, description: str = "", **more: Any) -> McpDefinition:
    """A tool as a server would list it."""
    raw = {"name": tool, "description": description or f"Does {tool}.", "inputSchema": {"type": "object"}, **more}
    return McpDefinition(tool, json.dumps(raw, sort_keys=True, separators=(",", ":")))


def reading(tool: str, description: str = "") -> McpDefinition:
    return described(tool, description, annotations={"readOnlyHint": True})


def offering(*definitions: McpDefinition, **more: Any) -> McpOffer:
    return McpOffer(definitions, "Fake", "1.0", "2025-06-18", **more)


class FakeMcp:
    """`offers` are what servers say, by their names; one that is `down` answers with that sentence."""

    def __init__(self, **offers: McpOffer) -> None:
        self.offers = dict(offers)
        self.down: dict[str, McpDown] = {}
        self.looked: list[str] = []
        self.called: list[tuple[str, str, dict[str, Any]]] = []
        self.ended: list[str] = []
        self.servers: dict[str, McpServer] = {}
        self.closed = False
        self._news: dict[str, McpOffer] = {}  # the latest of each
        self._is_news = asyncio.Event()

    def __call__(self) -> "FakeMcp":
        return self

    def say(self, server: str, offer: McpOffer) -> None:
        """From now on it lists this, and says so (`list_changed`)."""
        self.offers[server] = offer
        self._tell(server, offer)

    def _tell(self, server: str, offer: McpOffer) -> None:
        self._news[server] = offer
        self._is_news.set()

    def _offer(self, server: McpServer) -> McpOffer:
        if server.name in self.down:
            raise self.down[server.name]
        if server.name not in self.offers:
            raise McpDown(f"{server.name} is not there")
        self.servers[server.name] = server
        return self.offers[server.name]

    async def look(self, server: McpServer) -> McpOffer:
        self.looked.append(server.name)
        offer = self._offer(server)
        self._tell(server.name, offer)
        return offer

    async def call(self, server: McpServer, pin: McpPin, args: dict[str, Any], context: CallContext) -> Result:
        if pin.definition not in self._offer(server).definitions:
            raise ToolError(f"{pin.definition.tool} is not what was allowed")
        self.called.append((server.name, pin.definition.tool, args))
        return Shown(f"{pin.definition.tool} done", origin=f"MCP server {server.name}")

    async def resources(self, server: McpServer) -> str:
        self._offer(server)
        return f"resources of {server.name}"

    async def read(self, server: McpServer, uri: str) -> Result:
        self._offer(server)
        return Shown(f"{uri} of {server.name}", origin=f"MCP server {server.name}")

    async def prompts(self, server: McpServer) -> str:
        self._offer(server)
        return f"prompts of {server.name}"

    async def prompt(self, server: McpServer, name: str, args: Mapping[str, str]) -> Result:
        self._offer(server)
        if name != "greet":
            raise ToolError(f"there is no prompt {name}")
        return Shown(f"Please greet {args.get('who', 'everybody')}.", origin=f"MCP server {server.name}")

    async def changes(self) -> AsyncIterator[tuple[str, McpOffer]]:
        while True:
            await self._is_news.wait()
            self._is_news.clear()
            while self._news:
                yield self._news.popitem()

    def health(self, name: str) -> McpHealth:
        if name in self.down:
            return McpHealth("waiting", 5.0, str(self.down[name]), 2)
        return McpHealth("running", 5.0) if name in self.servers else McpHealth("idle")

    async def end(self, name: str) -> None:
        self.ended.append(name)
        self.servers.pop(name, None)

    async def close(self) -> None:
        self.closed = True
