"""Changing files so that it can be undone: what a file held is kept before it is changed.

Each change ends a tool's result with a line that says where the content before it is, which is how an undo finds it in
the log:

    [before: file:0123456789abcdef… | now: 89abcdef0123 | notes/a.txt]

`before` is a reference, or `new` (there was no file), or `not kept` (it was too large); `now` is the beginning of the
new content's sha256, or `gone`. A call that was killed after it had changed a file is run again and finds nothing to
do. What it had kept is then known from a mark on the file itself, which came there with the content.
"""

import asyncio
import re
from collections.abc import Iterable
from hashlib import sha256

from msgspec import Struct

from everloop.core.errors import StoreFull, ToolError
from everloop.core.ports import Files
from everloop.core.tool import CallContext

from .workspace import Seen, Workspace

LARGEST_KEPT = 5 * 1024 * 1024
SHORT_SHA = 12
_SHORT_REF = 21  # file: and 16 digits, which no two files of an owner share by chance
_LINE = re.compile(r"\[before: (new|not kept|file:[0-9a-f]{16,64})…? \| now: (gone|[0-9a-f]{12}) \| (.+)\]")


class Change(Struct, frozen=True):
    """A file that was changed."""

    path: str
    before: str  # file:…, new or not kept
    now: str  # the beginning of the sha, or gone

    @property
    def line(self) -> str:
        return (
            f"[before: {self.before}{'…' if self.before.startswith('file:') else ''} | now: {self.now} | {self.path}]"
        )


def changes_in(text: str) -> list[Change]:
    """The changes that a tool's result tells of, in order: only those lines at its end, where no file's content is."""
    found: list[Change] = []
    for line in reversed(text.split("\n")):
        if not (match := _LINE.fullmatch(line)):
            break
        found.insert(0, Change(match[3], match[1], match[2]))
    return found


def told(sentence: str, changes: Iterable[Change]) -> str:
    return "\n".join((sentence, *(change.line for change in changes)))


class Changes:
    """Changes the files of a workspace, and keeps what they held. Everything raises ToolError."""

    def __init__(self, workspace: Workspace, files: Files) -> None:
        self._workspace = workspace
        self._files = files

    async def look(self, path: str, most: int = LARGEST_KEPT) -> Seen:
        return await asyncio.to_thread(self._workspace.look, path, most)

    async def write(self, path: str, content: bytes, seen: Seen, context: CallContext) -> Change:
        """Replace what was seen by `content`, if it is still there."""
        before = await self._keep(path, seen, context.user)
        mark = f"{_name(context.key)} {before}"
        await asyncio.to_thread(self._workspace.replace, path, content, context.key, seen, mark)
        return Change(path, before, sha256(content).hexdigest()[:SHORT_SHA])

    async def remove(self, path: str, seen: Seen, context: CallContext) -> Change:
        before = await self._keep(path, seen, context.user)
        await asyncio.to_thread(self._workspace.remove, path, seen)
        return Change(path, before, "gone")

    def made(self, path: str, seen: Seen, context: CallContext) -> Change | None:
        """The change that an earlier attempt of this very call made to the file, if it did."""
        key, _, before = seen.mark.partition(" ")
        return Change(path, before, seen.sha[:SHORT_SHA]) if key == _name(context.key) and seen.sha else None

    async def _keep(self, path: str, seen: Seen, owner: str) -> str:
        if not seen.exists:
            return "new"
        if seen.content is None or len(seen.content) > LARGEST_KEPT:
            return "not kept"
        try:
            return (await self._files.put(owner, seen.content, path))[:_SHORT_REF]
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
