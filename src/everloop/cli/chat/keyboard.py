"""What is typed, and whom it is for: who reads at the prompt, who has asked something, or the turn that goes on.

What is sent while nobody takes it, as when the house is still opening, waits for the prompt; it never answers a
question that comes in between, which its writer has not seen.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from .front import Display

TWICE = 2.0  # seconds in which a second Ctrl-C is meant as one
PROMPT = "> "

HELP = """Keys:
Enter says it; Alt-Enter or Ctrl-J begins a new line; a long paste is folded and sent whole
while it works, Enter steers it, Tab or Alt-Q queues what you typed, Esc or Ctrl-C stops it
Tab completes; @file sends a file along, !command runs a command here, Ctrl-V takes a picture from the clipboard
↑ ↓ and Ctrl-R find what you typed before; Ctrl-X Ctrl-E opens your editor; Ctrl-L clears the screen
Ctrl-Z puts the chat aside until fg; Ctrl-D leaves, and so does Ctrl-C twice"""

Take = Callable[[str, bool], None]


class Keyboard:
    """The TypedLines of the rich chat."""

    help = HELP
    confirms_leaving = True
    begun = ""  # stands below whatever is shown, by itself

    def __init__(
        self,
        *,
        turned: Callable[[bool], None],
        popped: Callable[[str], None],
        asked: Callable[[], None],
        answered: Callable[[], None],
        came: Callable[[], None],
    ) -> None:
        """`turned` is told when a turn begins and ends, `popped` of what has waited, when it is taken, `asked` when a
        question waits, `answered` when it does no longer, and `came` when something was shown that has come by
        itself."""
        self._turned, self._popped, self._asked, self._answered, self._came = turned, popped, asked, answered, came
        self.prompt = PROMPT
        self.answers: tuple[str, ...] = ()  # that a question takes
        self.waiting: deque[str | None] = deque()  # what was sent while nobody took it
        self._reading: asyncio.Future[str | None] | None = None
        self._is_asked = False
        self._take: Take | None = None
        self._interrupts: list[Callable[[], None]] = []
        self._pressed = 0.0
        self._is_gone = False  # nothing more can be typed

    def __enter__(self) -> "Keyboard":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def is_busy(self) -> bool:
        """Whether a turn goes on, which can be steered and stopped."""
        return self._take is not None

    @property
    def is_reading(self) -> bool:
        """Whether somebody waits at the prompt, or for an answer."""
        return self._reading is not None and not self._reading.done()

    @property
    def takes(self) -> bool:
        """Whether what is sent now is taken at once."""
        return self.is_reading or self.is_busy

    @property
    def can_stop(self) -> bool:
        """Whether something goes on that Ctrl-C is meant for. The first who minds it is whoever has opened the chat."""
        return len(self._interrupts) > 1 and (self._is_asked or not self.is_reading)

    @property
    def is_asked(self) -> bool:
        return self._is_asked

    async def read(self, prompt: str) -> str | None:
        if self.waiting:
            return self._pop()
        return await self._read(prompt, ())

    async def ask(self, prompt: str, answers: Iterable[str] = ()) -> str | None:
        self._is_asked = True
        asyncio.get_running_loop().call_soon(self._asked)
        try:
            return await self._read(prompt, tuple(answers))
        finally:
            self._is_asked = False
            self._answered()

    def _pop(self) -> str | None:
        if (line := self.waiting.popleft()) is not None:
            self._popped(line)
        return line

    async def _read(self, prompt: str, answers: tuple[str, ...]) -> str | None:
        if self._is_gone:
            return None
        self.prompt, self.answers = prompt, answers
        self._reading = asyncio.get_running_loop().create_future()
        try:
            return await self._reading
        finally:
            self._reading, self.prompt, self.answers = None, PROMPT, ()

    def redraw(self, prompt: str) -> None:
        self._came()  # the prompt is always below

    def send(self, line: str | None, later: bool = False) -> None:
        """What was typed, or None by whoever leaves."""
        self._pressed = 0.0
        if self._reading and not self._reading.done() and not (later and self._is_asked):
            self._reading.set_result(line)
        elif self._take and line is not None:
            self._take(line, later)
        else:
            self.waiting.append(line)

    def end(self) -> None:
        """The terminal is gone. Whoever was asked something has not answered: it goes on waiting."""
        self._is_gone = True
        if not self._is_asked:
            self.send(None)

    @contextmanager
    def listening(self, take: Take, display: Display) -> Iterator[None]:
        self._take = take
        self._turned(True)
        asyncio.get_running_loop().call_soon(self._hand_on)  # after what the turn begins with
        try:
            yield
        finally:
            self._take = None
            self._turned(False)

    def _hand_on(self) -> None:
        while self._take and self.waiting and self.waiting[0] is not None:
            self._take(self._pop() or "", False)

    @contextmanager
    def on_interrupt(self, call: Callable[[], None]) -> Iterator[None]:
        self._interrupts.append(call)
        try:
            yield
        finally:
            self._interrupts.remove(call)

    def stop(self) -> None:
        """Stop what goes on; where nothing does, whoever is there wants to leave."""
        if self._interrupts:
            self._interrupts[-1]()

    def wants_to_leave(self) -> bool:
        """Whether this is the second time within a moment."""
        before, self._pressed = self._pressed, time.monotonic()
        return self._pressed - before < TWICE
