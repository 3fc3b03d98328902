"""What a command has written, found by comparing the workspace before and after: it goes with the answer.

A look is bounded, and so is what is kept. Names that begin with a dot, and the folders of tools (`.git`,
`node_modules`, …), are not looked at: nobody asked for what is in there.
"""

import asyncio
import os
import time
from collections.abc import Mapping

from msgspec import Struct, structs

from ..core.message import Media
from ..errors import ToolError
from ..ports import KeepsFiles
from ..ports.tools import CallContext, Shown
from .send_file import keep
from .walk import SKIPPED
from .workspace import Workspace

MOST = 20_000  # names that are looked at
_SECONDS = 0.5
FILES = 10  # that go with one command's result
BYTES = 50_000_000  # all of them together
_NAMED = 5  # of what was left out


class Look(Struct, frozen=True):
    """What lay in a workspace: by its path, when it was changed, how large it is and which file it is. `cut`: there was
    more than is looked at."""

    files: Mapping[str, tuple[int, int, int]] = {}
    cut: bool = False


class ProducedFiles:
    """Looks before a command and after it."""

    def __init__(self, workspace: Workspace, keeper: KeepsFiles) -> None:
        self._workspace = workspace
        self._keeper = keeper

    async def look(self) -> Look:
        return await asyncio.to_thread(look, self._workspace)

    async def add(self, shown: Shown, before: Look, context: CallContext) -> Shown:
        """The result with what has been written since, and a word on what was left out."""
        after = await self.look()
        if before.cut or after.cut:
            return shown
        written = [path for path, status in after.files.items() if before.files.get(path) != status]
        if not written:
            return shown
        made, left = await self._kept(sorted(written, key=lambda path: (path.count("/"), path)), after, context)
        return structs.replace(shown, text=f"{shown.text.rstrip()}\n{_note(made, left)}", made=tuple(made))

    async def _kept(self, paths: list[str], after: Look, context: CallContext) -> tuple[list[Media], list[str]]:
        made: list[Media] = []
        left: list[str] = []
        room = BYTES
        for path in paths:
            size = after.files[path][1]
            if len(made) == FILES or size > room:
                left.append(path)
                continue
            try:
                media, size = await keep(self._workspace, self._keeper, path, context.principal)
            except ToolError:  # it is gone by now, or there is no room: it still lies in the workspace
                left.append(path)
                continue
            made.append(media)
            room -= size
        return made, left


def _note(made: list[Media], left: list[str]) -> str:
    given = f"with the answer go: {', '.join(media.name for media in made)}" if made else ""
    others = f"{', '.join(left[:_NAMED])}{f' and {len(left) - _NAMED} more' if len(left) > _NAMED else ''}"
    lacking = f"also written, and not sent: {others} (send_file sends one)" if left else ""
    return f"[{'; '.join(filter(None, (given, lacking)))}]".encode("utf-8", "replace").decode()


def look(workspace: Workspace) -> Look:
    found: dict[str, tuple[int, int, int]] = {}
    until = time.monotonic() + _SECONDS
    seen, waiting = 0, ["."]
    while waiting:
        above = waiting.pop()
        try:
            with workspace.folder(above) as fd, os.scandir(fd) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MOST or time.monotonic() > until:
                        return Look(cut=True)
                    if entry.name.startswith(".") or entry.name in SKIPPED or _is_strange(entry.name):
                        continue
                    path = entry.name if above == "." else f"{above}/{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
                    elif entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        found[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
        except (ToolError, OSError):  # gone meanwhile, or not to be seen
            continue
    return Look(found)


def _is_strange(name: str) -> bool:
    """A name that no tool could be told."""
    return any(ord(letter) < 32 or ord(letter) == 127 or "\ud800" <= letter <= "\udfff" for letter in name)
