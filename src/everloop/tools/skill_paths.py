"""`skill:NAME/path`: how tools read the files of a skill, wherever it lies.

Only those of skills that whoever asks has, and only what lies in the skill's own folder: a path is opened beneath it,
as one of the workspace is beneath that.
"""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ..errors import ToolError
from ..ports.skills import SkillFolders, SkillPlace
from ..ports.tools import CallContext
from .marks import MARKS, Marks
from .skill_files import FILE, FOLDER
from .workspace import Workspace

PREFIX = "skill:"
VARIABLE = "SKILL_"


class FileSpot(Struct, frozen=True):
    """Where a path leads: into which folder, and whose marks hold there. `text` is what a person has accepted of the
    file, where that counts and not what lies there."""

    workspace: Workspace
    path: str
    marks: Marks
    text: bytes | None = None


class SkillPaths:
    """Understands the paths that tools are given. Without `folders` there are no skills."""

    def __init__(self, workspace: Workspace, marks: Marks, folders: SkillFolders | None = None) -> None:
        self._workspace = workspace
        self._marks = marks
        self._folders = folders

    async def find(self, path: str, context: CallContext) -> FileSpot:
        """Raises ToolError for a skill that whoever asks does not have."""
        if not path.startswith(PREFIX):
            return FileSpot(self._workspace, path, self._marks)
        name, _, rest = path.removeprefix(PREFIX).strip("/").partition("/")
        place = (await self.all(context)).get(name)
        if place is None:
            raise ToolError(f"there is no skill {name[:64]!r} here; list_dir with the path skill: shows what there is")
        if not place.own:
            return FileSpot(Workspace(Path(place.folder)), rest or ".", MARKS)
        text = place.text if rest.strip("./") == FILE else None
        return FileSpot(self._workspace, f"{FOLDER}/{name}/{rest}", self._marks, text)

    async def all(self, context: CallContext) -> Mapping[str, SkillPlace]:
        return await self._folders.places(context.principal, context.role) if self._folders else {}


def variable_of(name: str) -> str:
    """In which commands find the folder of a skill."""
    return f"{VARIABLE}{name.upper().replace('-', '_')}"
