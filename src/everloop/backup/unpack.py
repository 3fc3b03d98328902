"""Reads a backup member by member, and believes nothing: names lead into the folder and nowhere else, there are files,
folders and links that stay, and each has the hash that the manifest says."""

import gzip
import hashlib
import itertools
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol, cast

import msgspec

from ..errors import BackupDamaged, BackupError, BackupLocked
from .manifest import ABOUT, FORMAT, MANIFEST, About, Member, PackSummary, is_inside, link_stays
from .pack import PIECE
from .sealing import Unsealing, is_sealed


class Taker(Protocol):
    """Who is given what a backup holds, in order. A file is read to its end there."""

    def begin(self, about: About) -> None: ...

    def folder(self, member: Member) -> None: ...

    def link(self, member: Member) -> None: ...

    def file(self, member: Member, pieces: Iterator[bytes]) -> None: ...


class Unpacked(msgspec.Struct, frozen=True):
    about: About
    summary: PackSummary


def read_about(path: Path, passphrase: str) -> About:
    """What it is a backup of. Raises BackupError."""
    with _plainly(path), open(path, "rb") as file, _tar_in(file, passphrase) as tar:
        return _about(tar, _next(tar))[0]


def read_backup(
    path: Path, passphrase: str, taker: Taker, *, staging: Path, belongs: Callable[[str], bool]
) -> Unpacked:
    """All of it, each member handed on; `belongs` says which names there may be at the top. When this returns, what was
    handed on is what was backed up. Raises BackupError."""
    with (
        _plainly(path),
        open(path, "rb") as file,
        tempfile.TemporaryFile(dir=staging) as lines,
        _tar_in(file, passphrase) as tar,
    ):
        info = _next(tar)
        about, data = _about(tar, info)
        taker.begin(about)
        _keep(lines, Member(ABOUT, info.mode, info.size, hashlib.sha256(data).hexdigest()))
        while (info := _next(tar)).name != MANIFEST:
            _keep(lines, _take(tar, info, taker, belongs))
        summary = _held_against(lines, _opened(tar, info))
        if tar.next() is not None:
            raise BackupDamaged("something follows its manifest")
        stream = cast(Any, tar.fileobj).fileobj  # what is read to its end has been checked to its end
        while stream.read(PIECE):
            pass
    return Unpacked(about, summary)


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
        elif isinstance(error, FileNotFoundError | IsADirectoryError) and str(error.filename) == str(self._path):
            raise BackupError(f"{self._path} is not there, or is no file: see everloop backup list") from error
        elif isinstance(error, EOFError | gzip.BadGzipFile | zlib.error | tarfile.TarError | UnicodeError):
            raise BackupDamaged(f"{self._path} is damaged, cut off, or no backup of everloop ({error})") from error


def _tar_in(file: BinaryIO, passphrase: str) -> tarfile.TarFile:
    source: Any = file
    if is_sealed(file):
        if not passphrase:
            raise BackupLocked("it is encrypted: give its passphrase with --passphrase-file, or type it when asked")
        source = Unsealing(file, passphrase)
    return tarfile.open(fileobj=gzip.GzipFile(fileobj=source), mode="r|", bufsize=PIECE)


def _next(tar: tarfile.TarFile) -> tarfile.TarInfo:
    info = tar.next()
    cast(Any, tar).members.clear()  # it would remember each of them
    if info is None:
        raise BackupDamaged("it ends before its manifest")
    return info


def _about(tar: tarfile.TarFile, info: tarfile.TarInfo) -> tuple[About, bytes]:
    if info.name != ABOUT or info.size > PIECE:
        raise BackupDamaged("it is not a backup of everloop")
    data = _opened(tar, info).read()
    try:
        about = msgspec.json.decode(data, type=About)
    except msgspec.DecodeError as error:
        raise BackupDamaged(f"what it says of itself cannot be read ({error})") from error
    if about.format > FORMAT:
        raise BackupError(f"it was made by a newer everloop ({about.everloop}): install that one, or a newer")
    return about, data


def _opened(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(info) if info.isreg() else None
    if file is None:
        raise BackupDamaged(f"{info.name!r} is no file")
    return file


def _take(tar: tarfile.TarFile, info: tarfile.TarInfo, taker: Taker, belongs: Callable[[str], bool]) -> Member:
    if not is_inside(info.name) or not belongs(info.name.split("/")[0]):
        raise BackupDamaged(f"it has a member {info.name!r}, which is none of a home's")
    if info.isdir():
        member = Member(info.name, info.mode)
        taker.folder(member)
    elif info.issym() and link_stays(info.name, info.linkname):
        member = Member(info.name, info.mode, link=info.linkname)
        taker.link(member)
    elif info.isreg():
        hashed = hashlib.sha256()
        taker.file(Member(info.name, info.mode, info.size), _pieces(_opened(tar, info), hashed))
        member = Member(info.name, info.mode, info.size, hashed.hexdigest())
    else:
        raise BackupDamaged(f"its member {info.name!r} is a device, or a link that leads out")
    return member


def _pieces(file: IO[bytes], hashed: Any) -> Iterator[bytes]:
    while piece := file.read(PIECE):
        hashed.update(piece)
        yield piece


def _keep(lines: IO[bytes], member: Member) -> None:
    lines.write(msgspec.json.encode(member) + b"\n")


def _held_against(found: IO[bytes], said: IO[bytes]) -> PackSummary:
    """What was found, line by line, with what the manifest says; its last line is the summary."""
    found.seek(0)
    last = b""
    for ours, theirs in itertools.zip_longest(found, said, fillvalue=b""):
        if ours == theirs:
            continue
        if ours or last:
            name = msgspec.json.decode(ours or last).get("name", "something")
            raise BackupDamaged(f"{name!r} is not as it was when the backup was made")
        last = theirs
    try:
        return msgspec.json.decode(last, type=PackSummary)
    except msgspec.DecodeError as error:
        raise BackupDamaged("its manifest is cut off") from error
