"""A guard over the whole suite: a key that a test uses appears neither in a log, at DEBUG, nor in a file that the test
leaves, nor in what it or a command that it runs prints.

It knows a key by its beginning, so a test whose keys begin with PREFIX is guarded. It knows it in six encodings: as it
is, which is how JSON, a shell and an address write the beginning as well; in base64, of either alphabet, as it is sent
with `Authorization: Basic`; in hexadecimal; with every byte escaped as in an address (%73); with every letter escaped
as in JSON (\\u0073); and in UTF-16. It looks into what is compressed (zip, gzip), too.

A key may lie where a test itself has put it: in a settings file, or in a key file. A test that puts it elsewhere, as
where a person tells their key to the agent, says so:

    @pytest.mark.may_hold_keys("everloop.db*")
"""

import fnmatch
import gzip
import io
import logging
import lzma
import os
import re
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from everloop.cli import logbook

PREFIX = "sk-canary"
LOGGERS = ("everloop", "asyncio", "aiohttp", "asyncpg", "")
PUT_BY_TESTS = ("config.toml", "config.json", "*.key", "key.txt")
NEVER_PUT_BY_TESTS = "vault.key"
PRINTED = "a command"  # where a key is told; a test whose command shows one on purpose says so, as of a file
LARGEST = 20_000_000  # bytes; what is larger are the weights of models


def _in_base64(text: bytes) -> Iterator[bytes]:
    """The characters that are the same whatever stands around the text; they depend on where in a group it begins."""
    for before in range(3):
        length = before + len(text)
        yield b64encode(b"\0" * before + text + b"\0\0")[(before * 8 + 5) // 6 : length * 8 // 6]


def _escaped(text: bytes, mark: str) -> Iterator[bytes]:
    for case in "xX":
        yield "".join(f"{mark}{byte:02{case}}" for byte in text).encode()


def _forms(text: bytes) -> dict[str, set[bytes]]:
    return {
        "plain": {text},
        "base64": {*_in_base64(text)},
        "hexadecimal": {*_escaped(text, "")},
        "percent": {*_escaped(text, "%")},
        "unicode escapes": {*_escaped(text, r"\u00")},
    }


FORMS = _forms(PREFIX.encode())
_ALL = tuple(form for forms in FORMS.values() for form in forms)


def holds_a_key(data: bytes) -> bool:
    """Without its zeros UTF-16 is plain, and a database is small."""
    dense = data.translate(None, b"\0")
    return any(form in dense for form in _ALL) or any(holds_a_key(part) for part in _inside(data))


def _inside(data: bytes) -> Iterator[bytes]:
    """What is compressed in it, of a file that is nothing else; what is broken holds nothing that can be read."""
    broken = (zlib.error, lzma.LZMAError, zipfile.BadZipFile)
    with suppress(OSError, EOFError, RuntimeError, NotImplementedError, *broken):
        if data.startswith(b"\x1f\x8b"):
            yield gzip.decompress(data)
        elif data.startswith(b"PK\3\4"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                small = [each for each in archive.infolist() if each.file_size <= LARGEST]
                yield from (archive.read(each) for each in small)


class Ear(logging.Handler):
    """Hears all that is logged and keeps what holds a key: a message, or the text of an error beside it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._heard: list[str] = []
        self._last: logging.LogRecord | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record is not self._last:  # it goes on to the root, where we listen as well
            self._last = record
            self.hear(f"the logger {record.name}", self.format(record))

    def hear(self, where: str, said: str) -> None:
        if holds_a_key(said.encode("utf-8", "replace")):
            self._heard.append(f"{where} has told a key: {said}")

    def told(self) -> list[str]:
        """What was heard since the last time. Commands that ran in this process have changed what is said."""
        heard, self._heard = self._heard, []
        logging.getLogger("everloop").setLevel(logging.DEBUG)
        for logger in map(logging.getLogger, logbook.LOGGERS):
            logger.propagate = True
            for book in [each for each in logger.handlers if isinstance(each, logbook.LogFile)]:
                logger.removeHandler(book)
                book.close()
        return heard

    def listen(self) -> None:
        for name in LOGGERS:
            logging.getLogger(name).addHandler(self)
        for name in LOGGERS[:-1]:
            logging.getLogger(name).setLevel(logging.DEBUG)


EAR = Ear()  # of this run


def printed_by(report: pytest.TestReport) -> list[str]:
    """The streams on which a test has printed a key."""
    streams = {"stdout": report.capstdout, "stderr": report.capstderr}
    return [f"{name} holds a key" for name, text in streams.items() if holds_a_key(text.encode("utf-8", "replace"))]


def files_with_a_key(folder: Path, allowed: Iterable[str] = ()) -> list[Path]:
    """The files in which a key lies open, but for those whose names fit a pattern."""
    patterns = (*PUT_BY_TESTS, *allowed)
    may_hold = _matcher(patterns)
    return [Path(path) for path in _files_in(str(folder)) if not may_hold(_name_of(path)) and holds_a_key(_read(path))]


def leaks_of(item: pytest.Item) -> list[str]:
    """What was heard while a test ran, and what it has left in its folder, if it had one."""
    allowed = [name for mark in item.iter_markers("may_hold_keys") for name in mark.args]
    heard = [each for each in EAR.told() if not (PRINTED in allowed and each.startswith(PRINTED))]
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    return [*heard, *(_left_in(folder, allowed) if folder else [])]


def _left_in(folder: Path, allowed: list[str]) -> list[str]:
    return [f"{path.relative_to(folder)} holds a key" for path in files_with_a_key(folder, allowed)]


@cache
def _matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    fits = re.compile("|".join(map(fnmatch.translate, patterns))).match
    return lambda name: name != NEVER_PUT_BY_TESTS and fits(name) is not None


def _name_of(path: str) -> str:
    return path.rpartition("/")[2]


def _files_in(folder: str) -> Iterator[str]:
    """Regular files that are not empty: neither a pipe, which would be waited for, nor what a link leads to. In plain
    calls of the system, since this is done after every test."""
    folders = [folder]
    while folders:
        try:
            entries = [*os.scandir(folders.pop())]
        except OSError:  # a process that was left behind has removed it, or a test has closed it to its reader
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.is_file(follow_symlinks=False) and 0 < _size_of(entry) <= LARGEST:
                yield entry.path


def _size_of(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""
