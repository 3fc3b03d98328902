"""An export as services give it: a ZIP file, the folder that was unpacked from it, or the one file that counts."""

import lzma
import zipfile
import zlib
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from ..errors import EverloopError

MOST_NAMES = 200_000
LARGEST_LIST = 50_000_000  # bytes of an archive's list of files, which is read whole: a few hundred thousand names
_LARGE, _TELLER = 56, 20  # bytes of the record of a large archive, and of the one that tells where it lies
_LONGEST_END = 22 + 65_535 + _LARGE + _TELLER  # with a comment
# What a damaged archive comes to, by the way in which it was packed.
_BROKEN = (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, zlib.error, lzma.LZMAError)


class Export:
    """What is in it is known by its last name alone, and nothing is ever unpacked to a path."""

    def __init__(self, path: Path) -> None:
        """Raises EverloopError."""
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        self._places: dict[str, str] = {}
        try:
            if path.is_dir():
                found = (each for each in path.rglob("*") if each.is_file() and not each.is_symlink())
                self._places = {each.name: str(each) for each, _ in zip(found, range(MOST_NAMES), strict=False)}
            elif not path.is_file():  # a pipe would be waited for
                raise EverloopError(f"there is no file or folder {path}")
            elif zipfile.is_zipfile(path):
                if (size := _size_of_list(path)) > LARGEST_LIST:
                    raise EverloopError(
                        f"{path} lists more files than an export has ({size / 1e6:,.0f} MB of names): unpack it first, "
                        "if you know who made it"
                    )
                self._zip = zipfile.ZipFile(path)
                names = [info.filename for info in self._zip.infolist()[:MOST_NAMES] if not info.is_dir()]
                self._places = {PurePosixPath(name).name: name for name in names}
            else:
                self._places = {path.name: str(path)}
        except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise EverloopError(f"{path} cannot be read ({error}); download it again, or unpack it first") from error
        self._names = sorted(self._places)

    def close(self) -> None:
        """Let go of the file: what is removed meanwhile takes room until then."""
        if self._zip:
            self._zip.close()

    def names(self) -> list[str]:
        return self._names

    def beginning_with(self, start: str) -> str:
        """The first name that does; "" where there is none. There may be a hundred thousand, and a picture looks for
        its own among them."""
        at = bisect_left(self._names, start)
        return self._names[at] if at < len(self._names) and self._names[at].startswith(start) else ""

    def has(self, name: str) -> bool:
        return name in self._places

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Raises EverloopError."""
        place = self._places[name]
        try:
            with self._zip.open(place) if self._zip else open(place, "rb") as file:
                yield file
        except _BROKEN as error:
            raise EverloopError(f"{name} in the export cannot be read ({error}); download it again") from error

    def read(self, name: str, most: int) -> bytes | None:
        """None when it is not there, is larger than that or cannot be read."""
        if name not in self._places:
            return None
        try:
            with self.open(name) as file:
                data = file.read(most + 1)
        except EverloopError:  # of one file among many, which is told as missing
            return None
        return data if len(data) <= most else None


def _size_of_list(path: Path) -> int:
    """How long a ZIP says that its list of files is: in its last record, or in that of a large archive, which lies
    before the record that tells where it lies, or where that tells."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _LONGEST_END))
        end = file.read()
        at = end.rfind(b"PK\x05\x06")
        teller = end[max(0, at - _TELLER) : max(0, at)]
        if not teller.startswith(b"PK\x06\x07"):
            return _number(end[at:], 12, 4)
        file.seek(min(_number(teller, 8, 8), size))
        told = file.read(_LARGE)
    return max(_number(told, 40, 8), _number(end[max(0, at - _TELLER - _LARGE) :], 40, 8))


def _number(record: bytes, at: int, size: int) -> int:
    return int.from_bytes(record[at : at + size], "little")
