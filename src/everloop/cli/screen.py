"""Where text meets the terminal. Whatever is written to a Screen is shown and none of it is obeyed; codes of our own go
through `steer`.

`guard_streams` puts one in the place of stdout and of stderr, before anything else of a command runs, so that also what
Python itself says (a traceback, a warning, the usage of an option) and what a plugin prints go through it. Where stdout
is no terminal, text stays as it is, byte for byte, for scripts; what is on stderr is for people wherever it ends up.
"""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from ..readings.visible import visible
from .below import Below


class Screen:
    def __init__(self, stream: TextIO, exact: bool) -> None:
        """With `exact`, text is passed on as it is."""
        self._stream = stream
        self._exact = exact
        self._held = ""  # half the end of a line, if its other half comes with the next piece
        self._below: Below | None = None
        if isinstance(stream, io.TextIOWrapper) and (not exact or stream.errors == "strict"):
            stream.reconfigure(errors="backslashreplace")  # what its encoding has no letter for

    @classmethod
    def of_answers(cls, stream: TextIO) -> "Screen":
        return stream if isinstance(stream, Screen) else cls(stream, exact=not stream.isatty())

    @classmethod
    def of_notes(cls, stream: TextIO) -> "Screen":
        return stream if isinstance(stream, Screen) else cls(stream, exact=False)

    @property
    def terminal(self) -> TextIO:
        """Where it ends up, for what draws by itself."""
        return self._stream

    def stand_over(self, below: Below) -> None:
        """Whatever is written from now on stands above this line, if both are at the terminal."""
        if self._stream.isatty() and below.works:
            self._below = below

    def write(self, text: str) -> int:
        if self._exact:
            return self._stream.write(text)
        whole = self._held + text
        self._held = "\r" if whole.endswith("\r") else ""
        self._put(visible(whole.removesuffix("\r")))
        return len(text)

    def _put(self, text: str) -> None:
        with _waiting_for(self._stream):
            if self._below is None:
                self._stream.write(text)
            else:
                self._below.write(text, self._stream)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def steer(self, code: str) -> None:
        """Pass a code of our own on to the terminal."""
        self._put(code)

    def flush(self) -> None:
        with _waiting_for(self._stream):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _waiting_for(stream: TextIO) -> Iterator[None]:
    """A terminal that is read from by uvloop takes only as much at once as it has room for, and the rest is an error:
    whoever writes waits for it meanwhile."""
    try:
        is_at_once = stream.isatty() and not os.get_blocking(stream.fileno())
    except (OSError, ValueError):  # it is closed, or no file
        is_at_once = False
    if not is_at_once:
        yield
        return
    os.set_blocking(stream.fileno(), True)
    try:
        yield
    finally:
        os.set_blocking(stream.fileno(), False)


def guard_streams() -> None:
    sys.stdout = cast(TextIO, Screen.of_answers(sys.stdout))
    sys.stderr = cast(TextIO, Screen.of_notes(sys.stderr))
