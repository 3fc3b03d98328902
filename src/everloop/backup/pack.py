"""Writes a backup, piece by piece: whatever the home holds, a piece of one file at a time is in memory."""

import gzip
import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from .manifest import ABOUT, MANIFEST, TOLD, About, Member, PackSummary
from .sealing import Sealing
from .tar import TarWriter

PIECE = 262_144
LEVEL = 5  # of compression: most of what is large (pictures, archives) is compressed already
Tell = Callable[[int], None]  # so many bytes of the home have been read


class Pack:
    """Use `close` in a `finally`; only `finish` makes it a backup."""

    def __init__(self, file: BinaryIO, about: About, *, passphrase: str, staging: Path, tell: Tell) -> None:
        self._sealing = Sealing(file, passphrase) if passphrase else None
        self._zip = gzip.GzipFile(filename="", fileobj=self._sealing or file, mode="wb", compresslevel=LEVEL, mtime=0)
        self._tar = TarWriter(self._zip)
        self._lines = tempfile.TemporaryFile(dir=staging)  # noqa: SIM115 (of the manifest; `close` closes it)
        self._made = about.made
        self._tell = tell
        self._members = self._bytes = 0
        self._changed, self._left_out = list[str](), list[str]()
        self.add_bytes(ABOUT, msgspec.json.encode(about))

    def add_bytes(self, name: str, data: bytes) -> None:
        self._add(_info(name, 0o600, self._made, len(data)), io.BytesIO(data))

    def add_file(self, name: str, fd: int) -> None:
        """One that is open, from its beginning; it stays open."""
        before = os.fstat(fd)
        file = _Exactly(fd, before.st_size, self._tell)
        self._add(_info(name, before.st_mode, before.st_mtime, before.st_size), file)
        after = os.fstat(fd)
        if file.is_short or (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            _note(self._changed, name)

    def add_folder(self, name: str, mode: int) -> None:
        info = _info(name, mode, self._made, 0)
        info.type = tarfile.DIRTYPE
        self._tar.add(info)
        self._keep(Member(name, info.mode))

    def add_link(self, name: str, target: str) -> None:
        info = _info(name, 0o777, self._made, 0)
        info.type, info.linkname = tarfile.SYMTYPE, target
        self._tar.add(info)
        self._keep(Member(name, info.mode, link=target))

    def leave_out(self, name: str, why: str) -> None:
        _note(self._left_out, f"{name}: {why}")

    def finish(self, rows: Mapping[str, int]) -> PackSummary:
        summary = PackSummary(
            members=self._members,
            bytes=self._bytes,
            rows=dict(rows),
            left_out=self._left_out,
            changed=self._changed,
        )
        self._lines.write(msgspec.json.encode(summary) + b"\n")
        size = self._lines.tell()
        self._lines.seek(0)
        self._tar.add(_info(MANIFEST, 0o600, self._made, size), self._lines)
        self._tar.end()
        self._zip.close()
        if self._sealing:
            self._sealing.close()
        return summary

    def close(self) -> None:
        self._lines.close()

    def _add(self, info: tarfile.TarInfo, file: "io.BytesIO | _Exactly") -> None:
        hashed = _Hashed(file)
        self._tar.add(info, hashed)
        self._keep(Member(info.name, info.mode, info.size, hashed.sha256.hexdigest()))

    def _keep(self, member: Member) -> None:
        self._lines.write(msgspec.json.encode(member) + b"\n")
        self._members += 1
        self._bytes += member.size


class _Hashed:
    def __init__(self, file: "io.BytesIO | _Exactly") -> None:
        self._file, self.sha256 = file, hashlib.sha256()

    def read(self, size: int, /) -> bytes:
        piece = self._file.read(size)
        self.sha256.update(piece)
        return piece


class _Exactly:
    """So many bytes of an open file: a tar has said how many before they are read. Of one that was cut meanwhile, the
    rest is zeros, which is noted."""

    def __init__(self, fd: int, size: int, tell: Tell) -> None:
        self._fd, self._left, self._tell = fd, size, tell
        self.is_short = False

    def read(self, size: int) -> bytes:
        wanted = min(size, self._left)
        piece = b"" if self.is_short else os.read(self._fd, wanted)
        if not piece and wanted:
            self.is_short, piece = True, bytes(wanted)
        self._left -= len(piece)
        self._tell(len(piece))
        return piece if len(piece) == wanted else piece + self.read(wanted - len(piece))


def _info(name: str, mode: int, at: float, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode, info.mtime, info.size = mode & 0o777, int(at), size
    return info


def _note(lines: list[str], line: str) -> None:
    if len(lines) < TOLD:
        lines.append(line)
    elif len(lines) == TOLD:
        lines.append("… and more")
