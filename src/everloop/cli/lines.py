"""Reading what a person types, without holding up the event loop, and leaving the terminal as it was found.

What is pasted is one message, however many lines it has: with bracketed paste the terminal marks its beginning and end,
and GNU readline puts what is between them into the line that is being written. A line that ends with a backslash goes
on in the next one, and so does one at Alt-Enter.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from ..core.errors import MailRefused
from .terminal import mark_pastes, show_prompt

MORE = "… "  # the prompt of a line that goes on


class LineReader:
    """`with LineReader() as lines: await lines.read("> ")` gives a line, or None at the end of the input."""

    def __init__(self) -> None:
        self._restore: Callable[[], None] = lambda: None
        self._reading: asyncio.Future[str | None] | None = None
        self._tty = sys.stdin.isatty()
        self._pastes = False  # whether they are understood

    def __enter__(self) -> "LineReader":
        if self._tty:
            self._restore = _remember_terminal()
            self._pastes = _edit_lines()
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    async def read(self, prompt: str) -> str | None:
        """Raises MailRefused for a line that is not UTF-8; the next one can be read all the same.

        A line that nobody waited for any more goes to whoever reads next."""
        if self._reading is None:
            self._reading = self._begin(prompt)
        elif self._tty:
            show_prompt(prompt)  # a question stands there that nobody answers any more
        reading = self._reading
        try:
            return await asyncio.shield(reading)
        finally:
            if reading.done():
                self._reading = None

    def _begin(self, prompt: str) -> "asyncio.Future[str | None]":
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str | None] = loop.create_future()

        def settle(text: str | None, refused: bool) -> None:
            if line.done():
                return
            if refused:
                line.set_exception(MailRefused("that line is not valid UTF-8 text; it was not sent"))
            else:
                line.set_result(text)

        def wait() -> None:
            text, refused = None, False
            try:
                text = _message(prompt) if self._tty else _next_line()
            except UnicodeDecodeError:
                refused = True
            if self._pastes:  # readline has just ended this, but one may paste while an answer comes, too
                mark_pastes(True)
            loop.call_soon_threadsafe(settle, text, refused)

        # A thread of its own, and not a pool's: nobody waits for it when the program ends at the prompt.
        threading.Thread(target=wait, daemon=True).start()
        return line


def _edit_lines() -> bool:
    """Give input() its line editing; says whether that understands pastes. libedit, which some builds of Python have
    instead of GNU readline, does not."""
    import readline

    if "libedit" in (readline.__doc__ or ""):
        return False
    readline.parse_and_bind("set enable-bracketed-paste on")
    readline.parse_and_bind("set enable-active-region off")  # else what was pasted is shown in reverse
    readline.parse_and_bind(r'"\e\C-m": "\C-v\C-j"')
    return True


def _message(prompt: str) -> str | None:
    """One line, or several of which each but the last ends with a backslash or was pasted."""
    line = _input(prompt)
    while line is not None and _goes_on(line):
        line = f"{line[:-1]}\n{_input(MORE) or ''}"
    return line.rstrip("\n") if line is not None else None


def _goes_on(line: str) -> bool:
    """Whoever wants to end with a backslash writes two."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _input(prompt: str) -> str | None:
    try:
        return input(prompt)
    except EOFError:
        return None


def _next_line() -> str | None:
    data = sys.stdin.buffer.readline()
    return data.decode().rstrip("\n") if data else None


def _remember_terminal() -> Callable[[], None]:
    try:
        import termios
    except ImportError:  # no POSIX terminal to restore
        return lambda: None
    file = sys.stdin.fileno()
    attributes: list[Any] = termios.tcgetattr(file)

    def restore() -> None:
        if os.isatty(file):
            termios.tcsetattr(file, termios.TCSADRAIN, attributes)
            mark_pastes(False)

    return restore
