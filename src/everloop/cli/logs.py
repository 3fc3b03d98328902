"""`everloop logs`: what went wrong, with the details of an error by the id that a person was told."""

import argparse
import asyncio
import os
import re
import sys
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import msgspec

from ..app.log_tail import Tail, older_lines, put_aside
from ..errors import EverloopError
from ..ports.log_lines import LEVELS, LogLine
from ..readings.visible import visible
from ..settings import home_of
from .logbook import log_path
from .terminal import Terminal

MORE = (
    "The log is logs/everloop.log in the home: lines of JSON, of everything that runs with it. Without --since and "
    "--error the last 50 lines are shown."
)
USUAL = 50
LOOK = 0.25  # seconds between looks for more
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", type=_id, nargs="?", help="of an error, as with --error")
    parser.add_argument("-n", "--lines", metavar="N", type=_count, help="show the last N lines that fit")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is written from now on")
    parser.add_argument("--level", choices=LEVELS, help="show what is at least so serious")
    parser.add_argument(
        "--error", metavar="ID", type=_id, help="show what is known of an error, by the id in its sentence"
    )
    parser.add_argument("--session", metavar="KEY", help="show what belongs to a session, or to a thread by its id")
    parser.add_argument("--since", metavar="WHEN", type=_moment, help="from then on: 30m, 2h, 3d, or 2026-11-15T09:30")
    parser.add_argument("--json", action="store_true", help="print the lines of JSON as they are")


async def run(arguments: argparse.Namespace) -> int:
    arguments.error = arguments.error or arguments.id
    terminal, path, wanted = Terminal(sys.stdout, sys.stderr), log_path(home_of(os.environ)), LogFilter(arguments)
    show = to_json if arguments.json else to_text
    with Tail(path) as tail:
        if tail.is_missing() and not put_aside(path) and not arguments.follow:
            terminal.tell(f"There is no log yet: {path} is written when there is something to tell.")
            return 1 if arguments.error else 0
        found = wanted.last(older_lines(path), tail.read())
        if found:
            terminal.answer("\n".join(map(show, found)))
        elif arguments.error and not arguments.follow:
            raise EverloopError(f"the log holds no error {arguments.error}; it may be older than what is kept")
        elif not arguments.follow:
            terminal.note("Nothing in the log fits.")
        while arguments.follow:
            for line in filter(wanted.fits, tail.read()):
                terminal.answer(show(line))
            await asyncio.sleep(LOOK)
    return 0


class LogFilter:
    """Which lines are asked for."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._levels = LEVELS[LEVELS.index(arguments.level) :] if arguments.level else ()
        self._error: str = arguments.error or ""
        self._session: str = arguments.session or ""
        self._since: str = arguments.since or ""
        everything = arguments.since or arguments.error
        self._limit: int | None = arguments.lines if arguments.lines is not None else None if everything else USUAL

    def fits(self, line: LogLine) -> bool:
        return (
            (not self._levels or line.level in self._levels)
            and (not self._error or line.error == self._error or self._error in line.message)
            and (not self._session or line.session == self._session or line.thread.startswith(self._session))
            and line.time >= self._since
        )

    def last(self, *lines: Iterable[LogLine]) -> list[LogLine]:
        return list(deque((line for some in lines for line in some if self.fits(line)), maxlen=self._limit))


def to_json(line: LogLine) -> str:
    return msgspec.json.encode(line).decode()


def to_text(line: LogLine) -> str:
    if not line.time:
        return visible(line.message)
    about = [f"error {line.error}" if line.error and line.error not in line.message else "", line.session]
    about.append(f"turn {line.thread}:{line.turn}" if line.thread else "")
    told = ", ".join(filter(None, about))
    head = f"{_local(line.time)} {line.level.upper():7} {line.logger.removeprefix('everloop.')}: {line.message}"
    below = f"\n{line.detail}" if line.detail else ""
    return "\n    ".join(visible(f"{head}{f' ({told})' if told else ''}{below}").splitlines())


def _local(time: str) -> str:
    return datetime.fromisoformat(time).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 10_000_000:
        raise argparse.ArgumentTypeError("it must be a number of lines, at least 1")
    return int(text)


def _id(text: str) -> str:
    """Also as it stands in a sentence: (error 9c41d2-7)."""
    found = re.fullmatch(r"\(?(?:error )?([\w-]+)\)?", text.strip())
    if not found:
        raise argparse.ArgumentTypeError("it must be an id as it stands in an error's sentence, such as 9c41d2-7")
    return found[1]


def _moment(text: str) -> str:
    """As the log writes it, so that it can be compared."""
    if ago := re.fullmatch(r"(\d{1,6})([smhdw])", text.strip()):
        at = datetime.now(UTC) - timedelta(**{UNITS[ago[2]]: int(ago[1])})
    else:
        try:
            at = datetime.fromisoformat(text.strip()).astimezone(UTC)
        except (ValueError, OverflowError):
            raise argparse.ArgumentTypeError(
                "write how long ago, as 30m, 2h or 3d, or a date and time, as 2026-11-15T09:30"
            ) from None
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
