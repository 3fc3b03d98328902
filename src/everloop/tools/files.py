"""The tools that work on the files of a workspace."""

from pathlib import Path

from everloop.core.ports import Files
from everloop.core.tool import Tool

from .edit_file import edit_file_tool
from .list_dir import list_dir_tool
from .read_file import read_file_tool
from .workspace import Workspace
from .write_file import write_file_tool


def workspace_tools(root: Path, files: Files, max_chars: int = 8000) -> tuple[Tool, ...]:
    """read_file, write_file, edit_file and list_dir inside `root`, none of which answers more than `max_chars`."""
    workspace = Workspace(root)
    return (
        read_file_tool(workspace, files, max_chars),
        write_file_tool(workspace),
        edit_file_tool(workspace),
        list_dir_tool(workspace, max_chars),
    )
