"""What is left on a disk while much is written there: a house that runs needs room to keep what people say."""

import os
from pathlib import Path

from ..errors import HomeError

SPARE = 50_000_000  # bytes that stay free, but for what is written between two looks
LOOK = 25_000_000
ENTRY = 4096  # bytes that a name takes, of whatever is called so


class DiskSpace:
    """On the disk of a folder. It does not matter whether much comes in one file or in many."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._since = 0

    def expect(self, name: str, size: int) -> None:
        """A file of so many bytes is to come. Raises HomeError."""
        self.take(ENTRY)
        if size > SPARE and size > self._free() - SPARE:
            raise self._too_little(f"{name} has {size:,} bytes")

    def take(self, size: int) -> None:
        """So much more is written. Raises HomeError."""
        self._since += size
        if self._since > LOOK:
            self._since = 0
            if self._free() < SPARE:
                raise self._too_little("there is more to come than there is room for")

    def _free(self) -> int:
        status = os.statvfs(self._folder)
        return status.f_bavail * status.f_frsize

    def _too_little(self, what: str) -> HomeError:
        return HomeError(f"{what}, and the disk of {self._folder} has {self._free():,} left: make room there first")
