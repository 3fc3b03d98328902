"""What a chat needs of whatever a person sits in front of: something that shows, and something that is typed at.

There are two. The plain one (`terminal.Terminal`, `lines.LineReader`) writes lines and reads lines, at any terminal and
in a pipe. The rich one (`chat.window`) keeps an area at the bottom of the terminal, in which one writes while an answer
grows above it.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol, Self

from ...ports.events import Event
from ...ports.permission import Approval


class Display(Protocol):
    """What is seen. All of it is shown as text: nothing that a model or a tool says steers the terminal."""

    def answer(self, text: str) -> None:
        """What the agent says. Raises OutputLost when it cannot be written."""

    def note(self, text: str) -> None: ...

    def tell(self, text: str) -> None:
        """What the command itself has to say; unlike a note it is not dim."""

    def ask(self, text: str) -> None:
        """Something that a person has to decide on."""

    def ask_permission(self, approval: Approval, words: str) -> None:
        """The same, of a call that would run; `words` is all of the question."""

    def hear(self, line: str, note: str = "") -> None:
        """What was said while an answer comes, and what becomes of it."""

    def aside(self, text: str, note: str = "") -> None:
        """What is said beside an answer, in a line of its own: no line of the answer is cut in two for it."""

    def status(self, text: str) -> None:
        """One line that is written over by the next."""

    def clear(self) -> None: ...

    def follow(self, event: Event) -> None:
        """Show one event of a running turn. Raises OutputLost."""

    def finish(self, content: str) -> None:
        """The turn is over: show its answer if it has not been streamed already."""

    def leave_turn(self) -> None:
        """It goes on where nobody looks; what was shown of it stays."""

    def end_turn(self) -> None:
        """Nothing more comes of it."""


class TypedLines(Protocol):
    """What is typed. `with lines:` for as long as somebody may type."""

    help: str  # which keys there are; "" where nobody presses any
    confirms_leaving: bool  # whether it has asked already, when it says that somebody wants to leave

    @property
    def begun(self) -> str:
        """What stands in the line at the prompt."""

    async def read(self, prompt: str) -> str | None:
        """The next line; None at the end of the input. Raises MailRefused for one that is no text."""

    async def ask(self, prompt: str, answers: Iterable[str] = ()) -> str | None:
        """As `read`, for an answer to a question; `answers` are some that would be understood."""

    def redraw(self, prompt: str) -> None:
        """Something was shown: the prompt, and what has been typed there, stands below it again."""

    def listening(self, take: Callable[[str, bool], None], display: Display) -> AbstractContextManager[None]:
        """Until then, every line that is typed is for `take`, unless it is read as an answer to a question; with True
        it is for later, when what goes on now is over."""

    def on_interrupt(self, call: Callable[[], None]) -> AbstractContextManager[None]:
        """Call this at Ctrl-C, for as long as the block lasts."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
