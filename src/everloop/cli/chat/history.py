"""What was typed, from chat to chat: a file in the home that its owner alone can read, one message of JSON a line.

What begins with a space is not kept. Two chats may write at once: each line is one write at the end of the file.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from prompt_toolkit.history import History

FILE = "history"
LONGEST = 20_000  # letters of one message; what is longer is not kept
MOST_BYTES = 1_000_000  # of the file, of which half is left when it is longer


class TypedHistory(History):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._last = ""

    def append_string(self, string: str) -> None:
        if string.strip() and not string.startswith(" ") and string != self._last and len(string) <= LONGEST:
            self._last = string
            super().append_string(string)

    def load_history_strings(self) -> Iterable[str]:
        """The latest first."""
        try:
            data = self._path.read_bytes()
        except OSError:  # none yet; or it cannot be read, which is no reason not to talk
            return []
        if len(data) > MOST_BYTES:
            data = data[-MOST_BYTES // 2 :].partition(b"\n")[2]
            self._write(data, os.O_TRUNC)
        return [text for line in reversed(data.splitlines()) if (text := _decoded(line))]

    def store_string(self, string: str) -> None:
        self._write(msgspec.json.encode(string) + b"\n", os.O_APPEND)

    def _write(self, data: bytes, how: int) -> None:
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | how, 0o600)
        except OSError:  # a home that cannot be written to is told of by whoever opens it
            return
        try:
            os.fchmod(file, 0o600)
            os.write(file, data)
        finally:
            os.close(file)


def _decoded(line: bytes) -> str:
    try:
        return msgspec.json.decode(line, type=str)
    except msgspec.DecodeError:  # half a line of a process that was killed
        return ""
