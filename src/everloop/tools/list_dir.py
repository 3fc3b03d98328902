"""list_dir: what lies in a folder of the workspace."""

import asyncio
import os
from itertools import islice
from typing import Annotated

from msgspec import Meta

from everloop.core.people import Role
from everloop.core.tool import Effect, Tool, tool

from .workspace import Workspace

_INLINE = 500


def list_dir_tool(workspace: Workspace, max_chars: int) -> Tool:
    @tool(Effect.READ, local=True, permission=Role.USER)
    async def list_dir(
        path: Annotated[str, "Path in the workspace; . is the workspace itself"] = ".",
        offset: Annotated[int, Meta(ge=1, description="First entry to show, counted from 1")] = 1,
    ) -> str:
        """List a folder by name: folders end with /, links with @, files have their size in bytes."""
        page = _listed(workspace, path, offset, max_chars, _INLINE)
        if page is None:
            page = await asyncio.to_thread(_listed, workspace, path, offset, max_chars, None)
        return page or "[the folder is empty]"

    return list_dir


def _listed(workspace: Workspace, path: str, offset: int, max_chars: int, most: int | None) -> str | None:
    """A page of a folder; None if there are more than `most` entries in it."""
    with workspace.folder(path) as fd, os.scandir(fd) as found:
        entries = list(islice(found, most))
        if len(entries) == most:
            return None
        entries.sort(key=lambda entry: entry.name)
        return _page(entries, offset, max_chars)


def _page(entries: list[os.DirEntry[str]], offset: int, max_chars: int) -> str:
    lines: list[str] = []
    room = max_chars - 100
    for entry in entries[offset - 1 :]:
        line = _described(entry)
        room -= len(line) + 1
        if room < 0 and lines:
            break
        lines.append(line)
    last = offset - 1 + len(lines)
    if last < len(entries):
        lines.append(f"[entries {offset}-{last} of {len(entries)}; continue with offset={last + 1}]")
    elif offset > 1:
        lines.append(f"[the end; {len(entries)} entries]")
    return "\n".join(lines)


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
