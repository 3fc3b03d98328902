"""Taking back what a tool did to a file, from what was kept before it was changed.

A file is put back only if it still holds what the change left there. If it already holds what it held before, it was
put back by an attempt that was killed, or by someone else; either way there is nothing left to do.
"""

import asyncio

from ..core.tool import FileChange
from ..errors import ToolError
from ..ports import Files
from .workspace import Seen, Workspace

LARGEST = 64 * 1024 * 1024  # whose content is compared
CHANGED = "somebody has changed it since"
NOT_KEPT = "what it held before was too large to be kept"
LOST = "what it held before cannot be read any more"


class UndoFile:
    """Called with a change, a key that is the same over attempts, and whose call it was; says why it was left."""

    def __init__(self, workspace: Workspace, files: Files) -> None:
        self._workspace = workspace
        self._files = files

    async def __call__(self, change: FileChange, key: str, owner: str) -> str:
        if change.before == "not kept":
            return NOT_KEPT
        try:
            return await self._put_back(change, key, owner)
        except ToolError as error:
            return str(error)

    async def _put_back(self, change: FileChange, key: str, owner: str) -> str:
        seen = await asyncio.to_thread(self._workspace.look, change.path, LARGEST)
        if not _is_now(seen, change):
            return "" if _is_before(seen, change) else CHANGED
        if change.before == "new":
            await asyncio.to_thread(self._workspace.remove, change.path, seen)
            return ""
        try:
            content = await self._files.get(owner, change.before)
        except (OSError, ValueError):
            return LOST
        await asyncio.to_thread(self._workspace.replace, change.path, content, key, seen)
        return ""


def _is_now(seen: Seen, change: FileChange) -> bool:
    return not seen.exists if change.now == "gone" else bool(seen.sha) and seen.sha.startswith(change.now)


def _is_before(seen: Seen, change: FileChange) -> bool:
    return not seen.exists if change.before == "new" else f"file:{seen.sha}" == change.before
