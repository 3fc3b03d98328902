"""What a folder is, beside its name: so that what was allowed in it is allowed in no other.

A name says little: a link leads elsewhere, and a folder can be moved away and another put in its place. A folder is
known by its device and inode, and by when it was made, for the number of one that is gone may be given to another.
"""

import os
from functools import cache
from pathlib import Path

from ..core.tool import Ground
from ..errors import ToolError
from .workspace import Workspace

TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from collections.abc import Callable

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_EMPTY_PATH, _BIRTH, _SIZE = 0x1000, 0x800, 256  # of statx
MOVED = "{!r} is not the folder any more that was allowed; look where you are, and call it again to ask anew"


def grounds_of(workspace: Workspace, path: str) -> tuple[Ground, ...]:
    """A folder after all that lie above it in the workspace, by their names without links; () when a name of them
    cannot be shown. Raises ToolError."""
    with workspace.folder(".") as root, workspace.folder(path) as folder:
        names = _names(workspace, path, root, folder)
        if not "".join(names).isprintable():
            return ()
        try:
            grounds = _walk(root, names)
        except OSError as error:
            raise ToolError(MOVED.format(path)) from error
        if grounds[-1].identity != identity_of(folder):
            raise ToolError(MOVED.format(path))
        return grounds


def _names(workspace: Workspace, path: str, root: int, folder: int) -> tuple[str, ...]:
    """Where it really is; where that cannot be asked, no link was followed."""
    try:
        above, place = (os.readlink(f"/proc/self/fd/{fd}") for fd in (root, folder))
    except OSError:
        return workspace.parts_of(path)
    if not Path(place).is_relative_to(above):
        raise ToolError(MOVED.format(path))
    return Path(place).relative_to(above).parts


def _walk(root: int, names: tuple[str, ...]) -> tuple[Ground, ...]:
    """Down from the root, following no link. Raises OSError."""
    grounds = [Ground("", identity_of(root))]
    at = os.dup(root)
    try:
        for count, name in enumerate(names, 1):
            below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
            grounds.append(Ground("/".join(names[:count]), identity_of(at)))
    finally:
        os.close(at)
    return tuple(grounds)


def identity_of(folder: int) -> str:
    """Its device, its inode, and when it was made, as far as the system tells."""
    status = os.fstat(folder)
    return f"{status.st_dev}:{status.st_ino}:{getattr(status, 'st_birthtime', None) or _asking_birth()(folder)}"


@cache
def _asking_birth() -> "Callable[[int], str]":
    """How this system tells when something was made: not at all, or by `statx`."""
    try:
        import ctypes  # not before a person is asked about a command

        statx = ctypes.CDLL(None, use_errno=True).statx
    except (ImportError, AttributeError):
        return lambda folder: ""

    def birth(folder: int) -> str:
        told = ctypes.create_string_buffer(_SIZE)
        failed = statx(ctypes.c_int(folder), b"", ctypes.c_int(_EMPTY_PATH), ctypes.c_uint(_BIRTH), told)
        mask = int.from_bytes(told.raw[:4], "little")
        return told.raw[80:92].hex() if not failed and mask & _BIRTH else ""

    return birth
