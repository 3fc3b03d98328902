"""The search of `grep`, in a process of its own: see `apart`. It imports nothing that takes time."""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .kinds import HEAD, is_strange_kind
from .walk import STRANGE, Glob, Walk, printable

_LARGEST = 16 * 1024 * 1024
_LONGEST = 50_000  # characters of a line that are searched
_SHOWN = 300
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


class GrepOptions(NamedTuple):
    """What is searched for, and how it is told. `fd` is a folder, or a file whose name is `above`."""

    pattern: str
    ignore_case: bool
    context: int
    files_only: bool
    include: str
    fd: int
    is_folder: bool
    above: str
    room: int
    seconds: float
    hidden: tuple[int, int] | None = None
    times: Sequence[tuple[float, float]] = ()  # in which strangers had a say in what was written


class GrepOutput:
    """Lines, as long as there is room; each is told at once, so that those found are known if the search is ended."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._empty = True

    def add(self, line: str) -> bool:
        """Whether it still had room."""
        self._room -= len(line) + 1
        if self._room < 0 and not self._empty:
            return False
        self._empty = False
        sys.stdout.write(f"{line}\n")
        return True


def main() -> None:
    wanted = GrepOptions(*json.loads(sys.stdin.buffer.read()))
    try:
        pattern = re.compile(wanted.pattern, re.IGNORECASE if wanted.ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        sys.exit(f"the pattern is not a regular expression ({error})")
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    for line in _search(wanted, pattern, GrepOutput(wanted.room)):
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _search(wanted: GrepOptions, pattern: "re.Pattern[str]", page: GrepOutput) -> Iterator[str]:
    """Fills the page and yields the notes that come last."""
    hidden = (wanted.hidden[0], wanted.hidden[1]) if wanted.hidden else None
    walk = Walk(Glob(wanted.include), wanted.seconds, hidden=hidden)
    too_large = lines = 0
    for path, fd in _files(wanted, walk):
        text = _text(fd)
        if text is None:
            too_large += 1
            continue
        found, is_full = _tell(path, text.split("\n"), wanted, pattern, page)
        lines += found
        if found and _is_strange(path, fd, wanted.times):
            sys.stdout.write(f"{STRANGE}{printable(path)}\n")
        sys.stdout.flush()
        if is_full:
            yield "[there is more; narrow the pattern, the path or include]"
            break
    if not lines:
        yield "[nothing was found]"
    if too_large:
        yield f"[{too_large} files of more than {_LARGEST >> 20} MiB were not searched]"
    if walk.skipped:
        yield f"[not searched, unless named: {', '.join(sorted(walk.skipped))}]"
    if walk.cut:
        yield f"[incomplete: {walk.cut}]"


def _files(wanted: GrepOptions, walk: Walk) -> Iterator[tuple[str, int]]:
    if not wanted.is_folder:
        yield wanted.above, wanted.fd
        return
    for found in walk.beneath(wanted.fd):
        try:
            fd = os.open(found.entry.name, _READ, dir_fd=found.folder)
        except OSError:
            continue  # a link, a socket, gone, or not ours to read
        try:
            yield wanted.above + found.path, fd
        finally:
            os.close(fd)


def _text(fd: int) -> str | None:
    """What a file says, "" if it is no text, None if it is too large."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        return ""
    if status.st_size > _LARGEST:
        return None
    with open(fd, "rb", closefd=False) as file:
        head = file.read(8192)
        if b"\0" in head:
            return ""
        return (head + file.read(_LARGEST)).decode("utf-8", "replace").removesuffix("\n")


def _is_strange(path: str, fd: int, times: Sequence[tuple[float, float]]) -> bool:
    at = os.fstat(fd).st_ctime
    return any(began <= at <= ended for began, ended in times) or is_strange_kind(path, os.pread(fd, HEAD, 0))


def _tell(
    path: str, lines: list[str], wanted: GrepOptions, pattern: "re.Pattern[str]", page: GrepOutput
) -> tuple[int, bool]:
    """How many lines of a file fit, and whether the page is full."""
    name = printable(path)
    found = told = last = 0  # told: what is on the page reaches up to this line; last: the last that fitted
    for number, line in enumerate(lines, 1):
        match = pattern.search(line, 0, _LONGEST)
        if match is None:
            if found and told < number <= last + wanted.context:
                told = number
                if not page.add(f"{name}-{number}-{_cut(line, 0)}"):
                    return found, True
            continue
        found, last = found + 1, number
        if wanted.files_only:
            return 1, not page.add(name)
        first = max(told, number - 1 - wanted.context)
        if wanted.context and told and first > told and not page.add("--"):
            return found, True
        for before in range(first, number - 1):
            if not page.add(f"{name}-{before + 1}-{_cut(lines[before], 0)}"):
                return found, True
        told = number
        if not page.add(f"{name}:{number}:{_cut(line, match.start())}"):
            return found, True
    return found, False


def _cut(line: str, place: int) -> str:
    """The line, or the part of it around a place."""
    line = line.rstrip("\r")
    if len(line) <= _SHOWN:
        return line
    start = max(0, min(place - _SHOWN // 3, len(line) - _SHOWN))
    before, after = "…" if start else "", "…" if start + _SHOWN < len(line) else ""
    return f"{before}{line[start : start + _SHOWN]}{after}"
