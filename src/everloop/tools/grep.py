"""grep: the lines of the workspace's files that fit a regular expression.

There are expressions that take Python years on one line, and while it searches it does nothing else. So it is done in
a process of its own, which is handed the folder and is ended when it takes too long.
"""

import asyncio
import os
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from ..core.people import Role
from ..core.tool import Effect
from ..errors import ToolError
from ..ports.skills import SkillFolders
from ..ports.tools import CallContext, Result, Shown, Tool
from .decorator import tool
from .find_files import glob_of
from .marks import MARKS, Marks
from .skill_paths import SkillPaths
from .walk import STRANGE
from .worker import run_apart
from .workspace import Workspace

if TYPE_CHECKING:
    from .grep_worker import GrepOptions

_SECONDS = 20.0
_EVER = 1e12  # seconds; JSON has no infinity


def grep_tool(
    workspace: Workspace,
    max_chars: int,
    seconds: float = _SECONDS,
    marks: Marks = MARKS,
    skills: SkillFolders | None = None,
) -> Tool:
    paths = SkillPaths(workspace, marks, skills)

    @tool(Effect.READ, seconds=seconds + 10, permission=Role.USER)
    async def grep(
        pattern: Annotated[str, "A regular expression (Python's)"],
        call: CallContext,
        path: Annotated[str, "Folder or file; or skill:NAME"] = ".",
        include: Annotated[str, "Such as src/**/*.{js,ts}"] = "",
        ignore_case: bool = False,
        context: Annotated[int, Meta(ge=0, le=20, description="Lines to show around each")] = 0,
        files_only: Annotated[bool, "Only name the files"] = False,
    ) -> Result:
        """Search files. Each line found is told as path:number:line."""
        if not pattern or len(pattern) > 5000:
            raise ToolError("the pattern is empty" if not pattern else "the pattern is longer than 5,000 characters")
        spot = await paths.find(path, call)
        from .grep_worker import GrepOptions  # what takes its time is loaded when it is used

        glob_of(spot.workspace, include)  # refuses what is no pattern
        fd, is_folder = await asyncio.to_thread(_open, spot.workspace, spot.path)
        try:
            above = "/".join(spot.workspace.parts_of(spot.path))
            wanted = GrepOptions(
                pattern=pattern,
                ignore_case=ignore_case,
                context=context,
                files_only=files_only,
                include="/".join(spot.workspace.parts_of(include)) or "**",
                fd=fd,
                is_folder=is_folder,
                above=f"{above}/" if is_folder and above else above,
                room=max_chars - 500,
                seconds=seconds * 0.9,
                hidden=spot.workspace.hidden,
                times=[(began, min(ended, _EVER)) for began, ended in await spot.marks.times()],
            )
            return _told(await _search(wanted, seconds))
        finally:
            os.close(fd)

    return grep


def _told(found: str) -> Result:
    """What was found, and in whose files, if these are a stranger's: a line that no file can hold names one."""
    lines = found.split("\n")
    strange = [line.removeprefix(STRANGE) for line in lines if line.startswith(STRANGE)]
    if not strange:
        return found
    return Shown("\n".join(line for line in lines if not line.startswith(STRANGE)), origin=strange[0])


def _open(workspace: Workspace, path: str) -> tuple[int, bool]:
    """A descriptor of a folder or a file, and whether it is a folder."""
    try:
        with workspace.folder(path) as fd:
            return os.dup(fd), True
    except ToolError:
        with workspace.opened(path) as (fd, _):
            return os.dup(fd), False


async def _search(wanted: "GrepOptions", seconds: float) -> str:
    request = msgspec.json.encode(wanted)
    ran = await run_apart("everloop.tools.grep_worker", request, seconds=seconds, fds=(wanted.fd,), most=1_000_000)
    if ran.problem:
        raise ToolError(ran.problem if "regular expression" in ran.problem else f"the search failed: {ran.problem}")
    found = ran.out.decode("utf-8", "replace").rstrip("\n")
    if not ran.late:
        return found
    found = f"{found}\n{STRANGE}what was searched" if found else found  # whose the last lines are was not told
    late = f"[incomplete: it was ended after {seconds:g} s; narrow the path, or write a simpler pattern]"
    return f"{found}\n{late}" if found else late
