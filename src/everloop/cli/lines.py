"""Reading what a person types, without holding up the event loop, and leaving the terminal as it was found."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from ..core.errors import MailRefused
from .terminal import show_prompt


class Lines:
    """`with Lines() as lines: await lines.read("> ")` gives a line, or None at the end of the input."""

    def __init__(self) -> None:
        self._restore: Callable[[], None] = lambda: None
        self._reading: asyncio.Future[str | None] | None = None
        self._tty = sys.stdin.isatty()

    def __enter__(self) -> "Lines":
        if self._tty:
            self._restore = _remember_terminal()
            import readline  # noqa: F401  # gives input() its line editing
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
                text = _input(prompt) if self._tty else _next_line()
            except UnicodeDecodeError:
                refused = True
            loop.call_soon_threadsafe(settle, text, refused)

        # A thread of its own, and not a pool's: nobody waits for it when the program ends at the prompt.
        threading.Thread(target=wait, daemon=True).start()
        return line


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

    return restore
