"""A guard over the whole suite: a key that a test uses appears neither in a log nor in a file that the test leaves.

It knows a key by its beginning, so a test whose keys begin with PREFIX is guarded. It also knows it in base64, as it
is sent with `Authorization: Basic`. In an address the beginning looks the same.

A key may lie where a test itself has put it: in a settings file, or in a key file. A test that puts it elsewhere, as
where a person tells their key to the agent, says so:

    @pytest.mark.may_hold_keys("everloop.db*")
"""

import logging
import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from stat import S_ISREG

import pytest

PREFIX = "sk-canary"
LOGGERS = ("everloop", "asyncio")
PUT_BY_TESTS = ("config.toml", "config.json", "*.key", "key.txt")
NEVER_PUT_BY_TESTS = "vault.key"
LARGEST = 20_000_000  # bytes; what is larger are the weights of models


def _in_base64(text: bytes) -> Iterator[bytes]:
    """The characters that are the same whatever stands around the text; they depend on where in a group it begins."""
    for before in range(3):
        length = before + len(text)
        yield b64encode(b"\0" * before + text + b"\0\0")[(before * 8 + 5) // 6 : length * 8 // 6]


FORMS = (PREFIX.encode(), *_in_base64(PREFIX.encode()))


def holds_a_key(data: bytes) -> bool:
    return any(form in data for form in FORMS)


class Ear(logging.Handler):
    """Hears all that is logged and keeps what holds a key: a message, or the text of an error beside it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        said = self.format(record)
        if holds_a_key(said.encode("utf-8", "replace")):
            self._heard.append(f"the logger {record.name} has told a key: {said}")

    def told(self) -> list[str]:
        """What was heard since the last time."""
        heard, self._heard = self._heard, []
        return heard

    def listen(self) -> None:
        for name in LOGGERS:
            logging.getLogger(name).addHandler(self)
        logging.getLogger("everloop").setLevel(logging.DEBUG)


def files_with_a_key(folder: Path, allowed: Iterable[str] = ()) -> list[Path]:
    """The files in which a key lies open, but for those whose names fit a pattern."""
    patterns = (*PUT_BY_TESTS, *allowed)
    return [path for path in _files_in(folder) if not _may_hold(path.name, patterns) and holds_a_key(_read(path))]


def leaks_of(item: pytest.Item) -> list[str]:
    """What a test has left in its folder, if it had one."""
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if folder is None:
        return []
    allowed = [name for mark in item.iter_markers("may_hold_keys") for name in mark.args]
    return [f"{path.relative_to(folder)} holds a key" for path in files_with_a_key(folder, allowed)]


def _may_hold(name: str, patterns: Iterable[str]) -> bool:
    return name != NEVER_PUT_BY_TESTS and any(fnmatchcase(name, pattern) for pattern in patterns)


def _files_in(folder: Path) -> Iterator[Path]:
    """Regular files: neither a pipe, which would be waited for, nor what a link leads to."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            try:
                status = path.lstat()
            except OSError:  # a process that was left behind has removed it
                continue
            if S_ISREG(status.st_mode) and status.st_size <= LARGEST:
                yield path


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # a test has closed it to its reader
        return b""
