"""The line below an answer, in which one sees what one types while it comes. It moves out of the way of whatever is
written, and comes back below it.

Where the answer has got to is kept by the terminal itself (DECSC, DECRC), after making sure that there is a line below
(IND). Only whether a line is full has to be known here: a terminal that has filled one waits with its next one until
there is something to write in it, and forgets that it waits when it is told to move.
"""

import asyncio
import os
import re
from typing import TextIO

from ..readings.visible import in_one_line
from .cells import fitting, width

MAKE_ROOM, REMEMBER, BACK = "\x1bD\x1b[A", "\x1b7", "\x1b8\x1b[J"
TAB = 8
SOME = 80  # columns, of a terminal that does not tell


class Below:
    def __init__(self, stream: TextIO) -> None:
        """Of a terminal. One that understands no codes shows nothing here: it echoes what is typed by itself."""
        self._stream = stream
        self.works = stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
        self._text = ""
        self._is_drawn = False
        self._is_due = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._column = 0  # of the line above: letters that it has
        self._has_ended = False  # that line was full, and we have ended it

    def begin(self) -> None:
        """The terminal is at the beginning of a line."""
        self._column, self._has_ended = 0, False

    def show(self, text: str) -> None:
        """From now on, this; or nothing."""
        if self.works:
            self._loop = asyncio.get_running_loop()
            self.lift()
            self._text = text
            self.lower()

    def write(self, text: str, stream: TextIO) -> None:
        """Write something above, to a stream of the same terminal, with what is typed out of the way."""
        self.lift()
        if self._has_ended and text.startswith("\n"):
            text = text[1:]
        self._has_ended = self._has_ended and not text
        self._column = after(text, self._column, self.columns())
        stream.write(text)
        self.lower_soon()

    def lift(self) -> None:
        if self._is_drawn:
            self._is_drawn = False
            self._stream.write(BACK)
            self._stream.flush()

    def lower_soon(self) -> None:
        """After it was, perhaps by another thread: when all that is written at once is there."""
        if self._text and self._loop and not self._is_due:
            self._is_due = True
            self._loop.call_soon_threadsafe(self.lower)

    def lower(self) -> None:
        self._is_due = False
        if self._text and not self._is_drawn:
            self._is_drawn = True
            columns = self.columns()
            end = "\r\n" if self._column >= columns else ""
            if end:
                self._column, self._has_ended = 0, True
            shown = fitting(in_one_line(self._text.replace("\n", "⏎")), columns - 1)
            self._stream.write(f"{end}{MAKE_ROOM}{REMEMBER}\r\n{shown}")
            self._stream.flush()

    def columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or SOME
        except OSError:
            return SOME


_CODES = re.compile(r"\x1b\[[0-?]*[@-~]")


def after(text: str, column: int, columns: int) -> int:
    """In which column a terminal is after this, if it was in another before; one that is full stays so."""
    for letter in _CODES.sub("", text):
        if letter in "\r\n":
            column = 0
        elif letter == "\t":
            column = min(column // TAB * TAB + TAB, columns - 1)
        else:
            cells = width(letter)
            column = column + cells if column + cells <= columns else cells
    return column
