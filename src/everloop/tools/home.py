"""everloop's own home, of which no tool may see anything: whoever could write the settings or read the keys in there
could do everything.

It is known by what it is, device and inode, and not by its path: a folder above it may be renamed, a link may lead to
it, another folder may be put in its place. It is held open for as long as somebody asks, so that no other folder is
given its inode.
"""

import os
import weakref
from pathlib import Path

from ..errors import HomeError, ToolError

Identity = tuple[int, int]
"""Device and inode."""

# To pass through a folder one need not be allowed to list it.
PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


def identity_of(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


class Home:
    """The folder that was at `path` when this was made; if there was none, there is one now. Raises HomeError."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        try:
            os.makedirs(path, 0o700, exist_ok=True)
            fd = os.open(path, PASS)
        except OSError as error:
            raise HomeError(
                f"the home {path} cannot be used ({error.strerror}): set EVERLOOP_HOME elsewhere"
            ) from error
        self.close = weakref.finalize(self, os.close, fd)
        self.identity = identity_of(os.fstat(fd))

    def check(self) -> None:
        """Raises ToolError when something else is at its path by now."""
        try:
            found = identity_of(os.stat(self.path))
        except OSError:
            found = None
        if found != self.identity:
            raise ToolError(
                f"everloop's home {self.path} is not the folder any more that it was at the start, so no file and no "
                "command is touched; put it back, or start everloop again"
            )

    def holds(self, folder: int, root: int) -> bool:
        """Whether this folder, which is open, is the home or lies in it. What is above `root` does not count.

        It climbs from folder to folder, and only who is in the home already could move one out of it meanwhile.
        """
        top, at = identity_of(os.fstat(root)), os.open(".", PASS, dir_fd=folder)
        try:
            here = identity_of(os.fstat(at))
            while here not in (self.identity, top):
                above = os.open("..", PASS, dir_fd=at)
                os.close(at)
                at, below = above, here
                here = identity_of(os.fstat(at))
                if here == below:  # the top of the machine: it has been moved out of `root`
                    break
            return here == self.identity
        finally:
            os.close(at)
