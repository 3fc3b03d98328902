"""The rich chat, from the first moment: the prompt is there first, and the house opens while one types.

Only what draws the prompt is loaded here; `conversation` loads the rest. What is sent before the house is open waits
for it. Whatever goes wrong, the terminal is as it was afterwards.
"""

import argparse
import asyncio
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Any, Protocol, TextIO, cast

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition

from ...readings.commands import command_in
from ...readings.visible import in_one_line, visible
from ...settings import home_of
from ..first_time import FIRST_TIME, is_first_time
from ..screen import Screen
from ..session_key import DIRECT, session_key
from ..terminal import WrongUse
from .completion import ChatCompleter, NameSources
from .folding import Folded
from .history import FILE, TypedHistory
from .keyboard import Keyboard
from .keys import Deeds, chat_keys
from .mentions import begun
from .window import ChatWindow, Scene

AGAIN = "(Ctrl-C once more leaves, and so does Ctrl-D)"
LEAVES = "(leaves when this is over; Ctrl-C stops it)"
OPENING = "opening …"


class Backend(Protocol):
    """What stands behind the prompt: it says what is drawn there, and is told what happens at it."""

    @property
    def sources(self) -> NameSources: ...
    def live(self, rows: int) -> str: ...
    def status(self, cells: int) -> str: ...
    def drain(self) -> None: ...
    def moves(self) -> bool: ...
    def echo(self, prompt: str, line: str) -> None: ...
    def popped(self, line: str) -> None: ...
    def run(self, command: str) -> None: ...
    def turned(self, begins: bool) -> None: ...
    def asked(self) -> None: ...
    def came(self) -> None: ...
    def leave(self) -> None: ...


class NotOpenYet:
    """The Backend until the house is open; it keeps the commands that are to run then."""

    sources = NameSources()

    def __init__(self, note: Callable[[str], None], stop: Callable[[], None]) -> None:
        self._note = note
        self._stop = stop
        self.commands: list[str] = []

    def live(self, rows: int) -> str:
        return ""

    def status(self, cells: int) -> str:
        return OPENING[:cells]

    def drain(self) -> None:
        pass

    def moves(self) -> bool:
        return False

    def echo(self, prompt: str, line: str) -> None:
        pass

    def popped(self, line: str) -> None:
        pass

    def run(self, command: str) -> None:
        self.commands.append(command)
        self._note("(it is run when everything is loaded)")

    def turned(self, begins: bool) -> None:
        pass

    def asked(self) -> None:
        pass

    def came(self) -> None:
        pass

    def leave(self) -> None:
        self._stop()


class RichChat:
    """The parts of a chat at a terminal that can be drawn on; `conversation.talk_in` brings them to life."""

    def __init__(self, home: Path, stdin: TextIO, stdout: TextIO) -> None:
        self.home = home
        self.keyboard = Keyboard(
            turned=lambda begins: self._backend.turned(begins),
            popped=lambda line: self._backend.popped(line),
            asked=lambda: self._backend.asked(),
            answered=lambda: self.buffer.cancel_completion(),
            came=lambda: self._backend.came(),
        )
        self._early = NotOpenYet(self.note, self.keyboard.stop)
        self._backend: Backend = self._early
        self.folded = Folded()
        self.history = TypedHistory(home / FILE, self.folded)
        self.running: list[asyncio.Task[None]] = []  # typed commands
        self.buffer = Buffer(
            completer=ChatCompleter(lambda: self._backend.sources, lambda: self.keyboard.answers),
            complete_while_typing=Condition(self._completes),
            history=self.history,
            multiline=True,
        )
        deeds = Deeds(
            self._send,
            self._interrupt,
            self._leave,
            self._edit,
            self._picture,
            self._is_early,
            lambda: bool(self.running),
        )
        scene = Scene(
            prompt=lambda: self.keyboard.prompt,
            live=self._live,
            status=lambda cells: self._backend.status(cells),
            drain=lambda: self._backend.drain(),
            moves=lambda: self._backend.moves(),
        )
        keys = chat_keys(self.keyboard, self.folded, deeds)
        self.window = ChatWindow(stdin, stdout, self.buffer, keys, scene)
        self.tasks: set[asyncio.Task[None]] = set()

    def join(self, backend: Backend) -> None:
        """The house is open, and there is a home."""
        self._backend = backend
        self.history.keep()
        for command in self._early.commands:
            backend.run(command)

    def _is_early(self) -> bool:
        self.window.read_early()
        return self.window.is_early

    def note(self, text: str) -> None:
        lines = (fill(line, max(8, self.window.columns), break_on_hyphens=False) for line in visible(text).split("\n"))
        self.window.print("\n".join(f"\x1b[2m{line}\x1b[0m" for line in "\n".join(lines).split("\n")))

    def begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Have something go on beside the conversation."""
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.note(f"everloop: {error}")

    def _live(self, rows: int) -> str:
        waiting = [LEAVES if line is None else f"> {in_one_line(line)}" for line in self.keyboard.waiting]
        return "\n".join(filter(None, (*waiting[-rows:], self._backend.live(rows - len(waiting)))))

    def _completes(self) -> bool:
        """Without being asked: what begins with a slash, or names a file."""
        before = self.buffer.document.text_before_cursor
        is_command = before.startswith("/") and "\n" not in before
        return bool(self.keyboard.answers) or is_command or bool(begun(before))

    def _send(self, later: bool) -> None:
        text, prompt = self.buffer.text, self.keyboard.prompt
        if not text.strip() and not self.keyboard.is_asked:
            return
        line = self.folded.unfold(text).rstrip("\n")
        if command_in(line) and not command_in(text):  # of a folded paste nobody sees how it begins
            line = f"/{line.lstrip()}"
        if not self.keyboard.is_asked:
            self.history.append_string(text.rstrip("\n"))
        self.buffer.reset()
        if line.lstrip() in ("/resume", "/tree") and self._backend.sources.names and not self.keyboard.is_asked:
            self._choose(line.strip())
            return
        self._backend.echo(prompt, text)
        if text.startswith("!") and line[1:].strip() and not self.keyboard.is_asked:
            self._backend.run(line[1:].strip())
        else:
            self.keyboard.send(line, later)

    def _choose(self, command: str) -> None:
        """One of those that there are, from a list."""
        self.buffer.insert_text(f"{command} ")
        self.buffer.start_completion(select_first=False)

    def _interrupt(self) -> None:
        if self.keyboard.can_stop:
            self.keyboard.stop()
        elif self.running:
            self.running[-1].cancel()
        elif self.buffer.text:
            self.history.append_string(self.buffer.text)
            self.buffer.reset()
        elif self.keyboard.wants_to_leave():
            self.keyboard.stop()
        else:
            self.note(AGAIN)

    def _leave(self) -> None:
        if self.keyboard.is_busy:  # also at a question, which that does not answer
            self._backend.echo("> ", "/exit")
            self.keyboard.send("/exit", later=True)
        elif self.keyboard.is_reading:
            self.keyboard.send(None)
        else:
            self._backend.leave()

    def _edit(self) -> None:
        from .editor import edit_text

        self.begin(edit_text(self.window, self.buffer, self.folded, self.note))

    def _picture(self) -> None:
        self.begin(self._fetch_picture())

    async def _fetch_picture(self) -> None:
        from .clipboard import NoPicture, fetch_picture
        from .editor import keep_for_now

        try:
            data = await fetch_picture()
        except NoPicture as error:
            self.note(f"({error})")
            return
        self.buffer.insert_text(self.folded.picture(keep_for_now(data, ".png")))
        self.window.redraw()


async def run_rich(arguments: argparse.Namespace) -> int:
    session = session_key(DIRECT if arguments.session is None else arguments.session)
    if arguments.resume and arguments.session is not None:
        raise WrongUse("--continue goes on with the session that was active last, -s with the one it names: say one")
    home = home_of(os.environ)
    chat = RichChat(home, sys.stdin, Screen.of_answers(sys.stdout).terminal)
    loop = asyncio.get_running_loop()
    async with chat.window.open() as drawn:
        if is_first_time():
            chat.note(FIRST_TIME)
        with _printing_above(chat.window, loop):
            talking = asyncio.ensure_future(_talk(chat, arguments, session))
            loop.add_signal_handler(signal.SIGINT, chat._interrupt)
            try:
                with chat.keyboard.on_interrupt(lambda: _cancel(talking)):
                    both: set[asyncio.Future[Any]] = {talking, drawn}
                    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                    return await _result(chat, talking, drawn)
            finally:
                loop.remove_signal_handler(signal.SIGINT)
                await end_all(talking, *chat.tasks)


async def _talk(chat: RichChat, arguments: argparse.Namespace, session: str) -> int:
    # In a thread, so that keys are answered meanwhile.
    module = await asyncio.to_thread(import_module, ".conversation", __package__)
    return cast(int, await module.talk_in(chat, arguments, session))


async def _result(chat: RichChat, talking: "asyncio.Task[int]", drawn: "asyncio.Future[None]") -> int:
    if drawn.done():
        if (error := drawn.exception()) is not None and not isinstance(error, EOFError):
            raise error
        chat.keyboard.end()  # the terminal is gone
        if chat.keyboard.is_busy or chat.keyboard.is_asked:
            talking.cancel()
        await asyncio.wait({talking})
    try:
        return talking.result()
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _cancel(task: "asyncio.Task[int]") -> None:
    task.cancel()


async def end_all(*tasks: "asyncio.Task[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _printing_above(window: ChatWindow, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """What anything else prints, a plugin or a warning of Python's, stands above, as text."""
    before = sys.stdout, sys.stderr
    above = cast(TextIO, _Above(window, loop))
    sys.stdout = sys.stderr = above
    try:
        yield
    finally:
        above.flush()
        sys.stdout, sys.stderr = before


class _Above(io.TextIOBase):
    def __init__(self, window: ChatWindow, loop: asyncio.AbstractEventLoop) -> None:
        self._window = window
        self._loop = loop
        self._thread = threading.get_ident()
        self._rest = ""

    def write(self, text: str) -> int:
        whole, newline, self._rest = (self._rest + text).rpartition("\n")
        if newline:
            self._print(whole)
        return len(text)

    def flush(self) -> None:
        rest, self._rest = self._rest, ""
        if rest:
            self._print(rest)

    def _print(self, text: str) -> None:
        shown = visible(text)
        if threading.get_ident() == self._thread:
            self._window.print(shown)
        else:
            with suppress(RuntimeError):  # the loop is closed: a thread has outlived the chat
                self._loop.call_soon_threadsafe(self._window.print, shown)
