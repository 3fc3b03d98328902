"""/mcp: everloop as a server of the Model Context Protocol. What answers there (`door`) is loaded with the first
request: few gateways are asked by an MCP client."""

from functools import cache
from typing import TYPE_CHECKING

from aiohttp import web

from ..access.permissions import KNOWN, Route
from ..ports import McpAgent

if TYPE_CHECKING:
    from .door import McpDoor


def routes(agent: McpAgent, version: str) -> list[Route]:
    @cache
    def door() -> "McpDoor":
        from .door import McpDoor

        return McpDoor(agent, version)

    async def post(request: web.Request) -> web.StreamResponse:
        return await door().post(request)

    async def refuse(request: web.Request) -> web.StreamResponse:
        return await door().refuse(request)

    return [
        Route("POST", "/mcp", post, KNOWN),  # each tool has its own permission
        Route("GET", "/mcp", refuse, KNOWN, allows_head=False),
        Route("DELETE", "/mcp", refuse, KNOWN),
    ]
