"""The SKILL.md files of a workspace, `skills/<name>/SKILL.md`, looked at by their times and sizes as Bootstrap does."""

import os
import stat
import time

from ..errors import ToolError
from ..ports.permission import FileState
from .workspace import Workspace

FOLDER, FILE = "skills", "SKILL.md"
MOST = 100  # folders that are looked at
BYTES = 80_000
_FRESH = 1_000_000_000  # ns, as in bootstrap.py

_Stamp = tuple[int, int, int, int] | None


def is_skill_file(name: str) -> bool:
    return name.startswith(f"{FOLDER}/")


def skill_name(file: str) -> str:
    """`skills/github/SKILL.md` is github's."""
    return file.split("/")[1]


class SkillFiles:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._folder = os.path.join(workspace.name, FOLDER)
        self._above: _Stamp = None
        self._seen: dict[str, _Stamp] = {}
        self._fresh = True

    def is_stale(self) -> bool:
        if self._above is None and not os.access(self._folder, os.F_OK):
            return False
        return self._fresh or _stamp(self._folder) != self._above or self._stamps(self._seen) != self._seen

    def contents(self) -> dict[str, FileState]:
        """What stands in each, as far as prompts have room for it; a folder without one says nothing."""
        self._above = _stamp(self._folder)  # first: what changes after that is seen the next time
        self._seen = self._stamps(self._names()) if self._above else {}
        stamps = [self._above, *self._seen.values()]
        self._fresh = any(each and abs(time.time_ns() - each[0]) < _FRESH for each in stamps)
        found = {f"{FOLDER}/{name}/{FILE}": self._read(f"{FOLDER}/{name}/{FILE}") for name in self._seen}
        return {name: state for name, state in found.items() if state != FileState()}

    def _names(self) -> list[str]:
        try:
            with self._workspace.folder(FOLDER) as fd:
                names = [name for name in os.listdir(fd) if not name.startswith(".") and _is_shown(name)]
                return sorted(name for name in names if _is_folder(name, fd))[:MOST]
        except (ToolError, OSError):
            return []

    def _stamps(self, names: "dict[str, _Stamp] | list[str]") -> dict[str, _Stamp]:
        return {name: _stamp(f"{self._folder}/{name}/{FILE}") for name in names}

    def _read(self, path: str) -> FileState:
        link = _link_at(os.path.join(self._workspace.name, path))
        try:
            with self._workspace.opened(path) as (fd, status), open(fd, "rb", closefd=False) as file:
                return FileState(file.read(BYTES), link, status.st_nlink)
        except ToolError:
            return FileState(None, link)


def _is_shown(name: str) -> bool:
    return name.isprintable() and len(name) <= 100


def _is_folder(name: str, above: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=above).st_mode)
    except OSError:
        return False


def _link_at(path: str) -> str:
    """Where the file leads that is a link, or the folder that it lies in."""
    for each in (path, os.path.dirname(path)):
        try:
            return os.readlink(each)
        except OSError:  # it is none
            pass
    return ""


def _stamp(path: str) -> _Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns
