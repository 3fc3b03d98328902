"""write_file: the whole content of a file of the workspace."""

from typing import Annotated

from ..core.people import Role
from ..core.tool import Effect
from ..errors import ToolError
from ..ports.tools import CallContext, Result, Shown, Tool
from .changes import LARGEST_KEPT, Changes, check_sha
from .decorator import tool

ExpectedSha = Annotated[str | None, "If its sha256 begins so; empty: if none is there"]


def write_file_tool(changes: Changes) -> Tool:
    @tool(Effect.IDEMPOTENT, permission=Role.USER, scene=changes.scene, undoable=True)
    async def write_file(
        path: Annotated[str, "Path in the workspace"],
        content: Annotated[str, "The whole content"],
        context: CallContext,
        expected_sha: ExpectedSha = None,
    ) -> Result:
        """Write a text file: create it, with its folders, or replace it."""
        return await write(changes, path, encoded(content), context, expected_sha)

    return write_file


async def write(
    changes: Changes, path: str, data: bytes, context: CallContext, expected_sha: str | None = None
) -> Result:
    """Put `data` at `path`, and what is said of it."""
    seen = await changes.look(path, max(LARGEST_KEPT, len(data)))
    if seen.content == data and seen.exists:
        change = changes.made(path, seen, context)
        if change is None:
            return f"{path} already holds this; nothing was changed."
    else:
        check_sha(path, seen, expected_sha)
        change = await changes.write(path, data, seen, context)
    return Shown(f"Wrote {len(data)} bytes to {path}.", changes=(change,))


def encoded(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ToolError("the text holds half of a character (a lone surrogate), which no file can hold") from error
