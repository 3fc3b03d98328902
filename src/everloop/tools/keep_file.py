"""Keeps what a file holds after a call has changed it, so that people can have it as it was then."""

import asyncio
import logging

from ..core.message import Media
from ..core.tool import FileChange
from ..errors import NoRoom, StoreFull, ToolError
from ..ports import Files
from ..readings.media import LARGEST_IMAGE, mime_of
from .workspace import Workspace

_log = logging.getLogger("everloop.tools")


class FileKeeper:
    """Called with a change and whose call it was. None if there is nothing to keep: the file is gone, is more than
    anyone is sent, or holds something else by now."""

    def __init__(self, workspace: Workspace, files: Files) -> None:
        self._workspace = workspace
        self._files = files

    async def __call__(self, change: FileChange, owner: str) -> Media | None:
        if change.now == "gone":
            return None
        try:
            seen = await asyncio.to_thread(self._workspace.look, change.path, LARGEST_IMAGE)
            if seen.content is None or not seen.sha.startswith(change.now):
                return None
            file = await self._files.put(owner, seen.content, change.path)
        except (ToolError, NoRoom, StoreFull, OSError) as error:  # the change stands, and the model is told of that
            _log.warning("%s cannot be kept: %s", change.path, error)
            return None
        name = change.path.encode("utf-8", "replace").decode()
        return Media(file, mime_of(seen.content), name, owner)
