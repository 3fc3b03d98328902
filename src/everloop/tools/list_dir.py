"""list_dir: what lies in a folder of the workspace."""

import asyncio
import os
from contextlib import suppress
from itertools import islice
from typing import Annotated, NamedTuple

from msgspec import Meta

from ..core.people import Role
from ..core.tool import Effect
from ..ports.skills import SkillFolders
from ..ports.tools import CallContext, Result, Shown, Tool
from .decorator import tool
from .marks import MARKS, Marks, Times, lies_in, speaks
from .skill_paths import PREFIX, SkillPaths
from .workspace import Workspace

_INLINE = 500


def list_dir_tool(
    workspace: Workspace, max_chars: int, marks: Marks = MARKS, skills: SkillFolders | None = None
) -> Tool:
    paths = SkillPaths(workspace, marks, skills)

    @tool(Effect.READ, local=True, permission=Role.USER)
    async def list_dir(
        context: CallContext,
        path: Annotated[str, "Path in the workspace; . is the workspace itself, skill: all skills"] = ".",
        offset: Annotated[int, Meta(ge=1, description="First to show, from 1")] = 1,
    ) -> Result:
        """List a folder: folders end with /, links with @, files have their size in bytes."""
        if path.rstrip("/") == PREFIX:
            return "\n".join(f"{name}/" for name in await paths.all(context)) or "[there are no skills]"
        spot = await paths.find(path, context)
        page = _listed(spot.workspace, spot.path, offset, max_chars, _INLINE)
        if page is None:
            page = await asyncio.to_thread(_listed, spot.workspace, spot.path, offset, max_chars, None)
        assert page is not None  # without a limit there is always one
        if not any(map(speaks, page.names)):
            return page.text or "[the folder is empty]"
        origin = await asyncio.to_thread(_whose, spot.workspace, spot.path, page.names, await spot.marks.times())
        return Shown(page.text, origin=origin) if origin else page.text

    return list_dir


class _Listing(NamedTuple):
    text: str
    names: list[str]


def _whose(workspace: Workspace, path: str, names: list[str], times: Times) -> str:
    """A name that tells something and that strangers had a say in; "" if there is none."""
    with workspace.folder(path) as fd:
        for name in filter(speaks, names):
            with suppress(OSError):
                if lies_in(os.stat(name, dir_fd=fd, follow_symlinks=False).st_ctime, times):
                    return f"a name in {path}"
    return ""


def _listed(workspace: Workspace, path: str, offset: int, max_chars: int, most: int | None) -> _Listing | None:
    """A page of a folder; None if there are more than `most` entries in it."""
    with workspace.folder(path) as fd, os.scandir(fd) as found:
        entries = list(islice(found, most))
        if len(entries) == most:
            return None
        entries.sort(key=lambda entry: entry.name)
        return _page(entries, offset, max_chars)


def _page(entries: list[os.DirEntry[str]], offset: int, max_chars: int) -> _Listing:
    lines: list[str] = []
    room = max_chars - 100
    for entry in entries[offset - 1 :]:
        line = _described(entry)
        room -= len(line) + 1
        if room < 0 and lines:
            break
        lines.append(line)
    last = offset - 1 + len(lines)
    names = [entry.name for entry in entries[offset - 1 : last]]
    if last < len(entries):
        lines.append(f"[entries {offset}-{last} of {len(entries)}; continue with offset={last + 1}]")
    elif offset > 1:
        lines.append(f"[the end; {len(entries)} entries]")
    return _Listing("\n".join(lines), names)


def _described(entry: os.DirEntry[str]) -> str:
    # A name may hold anything but a slash: a line break in it must not look like another entry.
    name = entry.name if entry.name.isprintable() else ascii(entry.name)
    if entry.is_symlink():
        return f"{name}@"
    if entry.is_dir(follow_symlinks=False):
        return f"{name}/"
    try:
        return f"{name}  {entry.stat(follow_symlinks=False).st_size}"
    except FileNotFoundError:
        return name  # removed while we were looking
