"""Reading what a person types, without holding up the event loop, and leaving the terminal as it was found.

What is pasted is one message, however many lines it has: with bracketed paste the terminal marks its beginning and end,
and GNU readline puts what is between them into the line that is being written. A line that ends with a backslash goes
on in the next one, and so does one at Alt-Enter.

While an answer comes nobody waits at a prompt, and what is typed is read here, key by key: `listening`. What is not
finished by then stands in the next prompt.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import MailRefused
from .chat.front import Display
from .terminal import Terminal, mark_pastes, show_prompt
from .typed import LEAVE, TypedLine, goes_on

HELP = """Keys:
Enter says it; Alt-Enter, or a backslash before Enter, begins a new line; a paste is one message
while it works, Enter steers it, and Ctrl-C stops it
↑ ↓ and Ctrl-R find what you typed before; Ctrl-D leaves"""
MORE = "… "  # the prompt of a line that goes on


class LineReader:
    """`with LineReader() as lines: await lines.read("> ")` gives a line, or None at the end of the input."""

    confirms_leaving = False

    def __init__(self) -> None:
        self._restore: Callable[[], None] = lambda: None
        self._reading: asyncio.Future[str | None] | None = None
        self._tty = sys.stdin.isatty()
        self.help = HELP if self._tty else ""
        self._pastes = False  # whether they are understood
        self._listener: _Listener | None = None
        self._begun = ""  # a line that is not finished

    def __enter__(self) -> "LineReader":
        if self._tty:
            self._restore = _remember_terminal()
            self._pastes = _edit_lines()
            if self._pastes:
                _set_terminal(by_line=False)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    async def read(self, prompt: str) -> str | None:
        """Raises MailRefused for a line that is not UTF-8; the next one can be read all the same.

        A line that nobody waited for any more goes to whoever reads next."""
        if self._listener:
            self._listener.pause()
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
                if self._listener:
                    self._listener.go_on()

    async def ask(self, prompt: str, answers: Iterable[str] = ()) -> str | None:
        return await self.read(prompt)

    def redraw(self, prompt: str) -> None:
        show_prompt(f"{prompt}{self.begun}")

    @contextmanager
    def on_interrupt(self, call: Callable[[], None]) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, call)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    @contextmanager
    def listening(self, take: Callable[[str, bool], None], display: Display) -> Iterator[None]:
        """Of a Terminal alone is known how it shows what is typed meanwhile."""
        if not self._tty or not isinstance(display, Terminal):
            yield
            return
        self._listener = _Listener(take, display)
        if self._reading is None:
            self._listener.go_on()
        try:
            yield
        finally:
            self._begun = self._listener.end()
            self._listener = None

    @property
    def begun(self) -> str:
        """What stands in the line at the prompt."""
        if not self._pastes or self._reading is None:
            return ""
        import readline

        return readline.get_line_buffer()

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

        if self._pastes:
            _prefill(self._begun)
        self._begun = ""

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
    while line is not None and goes_on(line):
        line = f"{line[:-1]}\n{_input(MORE) or ''}"
    return line.rstrip("\n") if line is not None else None


def _input(prompt: str) -> str | None:
    try:
        return input(prompt)
    except EOFError:
        return None


def _next_line() -> str | None:
    data = sys.stdin.buffer.readline()
    return data.decode().rstrip("\n") if data else None


def _prefill(text: str) -> None:
    """Let the next line begin with this."""
    import readline

    readline.set_startup_hook((lambda: readline.insert_text(text)) if text else None)


class _Listener:
    """Reads keys while nobody waits at a prompt. A terminal that can show them in a line of their own does not echo
    them by itself meanwhile; Ctrl-C stays what it is."""

    def __init__(self, take: Callable[[str, bool], None], terminal: Terminal) -> None:
        self._take = take
        self._terminal = terminal
        self._typed = TypedLine()
        self._restore: Callable[[], None] | None = None  # while it listens
        self._loop = asyncio.get_running_loop()
        self._loop.add_signal_handler(signal.SIGCONT, self._be_quiet)  # a shell may have changed it meanwhile

    def go_on(self) -> None:
        if self._restore is None:
            self._restore = _remember_terminal(mark=False)
            if self._terminal.shows_below:
                self._be_quiet()
            else:  # the terminal shows it, and takes back what is rubbed out
                _set_terminal(by_line=True)
            self._loop.add_reader(sys.stdin.fileno(), self._read)
            self._terminal.begin_below()
            self._terminal.type_below(self._typed.text)

    def pause(self) -> None:
        if self._restore is not None:
            self._loop.remove_reader(sys.stdin.fileno())
            self._terminal.type_below("")
            self._restore()
            self._restore = None

    def end(self) -> str:
        """What was not finished."""
        self.pause()
        self._loop.remove_signal_handler(signal.SIGCONT)
        return self._typed.text

    def _be_quiet(self) -> None:
        if self._restore is not None and self._terminal.shows_below:
            _set_terminal(by_line=False, echo=False)

    def _read(self) -> None:
        try:
            data = os.read(sys.stdin.fileno(), 65_536)
        except OSError:
            data = b""
        if not data:  # Ctrl-D, or the terminal is gone
            self._loop.remove_reader(sys.stdin.fileno())
            self._take(LEAVE, False)
            return
        lines = self._typed.feed(data)
        self._terminal.type_below(self._typed.text)
        for line in lines:
            if line.strip():
                self._take(line, False)


def _set_terminal(by_line: bool, echo: bool = True) -> None:
    """Keys come as they are pressed, or by the line, and are echoed or not.

    By the line a Ctrl-D is no key, but an end that is there for whoever is just reading: pressed between two who read,
    it is lost with the change to keys. So a chat whose prompt is GNU readline's takes keys all the time."""
    try:
        import termios
    except ImportError:
        return
    file = sys.stdin.fileno()
    attributes: list[Any] = termios.tcgetattr(file)
    for flag, wanted in ((termios.ICANON, by_line), (termios.ECHO, echo)):
        attributes[3] = attributes[3] | flag if wanted else attributes[3] & ~flag
    termios.tcsetattr(file, termios.TCSANOW, attributes)


def _remember_terminal(mark: bool = True) -> Callable[[], None]:
    try:
        import termios
    except ImportError:  # no POSIX terminal to restore
        return lambda: None
    file = sys.stdin.fileno()
    attributes: list[Any] = termios.tcgetattr(file)

    def restore() -> None:
        if os.isatty(file):
            termios.tcsetattr(file, termios.TCSADRAIN, attributes)
            if mark:
                mark_pastes(False)

    return restore
