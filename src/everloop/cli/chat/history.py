"""What was typed, from chat to chat: a file in the home that its owner alone can read, one message of JSON a line.

A message that holds long pastes is kept as a `FoldedMessage`, so that it comes back folded and can be sent whole. What
begins with a space is not kept. Two chats may write at once: each line is one write at the end of the file.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct
from prompt_toolkit.history import History

from .folding import Folded

FILE = "history"
LONGEST = 100_000  # bytes of one message in the file; what is longer is there until the chat ends
MOST_BYTES = 1_000_000  # of the file, of which half is left when it is longer


class FoldedMessage(Struct, frozen=True):
    """As it stood in the line, and what was pasted, by the words in brackets that stand for it."""

    text: str
    pasted: dict[str, str]


class TypedHistory(History):
    """Of texts as they stand in the line; what is behind their words in brackets `folded` knows."""

    def __init__(self, path: Path, folded: Folded) -> None:
        super().__init__()
        self._path = path
        self._folded = folded
        self._last = ""
        self._unkept = b""  # lines that are not in the file, for there is no home yet

    def append_string(self, string: str) -> None:
        if string.strip() and not string.startswith(" ") and string != self._last:
            self._last = string
            super().append_string(string)

    def load_history_strings(self) -> Iterable[str]:
        """The latest first."""
        try:
            data = self._path.read_bytes() if self._path.is_file() else b""
        except OSError:  # it cannot be read, which is no reason not to talk
            return []
        if len(data) > MOST_BYTES:
            data = data[-MOST_BYTES // 2 :].partition(b"\n")[2]
            self._write(data, os.O_TRUNC)
        return [text for line in reversed(data.splitlines()) if (text := self._text(_decoded(line)))]

    def store_string(self, string: str) -> None:
        pasted = self._folded.behind(string)
        line = msgspec.json.encode(FoldedMessage(string, pasted) if pasted else string) + b"\n"
        if len(line) <= LONGEST:
            self._unkept += line
            self.keep()

    def keep(self) -> None:
        """Write what was typed before there was a home."""
        if self._unkept and self._write(self._unkept, os.O_APPEND):
            self._unkept = b""

    def _text(self, kept: str | FoldedMessage) -> str:
        return kept if isinstance(kept, str) else self._folded.take_in(kept.text, kept.pasted)

    def _write(self, data: bytes, how: int) -> bool:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | how
        try:
            with open(os.open(self._path, flags, 0o600), "wb", buffering=0) as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(data)
        except OSError:  # a home that cannot be written to, or is full, is told of by whoever opens it
            return False
        return True


def _decoded(line: bytes) -> str | FoldedMessage:
    try:
        return msgspec.json.decode(line, type=str | FoldedMessage)
    except msgspec.DecodeError:  # half a line of a process that was killed
        return ""
