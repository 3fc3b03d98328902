"""Archives of strangers, taken apart safely (zip slip, symlink tricks, bombs): each entry is looked at before anything
of it is written, and what an entry says of its own size is not believed.

Only plain files and folders come out, as values: nothing is written here. One entry that is anything else, or is called
something that leads elsewhere, refuses the whole archive.
"""

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, Protocol

from msgspec import Struct

from ...errors import MailRefused

ARCHIVE = 20_000_000  # bytes of an archive
UNPACKED = 40_000_000  # bytes of all that comes out
LARGEST = 10_000_000  # bytes of one file
ENTRIES = 2000
DEEPEST = 10
LONGEST_PATH = 240
RATIO = 200  # times as large as the archive, beyond the first megabyte
_DIRECTORY = 1_000_000  # bytes of a zip's list of entries, which zipfile reads whole
_PIECE = 65_536
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError, ValueError)
_RESERVED = set('\\:*?"<>|')


class SkillContent(Struct, frozen=True):
    """A file that belongs to a skill."""

    content: bytes
    executable: bool = False


Tree = dict[str, SkillContent]  # by path


class _Room:
    """What still may come out of an archive of so many bytes. Raises MailRefused."""

    def __init__(self, size: int) -> None:
        self._bytes = min(UNPACKED, 1_000_000 + RATIO * size)
        self._entries = ENTRIES
        self._names: set[str] = set()

    def enter(self, name: str) -> str:
        """The path of an entry, once it is sure that it leads nowhere else and was not there before."""
        self._entries -= 1
        if self._entries < 0:
            raise MailRefused(f"there are more than {ENTRIES:,} files in it")
        return checked_path(name)

    def claim(self, path: str) -> None:
        folded = unicodedata.normalize("NFC", path).casefold()
        if folded in self._names:
            raise MailRefused(f"{path[:100]!r} is in it twice")
        self._names.add(folded)

    def read(self, path: str, file: "Readable") -> bytes:
        pieces, size = [], 0
        while piece := file.read(_PIECE):
            size += len(piece)
            self._bytes -= len(piece)
            if size > LARGEST:
                raise MailRefused(f"{path[:100]!r} has more than {LARGEST:,} bytes")
            if self._bytes < 0:
                raise MailRefused("it unpacks to more than it may: it may be a bomb")
            pieces.append(piece)
        return b"".join(pieces)


class Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


def checked_path(name: str) -> str:
    """A path as an archive may name it: relative, downwards, with names that mean the same everywhere. Raises
    MailRefused."""
    path = name.rstrip("/").removeprefix("./")
    parts = path.split("/")
    if name.startswith("/") or ".." in parts or "" in parts or "." in parts:
        raise MailRefused(f"{name[:100]!r} leads out of the skill, or nowhere")
    if any(letter in _RESERVED or not letter.isprintable() for letter in path):
        raise MailRefused(f"{name[:100]!r} holds letters that mean something else to some systems")
    if len(path.encode("utf-8", "surrogatepass")) > LONGEST_PATH or len(parts) > DEEPEST:
        raise MailRefused(f"{name[:100]!r} is longer or deeper than the files of a skill are")
    return path


def unpacked(data: bytes) -> Tree:
    """What is in a zip or tar file, by path. Raises MailRefused."""
    if len(data) > ARCHIVE:
        raise MailRefused(f"the archive has more than {ARCHIVE:,} bytes")
    room = _Room(len(data))
    try:
        entries = _zip_entries(data, room) if data.startswith(b"PK") else _tar_entries(data, room)
        tree = dict(entries)
    except _DAMAGED as error:
        raise MailRefused(f"the archive cannot be read: it is damaged ({type(error).__name__})") from error
    for path in tree:
        above = path.rpartition("/")[0]
        while above:
            if above in tree:
                raise MailRefused(f"{above[:100]!r} is a file and a folder in it")
            above = above.rpartition("/")[0]
    return tree


def _zip_entries(data: bytes, room: _Room) -> Iterator[tuple[str, SkillContent]]:
    _check_directory(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            path, mode = room.enter(entry.orig_filename), entry.external_attr >> 16
            if entry.is_dir() or stat.S_ISDIR(mode):
                continue
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise MailRefused(f"{path!r} is a link or a device; a skill holds plain files")
            if entry.flag_bits & 0x1:
                raise MailRefused("the archive is encrypted")
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise MailRefused(f"{path!r} is compressed in a way that is not read here")
            room.claim(path)
            with archive.open(entry) as file:
                yield path, SkillContent(room.read(path, file), bool(mode & 0o100))


def _check_directory(data: bytes) -> None:
    """Before zipfile makes an object of each entry: there may be a million."""
    at = len(data) - 22
    if data[at : at + 4] != b"PK\5\6" or data[-2:] != b"\0\0":
        at = data.rfind(b"PK\5\6", max(0, len(data) - 65_557))
    if at < 0:
        raise MailRefused("the archive cannot be read: it has no end")
    size = int.from_bytes(data[at + 12 : at + 16], "little")
    if size > _DIRECTORY or data[max(0, at - 20) : at].startswith(b"PK\6\7"):
        raise MailRefused(f"there are more than {ENTRIES:,} files in it")


def _tar_entries(data: bytes, room: _Room) -> Iterator[tuple[str, SkillContent]]:
    stream: Any = _Bounded(_opened(data), len(data))
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        while (entry := archive.next()) is not None:
            path = "" if entry.name in (".", "./") and entry.isdir() else room.enter(entry.name)
            if entry.isdir():
                continue
            if not entry.isreg() or entry.issparse():
                raise MailRefused(f"{path!r} is a link, a device or a sparse file; a skill holds plain files")
            room.claim(path)
            file = archive.extractfile(entry)
            assert file is not None  # a plain file has content
            yield path, SkillContent(room.read(path, file), bool(entry.mode & 0o100))


def _opened(data: bytes) -> Readable:
    raw = io.BytesIO(data)
    if data.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=raw)
    if data.startswith(b"BZh"):
        return bz2.BZ2File(raw)
    if data.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMAFile(raw)
    if data[257:262] != b"ustar" and any(data[:1]):
        raise MailRefused("this is neither a zip file nor a tar file (plain, or packed by gzip, bzip2 or xz)")
    return raw


class _Bounded:
    """Bytes of which no more is read than may come out: a tar's own headers can be a bomb as well."""

    def __init__(self, file: Readable, size: int) -> None:
        self._file = file
        self._left = min(UNPACKED, 1_000_000 + RATIO * size) + ENTRIES * 2048

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self._left -= len(piece)
        if self._left < 0:
            raise MailRefused("it unpacks to more than it may: it may be a bomb")
        return piece
