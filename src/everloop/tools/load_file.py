"""load_file: one of the person's own files into the workspace, where commands can work on it.

It is what somebody has sent, so it is a stranger's: the workspace counts as tainted while it is put there.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Annotated

from ..core.people import Role
from ..core.tool import Effect
from ..errors import PathRefused, ToolError
from ..ports import FileRecords, Files
from ..ports.tools import CallContext, Shown, Tool
from ..ports.workspace import OpenFile
from ..readings.filenames import plain_name
from .browse import QuotaOf, WorkspaceBrowser
from .decorator import tool
from .workspace import Workspace

_LARGEST = 1 << 40  # what is kept was small enough to be kept
_PIECE = 1 << 20
_KNOWN = 200  # of the person's latest files, among which a name is looked for
_TOLD = 10
_SECONDS = 600.0  # a large one, from far away


def load_file_tool(workspace: Workspace, files: Files, records: FileRecords, quota_of: QuotaOf | None = None) -> Tool:
    @tool(Effect.IDEMPOTENT, permission=Role.USER, scene=workspace.name, outside=True, seconds=_SECONDS)
    async def load_file(
        file: Annotated[str, "Its file:… reference, or its name"],
        context: CallContext,
        path: Annotated[str, "Where to put it; else under its own name"] = "",
        replace: Annotated[bool, "Replace a file that is there"] = False,
    ) -> Shown:
        """Bring a file that came with a message into the workspace."""
        owner = context.principal
        ref, name = await _meant(records, owner, file)
        browser = WorkspaceBrowser(workspace, files, owner, _LARGEST, quota_of)
        where = path or name
        try:
            async with files.open(owner, ref) as kept:
                if not await asyncio.to_thread(_holds, workspace, where, kept.size, kept.tag):
                    await browser.put(where, _pieces(kept), replace=replace)
        except PathRefused as error:
            more = "; give another path, or replace=true" if error.kind == "exists" else ""
            raise ToolError(f"{where!r}: {error}{more}") from error
        except FileNotFoundError as error:
            raise ToolError(await _unknown(records, owner, file)) from error
        except ValueError as error:
            raise ToolError(f"{file[:100]!r}: {error}") from error
        except OSError as error:
            raise ToolError(f"{file[:100]!r} cannot be read ({error.strerror})") from error
        return Shown(f"{where} is there now ({kept.size:,} bytes).", origin=name)

    return load_file


async def _meant(records: FileRecords, owner: str, file: str) -> tuple[str, str]:
    """The reference and the name of a file of this owner, as far as it is known by name. Raises ToolError."""
    known = await records.recorded_files(owner, limit=_KNOWN)
    if file.startswith("file:"):
        digits = file.strip().rstrip("….")
        return file, next((each.name for each in known if each.ref.startswith(digits)), plain_name(digits[:17]))
    found = next((each for each in known if each.name == plain_name(file)), None)
    if found is None:
        raise ToolError(await _unknown(records, owner, file))
    return found.ref, found.name


async def _unknown(records: FileRecords, owner: str, file: str) -> str:
    """Of another's file one hears what one hears of none."""
    known = [f"{each.name} ({each.ref[:17]})" for each in await records.recorded_files(owner, limit=_TOLD)]
    return f"there is no file {file[:100]!r} of this person; the latest are: {', '.join(known) or 'none'}"


def _holds(workspace: Workspace, path: str, size: int, digest: str) -> bool:
    """Whether an earlier attempt has put it there."""
    try:
        with workspace.opened(path) as (fd, status):
            return status.st_size == size and _digest(fd) == digest
    except ToolError:  # whatever is wrong with the path is said when it is written
        return False


def _digest(fd: int) -> str:
    found, at = sha256(), 0
    while piece := os.pread(fd, _PIECE, at):
        found.update(piece)
        at += len(piece)
    return found.hexdigest()


async def _pieces(file: OpenFile) -> AsyncIterator[bytes]:
    at = 0
    while at < file.size and (piece := await file.read(at, min(_PIECE, file.size - at))):
        yield piece
        at += len(piece)
