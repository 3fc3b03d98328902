"""everloop as somebody has it who installed it: a wheel in a virtual environment of its own, in which there is nothing
else, not even pip."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(folder: Path, source: Path = ROOT, *, kind: str = "wheel") -> Path:
    """A wheel or an sdist, by the backend that pyproject.toml names and without a network."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    _run(words, cwd=source)
    (made,) = folder.iterdir()
    return made


class Installation:
    """A virtual environment, and what was installed there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = str(folder / "bin" / "python")
        self.everloop = str(folder / "bin" / "everloop")
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])

    def install(self, wheel: Path, *extras: str) -> None:
        wanted = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
        _run([sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet", wanted])

    @property
    def packages(self) -> set[str]:
        """Their names, as indexes have them."""
        found = self._library.glob("*.dist-info")
        return {re.sub(r"[-_.]+", "-", path.name.partition("-")[0]).lower() for path in found}

    @property
    def megabytes(self) -> float:
        return sum(path.stat().st_size for path in self._library.rglob("*") if path.is_file()) / 1e6

    @property
    def package(self) -> Path:
        return self._library / "everloop"

    @property
    def _library(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found


def _run(words: list[str], cwd: Path | None = None) -> None:
    """Raises AssertionError with what was said of what went wrong."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "EVERLOOP_"))}
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stderr[-2000:]}"
