"""A disk that fails on command: an apsw VFS under every connection of a worker process.

While the world's folder holds a file `disk-full` or `disk-broken`, each write and sync fails with ENOSPC or EIO; with
`disk-slow` each sync takes long.
"""

import time
from pathlib import Path
from typing import Any

import apsw

SLOW = 0.3
ERRORS = {"disk-full": apsw.FullError, "disk-broken": apsw.IOError}


class FailingDisk(apsw.VFS):
    """Becomes the process's default file system when made; keep a reference to it."""

    def __init__(self, control: Path) -> None:
        self.control = control
        super().__init__("failing", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> "FailingFile":
        return FailingFile(name, flags, self.control)


class FailingFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], control: Path) -> None:
        self.control = control
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._fail_if_told()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._fail_if_told()
        if (self.control / "disk-slow").exists():
            time.sleep(SLOW)
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        self._fail_if_told()
        super().xTruncate(size)

    def _fail_if_told(self) -> None:
        for name, error in ERRORS.items():
            if (self.control / name).exists():
                raise error("scripted")
