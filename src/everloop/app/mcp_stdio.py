"""everloop as an MCP server for the one program that has started it."""

from collections.abc import AsyncIterator
from pathlib import Path

from .. import __version__
from ..gateway.mcp.stdio import Write, serve_stdio
from . import open_own_desk


async def serve_mcp(home: Path, lines: AsyncIterator[bytes], write: Write) -> None:
    """Until there are no more lines. Raises what `open` raises."""
    async with open_own_desk(home) as desk:
        await serve_stdio(desk, __version__, lines, write)
