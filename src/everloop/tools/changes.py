"""Changing files so that it can be undone: what a file held is kept before it is changed.

Each change is told with the result of its call, and stands with it in the log, which is how an undo finds it. A call
that was killed after it had changed a file is run again and finds nothing to do. What it had kept is then known from a
mark on the file itself, which came there with the content.
"""

import asyncio
import re
from hashlib import sha256

from ..core.tool import FileChange
from ..errors import StoreFull, ToolError
from ..ports import Files
from ..ports.tools import CallContext
from .kinds import HEAD
from .marks import MARKS, Marks
from .workspace import Seen, Workspace

LARGEST_KEPT = 5 * 1024 * 1024
SHORT_SHA = 12


class Changes:
    """Changes the files of a workspace, and keeps what they held. Everything raises ToolError."""

    def __init__(self, workspace: Workspace, files: Files, marks: Marks = MARKS) -> None:
        self._workspace = workspace
        self._files = files
        self._marks = marks
        self.scene = workspace.name

    async def is_tainted(self, seen: Seen) -> bool:
        """Whether strangers had a say in what was seen: then they have one in what is made of it."""
        return seen.status is not None and await self._marks.is_tainted(seen.status)

    async def quoting(self, error: ToolError, path: str, seen: Seen) -> ToolError:
        """An error that may quote the file, with whose words these are."""
        if seen.status is not None:
            error.origin = await self._marks.origin_of(path, seen.status, (seen.content or b"")[:HEAD])
        return error

    async def look(self, path: str, most: int = LARGEST_KEPT) -> Seen:
        return await asyncio.to_thread(self._workspace.look, path, most)

    async def write(self, path: str, content: bytes, seen: Seen, context: CallContext) -> FileChange:
        """Replace what was seen by `content`, if it is still there."""
        before = await self._keep(path, seen, context.principal)
        mark = f"{_name(context.key)} {before}"
        await asyncio.to_thread(self._workspace.replace, path, content, context.key, seen, mark)
        return FileChange(path, before, sha256(content).hexdigest()[:SHORT_SHA])

    async def remove(self, path: str, seen: Seen, context: CallContext) -> FileChange:
        before = await self._keep(path, seen, context.principal)
        await asyncio.to_thread(self._workspace.remove, path, seen)
        return FileChange(path, before, "gone")

    def made(self, path: str, seen: Seen, context: CallContext) -> FileChange | None:
        """The change that an earlier attempt of this very call made to the file, if it did."""
        key, _, before = seen.mark.partition(" ")
        return FileChange(path, before, seen.sha[:SHORT_SHA]) if key == _name(context.key) and seen.sha else None

    async def _keep(self, path: str, seen: Seen, owner: str) -> str:
        if not seen.exists:
            return "new"
        if seen.content is None or len(seen.content) > LARGEST_KEPT:
            return "not kept"
        try:
            return await self._files.put(owner, seen.content, path)
        except (StoreFull, OSError) as error:
            raise ToolError(f"what {path!r} holds could not be kept, so it was not changed ({error})") from error


def check_sha(path: str, seen: Seen, expected: str | None) -> None:
    """Refuse to change a file that is not what the model believes. Raises ToolError."""
    if expected is None:
        return
    if not expected:
        if seen.exists:
            raise ToolError(f"{path!r} already exists{_sha(seen)}; leave expected_sha out to replace it")
        return
    if not re.fullmatch(f"[0-9a-fA-F]{{{SHORT_SHA},64}}", expected):
        raise ToolError(
            f"expected_sha is at least {SHORT_SHA} digits of a sha256, or empty if there must be no file yet"
        )
    if not seen.exists:
        raise ToolError(f"there is no {path!r}, so its sha is not {expected}; nothing was changed")
    if not seen.sha.startswith(expected.lower()):
        raise ToolError(f"{path!r} is not what was expected{_sha(seen)}: read it again. Nothing was changed")


def _sha(seen: Seen) -> str:
    return f" (its sha is {seen.sha[:SHORT_SHA]})" if seen.sha else " (it is too large for its sha to be compared)"


def _name(key: str) -> str:
    return sha256(key.encode()).hexdigest()[:SHORT_SHA]
