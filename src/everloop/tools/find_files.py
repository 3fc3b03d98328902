"""find_files: the files of the workspace whose paths fit a pattern."""

import asyncio
import os
from typing import Annotated, Literal

from msgspec import Meta

from ..core.people import Role
from ..core.tool import Effect
from ..errors import ToolError
from ..ports.skills import SkillFolders
from ..ports.tools import CallContext, Result, Shown, Tool
from .decorator import tool
from .marks import MARKS, Marks, Times, lies_in, speaks
from .skill_paths import SkillPaths
from .walk import Glob, Walk, WalkedFile, printable
from .workspace import Workspace

_SECONDS = 20.0
_MOST = 20_000


def find_files_tool(
    workspace: Workspace, max_chars: int, marks: Marks = MARKS, skills: SkillFolders | None = None
) -> Tool:
    paths = SkillPaths(workspace, marks, skills)

    @tool(Effect.READ, seconds=_SECONDS + 10, permission=Role.USER)
    async def find_files(
        pattern: Annotated[str, "As docs/**/*.{md,txt}; without a slash, in every folder"],
        context: CallContext,
        path: Annotated[str, "Folder; or skill:NAME"] = ".",
        order: Annotated[Literal["name", "newest"], "What comes first"] = "name",
        offset: Annotated[int, Meta(ge=1, description="First to show, from 1")] = 1,
    ) -> Result:
        """Find files by name, in a folder and all below it. Links end with @ and are not followed."""
        spot = await paths.find(path, context)
        path, times, speaking = spot.path, await spot.marks.times(), set[str]()
        glob = glob_of(spot.workspace, pattern)
        page = await asyncio.to_thread(
            _found, spot.workspace, glob, path, order == "newest", offset, max_chars, times, speaking
        )
        told = next((line for line in page.split("\n") if line.removesuffix("@") in speaking), "")
        return Shown(page, origin=f"a name in {path}") if told else page

    return find_files


def glob_of(workspace: Workspace, pattern: str) -> Glob:
    """The pattern, which like a path cannot lead out of the workspace."""
    if len(pattern) > 1000:
        raise ToolError("the pattern is longer than 1,000 characters")
    if pattern.startswith("/"):
        raise ToolError(f"{pattern!r}: a pattern is relative to the folder that is searched")
    parts = workspace.parts_of(pattern)
    try:
        return Glob("/".join(parts) or "**")
    except ValueError as error:
        raise ToolError(str(error)) from error


def _found(
    workspace: Workspace,
    glob: Glob,
    path: str,
    newest: bool,
    offset: int,
    max_chars: int,
    times: Times,
    speaking: set[str],
) -> str:
    """A page of what was found. `speaking` is told the names that say something and that strangers had a say in."""
    walk = Walk(glob, _SECONDS, hidden=workspace.hidden)
    above = "".join(f"{part}/" for part in workspace.parts_of(path))
    lines: list[tuple[float, str]] = []
    with workspace.folder(path) as folder:
        for found in walk.beneath(folder):
            if len(lines) == _MOST:
                walk.cut = f"only the first {_MOST:,} were gathered; narrow the pattern"
                break
            line = _described(above, found)
            lines.append((-_changed(found) if newest else 0.0, line))
            if times and speaks(found.path) and lies_in(_changed(found, inode=True), times):
                speaking.add(line.removesuffix("@"))
    if newest:
        lines.sort()
    return _page([line for _, line in lines], offset, max_chars, walk)


def _page(lines: list[str], offset: int, max_chars: int, walk: Walk) -> str:
    shown: list[str] = []
    room = max_chars - 400
    for line in lines[offset - 1 :]:
        room -= len(line) + 1
        if room < 0 and shown:
            break
        shown.append(line)
    last = offset - 1 + len(shown)
    if not lines:
        shown.append("[no file fits]")
    elif last < len(lines):
        shown.append(f"[files {offset}-{last} of {len(lines)}; continue with offset={last + 1}]")
    elif offset > 1:
        shown.append(f"[the end; {len(lines)} files]")
    return "\n".join((*shown, *notes(walk)))


def notes(walk: Walk) -> list[str]:
    """What a walk did not look at."""
    passed = f"[not searched, unless named: {', '.join(sorted(walk.skipped))}]"
    return [*([passed] if walk.skipped else []), *([f"[incomplete: {walk.cut}]"] if walk.cut else [])]


def _described(above: str, found: WalkedFile) -> str:
    return f"{printable(above + found.path)}{'@' if found.entry.is_symlink() else ''}"


def _changed(found: WalkedFile, inode: bool = False) -> float:
    try:
        status = os.stat(found.entry.name, dir_fd=found.folder, follow_symlinks=False)
        return status.st_ctime if inode else status.st_mtime
    except OSError:
        return 0.0  # removed while we were looking
