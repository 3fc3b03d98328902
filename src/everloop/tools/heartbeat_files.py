"""Everybody's HEARTBEAT.md, as far as it is accepted, and the files that it has watched."""

import asyncio
import os
from collections.abc import Callable
from hashlib import file_digest
from pathlib import Path

from ..errors import ToolError
from ..ports.heartbeat import HEARTBEAT_FILE, FileStamp
from ..ports.permission import FileState
from .bootstrap import LONGEST
from .home import Home
from .house_prompt_files import HousePromptFiles
from .tainted import place_of
from .walk import Glob, Walk, printable
from .workspace import Workspace

MOST = 1000  # files that are watched
LARGEST = 50_000_000  # bytes of one whose content is looked at; of a larger one its size and time
SECONDS = 10.0  # for which files are looked for


class WatchedHeartbeats:
    def __init__(self, files: Callable[[], HousePromptFiles], folder_of: Callable[[str], Path], home: Home) -> None:
        """`folder_of` is somebody's workspace."""
        self._files = files
        self._folder_of = folder_of
        self._home = home

    def is_there(self, owner: str) -> bool:
        return os.path.lexists(self._folder_of(owner) / HEARTBEAT_FILE)

    async def read(self, owner: str) -> tuple[str | None, bool]:
        watched = self._files().at(place_of(self._folder_of(owner)))
        await watched.look()
        accepted = watched.accepted.get(HEARTBEAT_FILE, FileState())
        text = None if accepted.content is None else accepted.content.decode("utf-8-sig", "replace")[:LONGEST]
        return text, HEARTBEAT_FILE in watched.names

    async def stamps(self, owner: str, patterns: tuple[str, ...], known: dict[str, FileStamp]) -> dict[str, FileStamp]:
        workspace = Workspace(self._folder_of(owner), hidden=self._home)
        return await asyncio.to_thread(_stamps, workspace, patterns, known)


def _stamps(workspace: Workspace, patterns: tuple[str, ...], known: dict[str, FileStamp]) -> dict[str, FileStamp]:
    found: dict[str, FileStamp] = {}
    for pattern in patterns:
        for path in _paths(workspace, pattern):
            if len(found) < MOST and path not in found and (stamp := _stamp(workspace, path, known.get(path))):
                found[path] = stamp
    return found


def _paths(workspace: Workspace, pattern: str) -> list[str]:
    """A pattern that is none, or leads out of the workspace, fits nothing."""
    try:
        walk = Walk(Glob(pattern.removeprefix("./")), SECONDS, hidden=workspace.hidden)
        with workspace.folder(".") as root:
            paths = [each.path for each in walk.beneath(root) if each.entry.is_file(follow_symlinks=False)]
    except (ValueError, ToolError, OSError):
        return []
    return [path for path in paths if path == printable(path)]


def _stamp(workspace: Workspace, path: str, known: FileStamp | None) -> FileStamp | None:
    try:
        with workspace.opened(path) as (fd, status):
            size, at = status.st_size, status.st_mtime_ns
            if known and (known.size, known.at) == (size, at):
                return known
            if size > LARGEST:
                return FileStamp(size, at, f"{size} bytes of {at}")
            with open(fd, "rb", closefd=False) as file:
                return FileStamp(size, at, file_digest(file, "sha256").hexdigest()[:16])
    except (ToolError, OSError):
        return None  # gone meanwhile, or not to be read
