"""What exists in the workspace: the names of files and folders, by which a request is understood and a path is limited.

Names that begin with a dot are left out, and so is all beyond the first few hundred: then nothing is concluded from a
name that is not among them.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct

_MOST = 300
_DEEPEST = 6
_SMALL, _MOST_TEXT = 16_000, 64_000  # bytes


class World(Struct, frozen=True):
    """Paths in the workspace; `whole` says that there are no others."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    whole: bool = False
    place: str = ""
    lines: tuple[tuple[str, str], ...] = ()  # path and line, of small texts; only to know where to look

    def file(self, name: str) -> str:
        """The file that is meant by a name: itself, or the only one that is called so in some folder; "" if none."""
        return _meant(name, self.files)

    def folder(self, name: str) -> str:
        return _meant(name, self.folders)

    def near(self, name: str) -> str:
        """A file whose name is much like this one."""
        last, lower = name.rpartition("/")[2], {path.rpartition("/")[2].lower(): path for path in self.files}
        stems = [path for path in self.files if stem_of(path).lower() == stem_of(last).lower()]
        close = get_close_matches(last.lower(), lower, 1, 0.75)
        return stems[0] if stems else lower[close[0]] if close else ""


Look = Callable[[str], World]


def look_at(place: str) -> World:
    """What lies in a folder of this machine. Blocks."""
    if not place:
        return World()
    files: list[str] = []
    folders: list[str] = []
    for above, below, names in os.walk(place):
        here = Path(above).relative_to(place)
        below[:] = sorted(name for name in below if not name.startswith(".") and name != "__pycache__")
        folders += [(here / name).as_posix() for name in below]
        files += [(here / name).as_posix() for name in sorted(names) if not name.startswith(".")]
        if len(here.parts) >= _DEEPEST:
            below.clear()
        if len(files) + len(folders) > _MOST:
            break
    lines = tuple(_lines(Path(place), files))
    whole = len(files) + len(folders) <= _MOST and all(path.count("/") < _DEEPEST for path in folders)
    return World(tuple(files[:_MOST]), tuple(folders[:_MOST]), whole, place, lines)


def _lines(place: Path, files: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Of text files that are small, as long as there are not too many."""
    room = _MOST_TEXT
    for path in files:
        with suppress(OSError, UnicodeDecodeError):
            if (place / path).is_symlink() or (place / path).stat().st_size > min(room, _SMALL):
                continue
            text = (place / path).read_text()
            room -= len(text)
            yield from ((path, line) for line in text.splitlines() if line.strip())


def stem_of(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0] or path.rpartition("/")[2]


def _meant(name: str, paths: Iterable[str]) -> str:
    name = name.removeprefix("./").strip("/")
    if name in paths:
        return name
    lower = name.lower()
    for found in (
        [path for path in paths if path.lower() == lower],
        [path for path in paths if path.lower().endswith(f"/{lower}")],
    ):
        if len(found) == 1:
            return found[0]
    return ""
