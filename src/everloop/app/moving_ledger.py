"""What was brought in from elsewhere, by hashes: it comes once, also if its owner has changed or removed it since.

A line is written when its thing is there. Who is killed in between finds the thing itself at the next try.
"""

import os
from pathlib import Path

from ..errors import HomeError
from ..moving.values import digest

NAME = "imports"


class ImportLedger:
    def __init__(self, home: Path) -> None:
        """Nothing is written yet. Raises HomeError."""
        self._path = home / NAME
        try:
            self._known = set(self._path.read_text("ascii", "replace").split()) if self._path.exists() else set()
        except OSError as error:
            raise HomeError(f"{self._path} cannot be read ({error.strerror})") from error

    def has(self, *parts: str) -> bool:
        return digest(*parts) in self._known

    def expect(self, *parts: str) -> None:
        """As `note`, for who only looks: nothing is written, and what comes twice is known the second time."""
        self._known.add(digest(*parts))

    def note(self, *parts: str) -> None:
        """Raises HomeError."""
        if (name := digest(*parts)) in self._known:
            return
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with open(fd, "w", encoding="ascii") as file:
                file.write(f"\n{name}\n")  # a line that was cut off stays a line of its own
        except OSError as error:
            raise HomeError(f"{self._path} cannot be written ({error.strerror})") from error
        self._known.add(name)
