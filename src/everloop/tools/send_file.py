"""send_file: a file of the workspace, given to the person with the answer."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Annotated

from ..core.message import Media
from ..core.people import Role
from ..core.tool import Effect
from ..errors import NoRoom, StoreFull, ToolError
from ..ports import KeepsFiles
from ..ports.tools import CallContext, Shown, Tool
from .decorator import tool
from .workspace import Workspace

_PIECE = 1 << 20
_SECONDS = 600.0


def send_file_tool(workspace: Workspace, keeper: KeepsFiles) -> Tool:
    @tool(Effect.IDEMPOTENT, permission=Role.USER, scene=workspace.name, seconds=_SECONDS)
    async def send_file(path: Annotated[str, "Path in the workspace"], context: CallContext) -> Shown:
        """Give a file of the workspace to the person, with your answer."""
        media, size = await keep(workspace, keeper, path, context.principal)
        return Shown(f"{path} ({size:,} bytes, {media.mime}) goes with the answer.", made=(media,))

    return send_file


async def keep(workspace: Workspace, keeper: KeepsFiles, path: str, owner: str) -> tuple[Media, int]:
    """What a file of the workspace holds, kept for its person, and how much that is. Raises ToolError."""
    with workspace.opened(path) as (fd, status):
        if status.st_size > keeper.largest:
            raise ToolError(f"{path!r} has {status.st_size:,} bytes; at most {keeper.largest:,} can be sent")
        try:
            record = await keeper.keep(owner, _pieces(fd), path)
        except (NoRoom, StoreFull, OSError) as error:
            raise ToolError(f"{path!r} cannot be kept, so it was not sent ({error})") from error
    return Media(record.ref, record.mime, path.encode("utf-8", "replace").decode(), owner), record.size


async def _pieces(fd: int) -> AsyncIterator[bytes]:
    at = 0
    while piece := await asyncio.to_thread(os.pread, fd, _PIECE, at):
        yield piece
        at += len(piece)
