"""write_file: the whole content of a file of the workspace."""

import asyncio
from typing import Annotated

from everloop.core.errors import ToolError
from everloop.core.tool import CallContext, Effect, Tool, tool

from .workspace import Workspace


def write_file_tool(workspace: Workspace) -> Tool:
    @tool(Effect.IDEMPOTENT)
    async def write_file(
        path: Annotated[str, "Path in the workspace"],
        content: Annotated[str, "The whole new content of the file"],
        context: CallContext,
    ) -> str:
        """Write a text file: create it, with the folders above it, or replace all that it holds."""
        data = encoded(content)
        await asyncio.to_thread(workspace.replace, path, data, context.key)
        return f"Wrote {len(data)} bytes to {path}."

    return write_file


def encoded(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ToolError("the text holds half of a character (a lone surrogate), which no file can hold") from error
