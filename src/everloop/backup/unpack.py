"""Reads a backup member by member, and believes nothing: names lead into the folder and nowhere else, there are files,
folders and links that stay, and each has the hash that the manifest says."""

import hashlib
import os
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from tarfile import RECORDSIZE, TarInfo
from typing import IO, Any, BinaryIO, Protocol, TypeVar

import msgspec

from ..errors import BackupDamaged, BackupError, BackupLocked
from .inflating import Inflating
from .manifest import ABOUT, DATABASE, FORMAT, LATEST, MANIFEST, About, Member, PackSummary, is_inside, link_stays
from .pack import PIECE
from .sealing import Unsealing, is_sealed
from .tar import TarReader, is_file

LONGEST_ABOUT, LONGEST_SUMMARY = 65_536, 16_777_216  # bytes: a summary names up to 2,000 paths


class Taker(Protocol):
    """Who is given what a backup holds, in order. A file is read to its end there."""

    def begin(self, about: About) -> None: ...

    def folder(self, member: Member) -> None: ...

    def link(self, member: Member) -> None: ...

    def file(self, member: Member, pieces: Iterator[bytes]) -> None: ...


class Unpacked(msgspec.Struct, frozen=True):
    about: About
    summary: PackSummary


def open_backup(path: Path) -> BinaryIO:
    """To be read. Nobody waits for a pipe (a FIFO) or a device that has such a name. Raises BackupError."""
    try:
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    except OSError as error:
        raise BackupError(f"{path} cannot be read ({error.strerror}): see everloop backup list") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise BackupError(f"{path} is no file: see everloop backup list")
    return file


def is_sealed_file(path: Path) -> bool:
    """Whether a passphrase is needed. Raises BackupError."""
    with open_backup(path) as file:
        return is_sealed(file)


def read_backup(
    path: Path, passphrase: str, taker: Taker, *, staging: Path, belongs: Callable[[str], bool]
) -> Unpacked:
    """All of it, each member handed on; `belongs` says which names there may be at the top. When this returns, what was
    handed on is what was backed up. Raises BackupError."""
    with _plainly(path), open_backup(path) as file, tempfile.TemporaryFile(dir=staging) as lines:
        stream = _stream_in(file, passphrase)
        tar = TarReader(stream)
        about, member = _about(tar)
        taker.begin(about)
        found = _Found(lines)
        found.add(member)
        order = _Order()
        while (info := _next(tar)).name != MANIFEST:
            order.check(info)
            found.add(_take(tar, info, taker, belongs))
        summary = found.held_against(tar)
        if tar.next() is not None:
            raise BackupDamaged("something follows its manifest")
        _check_end(stream)
    return Unpacked(about, summary)


def _check_end(stream: Inflating) -> None:
    """What is read to its end has been checked to its end. A tar may be filled up with zeros, to a record."""
    rest = 0
    while piece := stream.read(PIECE):
        rest += len(piece)
        if any(piece) or rest > RECORDSIZE:
            raise BackupDamaged("something follows its manifest")


class _plainly:
    """Turns what libraries say of a damaged file into our sentence, which names it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BackupError):
            if not str(error).startswith(str(self._path)):
                raise type(error)(f"{self._path}: {error}") from error
        elif isinstance(error, zlib.error | UnicodeError):
            raise BackupDamaged(f"{self._path} is damaged, cut off, or no backup of everloop ({error})") from error


def _stream_in(file: BinaryIO, passphrase: str) -> Inflating:
    source: Any = file
    if is_sealed(file):
        if not passphrase:
            raise BackupLocked("it is encrypted: give its passphrase with --passphrase-file, or type it when asked")
        source = Unsealing(file, passphrase)
    return Inflating(source)


def _next(tar: TarReader) -> TarInfo:
    info = tar.next()
    if info is None:
        raise BackupDamaged("it ends before its manifest")
    return info


def _about(tar: TarReader) -> tuple[About, Member]:
    info = _next(tar)
    if info.name != ABOUT or not is_file(info) or info.size > LONGEST_ABOUT:
        raise BackupDamaged("it is not a backup of everloop")
    data = tar.read(info.size)
    about = _decoded(data, About, "what it says of itself cannot be read")
    if not (about.everloop + about.store).isprintable():
        raise BackupDamaged("what it says of itself cannot be shown")
    if about.format > FORMAT:
        raise BackupError(f"it was made by a newer everloop ({about.everloop}): install that one, or a newer")
    if not 0 <= about.made < LATEST:
        raise BackupDamaged("it says that it was made at a time that there is not")
    return about, Member(ABOUT, info.mode, info.size, hashlib.sha256(data).hexdigest())


def _take(tar: TarReader, info: TarInfo, taker: Taker, belongs: Callable[[str], bool]) -> Member:
    if not is_inside(info.name) or not belongs(info.name.split("/")[0]):
        raise BackupDamaged(f"it has a member {info.name!r}, which is none of a home's")
    if info.isdir():
        member = Member(info.name, info.mode)
        taker.folder(member)
    elif info.issym() and link_stays(info.name, info.linkname):
        member = Member(info.name, info.mode, link=info.linkname)
        taker.link(member)
    elif is_file(info):
        hashed = hashlib.sha256()
        taker.file(Member(info.name, info.mode, info.size), _pieces(tar, hashed))
        member = Member(info.name, info.mode, info.size, hashed.hexdigest())
    else:
        raise BackupDamaged(f"its member {info.name!r} is a device, or a link that leads out")
    return member


def _pieces(tar: TarReader, hashed: Any) -> Iterator[bytes]:
    for piece in tar.pieces():
        hashed.update(piece)
        yield piece


class _Order:
    """That of `walk`: the database, then each folder before what is in it, by their names. So none can come twice, and
    none can lie in what is no folder: also those are told who only look."""

    def __init__(self) -> None:
        self._last: tuple[str, ...] = ()
        self._is_folder = True

    def check(self, info: TarInfo) -> None:
        parts, last = tuple(info.name.split("/")), self._last
        if last and (parts[0] != DATABASE, parts) <= (last[0] != DATABASE, last):
            raise BackupDamaged(f"its member {info.name!r} comes twice, or too late")
        if not self._is_folder and parts[: len(last)] == last:
            raise BackupDamaged(f"its member {info.name!r} lies in something that is no folder")
        self._last, self._is_folder = parts, info.isdir()


class _Found:
    """What was found, line by line as a manifest has it, in a file: there may be millions."""

    def __init__(self, lines: IO[bytes]) -> None:
        self._lines = lines
        self._members = self._bytes = 0

    def add(self, member: Member) -> None:
        self._lines.write(msgspec.json.encode(member) + b"\n")
        self._members += 1
        self._bytes += member.size

    def held_against(self, manifest: TarReader) -> PackSummary:
        """The manifest has these lines and no other; its last one is the summary. Only as much of it is read at once
        as a line of ours has."""
        self._lines.seek(0)
        for ours in self._lines:
            if manifest.read(len(ours)) != ours:
                name = msgspec.json.decode(ours, type=Member).name
                raise BackupDamaged(f"{name!r} is not as it was when the backup was made")
        last = manifest.read(LONGEST_SUMMARY)
        summary = _decoded(last, PackSummary, "its manifest is cut off, or goes on where it should end")
        if (summary.members, summary.bytes) != (self._members, self._bytes):
            raise BackupDamaged("it does not hold as much as its manifest says")
        return summary


Kind = TypeVar("Kind")


def _decoded(data: bytes, kind: type[Kind], why: str) -> Kind:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise BackupDamaged(f"{why} ({error})") from error
