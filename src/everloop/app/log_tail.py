"""Reading the log while it is written: what stands there, what comes, across a change of files."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from ..errors import EverloopError
from ..ports.log_lines import FILE, FOLDER, LogLine

LOOK = 0.25  # seconds between looks for more
MOST = 200  # lines that are told at once
TOO_LARGE = 100_000_000  # bytes of a file, which everloop lets none of them grow to


class Tail:
    """The file that is being written: each `read` gives the whole lines that have come since, across a change of
    files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _opened(path)
        self._rest = b""

    def __enter__(self) -> "Tail":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def is_missing(self) -> bool:
        return self._file is None

    def read(self) -> list[LogLine]:
        found = self._take()
        if self._is_another():  # what was put aside is read to its end first
            found += self._take()
            self.__exit__()
            self._file, self._rest = _opened(self._path), b""
            found += self._take()
        return found

    def _take(self) -> list[LogLine]:
        *whole, self._rest = (self._rest + (self._file.read() if self._file else b"")).split(b"\n")
        return [parse(line) for line in whole if line]

    def _is_another(self) -> bool:
        try:
            now = self._path.stat().st_ino
        except OSError:
            return False
        return self._file is None or os.fstat(self._file.fileno()).st_ino != now


def parse(line: bytes) -> LogLine:
    """A line of the log. What an older version wrote is shown as it is."""
    try:
        return msgspec.json.decode(line, type=LogLine)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return LogLine("", "", "", line.decode(errors="replace"))


def put_aside(path: Path) -> list[Path]:
    """The files that were put aside, the oldest first."""
    found = [each for each in path.parent.glob(f"{path.name}.*") if each.suffix[1:].isdecimal()]
    return sorted(found, key=lambda each: int(each.suffix[1:]), reverse=True)


def too_large_in(home: Path) -> list[Path]:
    """The files of the log that something else has filled, which nobody had better read whole."""
    return [path for path in (home / FOLDER).glob(f"{FILE}*") if path.stat().st_size > TOO_LARGE]


def older_lines(path: Path) -> Iterator[LogLine]:
    for file in put_aside(path):
        for line in file.read_bytes().split(b"\n"):
            if line:
                yield parse(line)


def read_since(home: Path, moment: float) -> list[LogLine]:
    """The lines of a time (Unix) and after it. Raises EverloopError."""
    since = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    with Tail(home / FOLDER / FILE) as tail:
        return [line for line in (*older_lines(home / FOLDER / FILE), *tail.read()) if line.time >= since]


class LogFollower:
    """The LogWatch port over the file of a home."""

    def __init__(self, home: Path) -> None:
        self._path = home / FOLDER / FILE

    async def follow(self, last: int) -> AsyncGenerator[Sequence[LogLine]]:
        with Tail(self._path) as tail:
            found = await asyncio.to_thread(self._last, tail, last)
            while True:
                for at in range(0, len(found), MOST):
                    yield found[at : at + MOST]
                if not found:
                    yield ()
                await asyncio.sleep(LOOK)
                found = await asyncio.to_thread(tail.read)

    def _last(self, tail: Tail, count: int) -> list[LogLine]:
        now = tail.read()
        older = older_lines(self._path) if len(now) < count else ()
        return list(deque((*older, *now), maxlen=count))


def _opened(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EverloopError(f"the log {path} cannot be read ({error.strerror})") from error
