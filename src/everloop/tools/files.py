"""The tools that work on the files of a workspace."""

from pathlib import Path

from ..ports import Files
from ..ports.skills import SkillFolders
from ..ports.tools import Tool
from .apply_patch import apply_patch_tool
from .changes import Changes
from .create_document import create_document_tool
from .edit_file import edit_file_tool
from .find_files import find_files_tool
from .grep import grep_tool
from .home import Home
from .list_dir import list_dir_tool
from .marks import MARKS, Marks
from .read_file import read_file_tool
from .workspace import Workspace
from .write_file import write_file_tool


def workspace_tools(
    root: Path, files: Files, max_chars: int = 8000, hidden: Home | None = None, marks: Marks = MARKS
) -> tuple[Tool, ...]:
    """The tools that read, find and change files inside `root`, none of which answers more than `max_chars`.

    What a file held before a change is kept in `files`. They do not see `hidden`, should it lie there. `marks` knows
    which files hold strangers' words.
    """
    return file_tools(Workspace(root, hidden=hidden), files, max_chars, marks)


def file_tools(
    workspace: Workspace, files: Files, max_chars: int, marks: Marks = MARKS, skills: SkillFolders | None = None
) -> tuple[Tool, ...]:
    """`skills` are those whose files can be read beside the workspace's."""
    changes = Changes(workspace, files, marks)
    return (
        read_file_tool(workspace, files, max_chars, marks, skills),
        write_file_tool(changes),
        edit_file_tool(changes),
        apply_patch_tool(workspace, changes),
        create_document_tool(changes),
        list_dir_tool(workspace, max_chars, marks, skills),
        find_files_tool(workspace, max_chars, marks, skills),
        grep_tool(workspace, max_chars, marks=marks, skills=skills),
    )
