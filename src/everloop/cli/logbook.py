"""Where the details go that no user needs to see: a file in the home, a line of JSON for each.

Several processes write to it at once, each line with one write. When it has grown large it is put aside, and of those
that were put aside the oldest is removed. Secrets are taken out here, once more: nothing that is told to a logger on
purpose holds one, but the text of an error may.
"""

import fcntl
import logging
import os
import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import msgspec

from ..ports.log_context import log_context
from ..ports.log_lines import FILE, FOLDER, LogLine
from ..readings.encodings import forms_of
from ..readings.masks import MASK, SHAPES

LARGEST = 5_000_000  # bytes of a file
KEPT = 4  # files that were put aside
LONGEST = 20_000  # characters of a message, and of what stands under it
LOGGERS = ("everloop", "asyncio", "aiohttp")

_HOW = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe is not waited for
_NAMES = re.compile(r"(?i)(KEY|TOKEN|SECRET|PASSWORD|PASSWD)$")
_SHORTEST = 8  # a shorter value is no secret, and would be found in any text


def keep_logs(home: Path) -> None:
    """Write what our loggers say to `logs/everloop.log`; where that cannot be, keep silent."""
    book = LogFile(log_path(home))
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.propagate = False
        logger.addHandler(book)
    logging.getLogger("everloop").setLevel(logging.INFO)


def log_path(home: Path) -> Path:
    return home / FOLDER / FILE


def keep_silent() -> None:
    """For a command that writes nothing, wherever it goes."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers[:] = [logging.NullHandler()]


class LogFile(logging.Handler):
    """The file is made when there is something to say. What cannot be written is not: a full disk is the store's to
    report."""

    def __init__(self, path: Path, largest: int = LARGEST) -> None:
        super().__init__()
        self._path = path
        self._largest = largest
        self._file = -1
        self._inode = 0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            os.write(self._open(), msgspec.json.encode(line_of(record)) + b"\n")
        except Exception:  # the border to whoever logs something that cannot be formatted or written
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        pass

    def close(self) -> None:
        self._shut()
        super().close()

    def _open(self) -> int:
        """Another process may have put the file aside."""
        try:
            status = os.stat(self._path)
        except OSError:
            status = None
        if status and status.st_size >= self._largest:
            self._rotate()
        if status is None or status.st_size >= self._largest or status.st_ino != self._inode:
            self._shut()
            self._path.parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.parent.mkdir(exist_ok=True, mode=0o700)
            self._file = os.open(self._path, _HOW, 0o600)
            os.fchmod(self._file, 0o600)
            self._inode = os.fstat(self._file).st_ino
        return self._file

    def _shut(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file, self._inode = -1, 0

    def _rotate(self) -> None:
        """One process at a time; whoever comes second finds that it is done."""
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            if self._path.exists() and self._path.stat().st_size >= self._largest:
                for number in range(KEPT - 1, 0, -1):
                    older = self._path.with_name(f"{self._path.name}.{number}")
                    if older.exists():
                        older.replace(self._path.with_name(f"{self._path.name}.{number + 1}"))
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
        finally:
            os.close(folder)


def line_of(record: logging.LogRecord) -> LogLine:
    at, said = log_context.get(), record.__dict__
    detail = _FORMAT.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else ""
    return LogLine(
        datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        record.levelname.lower(),
        record.name,
        masked(record.getMessage()[: 2 * LONGEST])[:LONGEST],
        record.process or 0,
        said.get("error_id", ""),
        said.get("session", "") or (at.session if at else ""),
        at.thread if at else "",
        at.turn if at else 0,
        masked(detail[-2 * LONGEST :])[-LONGEST:],
    )


_FORMAT = logging.Formatter()


def masked(text: str) -> str:
    for pattern in _secrets() if text else ():
        text = pattern.sub(lambda found: "".join(found.groups()) + MASK, text)
    return text


@cache
def _secrets() -> list[re.Pattern[str]]:
    """What looks like a secret, with what stands before it in a group; the values of variables that are named like
    one."""
    named = {value for name, value in os.environ.items() if _NAMES.search(name) and len(value) >= _SHORTEST}
    forms = {form for value in named for form in forms_of(value)}
    known = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    return [re.compile(shape) for shape in (*SHAPES, *([known] if known else []))]
