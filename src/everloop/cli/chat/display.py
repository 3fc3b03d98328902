"""What the rich chat shows of a conversation: what is finished goes above, what grows or runs stays below it.

Pieces of an answer are gathered and shaped once for each drawing, however many came in between.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import fill
from typing import assert_never

from ...ports.events import (
    AnswerBegan,
    AnswerEnded,
    AnswerPiece,
    Event,
    SubagentProgress,
    ToolCalled,
    ToolOutput,
    ToolReturned,
)
from ...ports.permission import Approval
from ...readings.questions import asked_of
from ...readings.visible import in_one_line, visible
from ..cells import beginning
from ..chat_view.approvals import question
from ..chat_view.markdown import StreamedMarkdown
from ..chat_view.theme import Theme, dimmed
from ..chat_view.thoughts import thoughts
from ..chat_view.tool_view import ToolView
from ..shown_events import Doing, Noted, read_event
from .tool_rows import RunningTools

SPIN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SPINS = 10  # a second
THINKING = "thinking"

Print = Callable[[str], None]
Read = Callable[[str], str | None]


class OwnCall:
    def __init__(self, view: ToolView, show: Print, touch: Callable[[], None]) -> None:
        self._view = view
        self._show = show
        self._touch = touch

    def output(self, text: str) -> None:
        self._view.output(text)
        self._touch()

    def end(self, outcome: str, text: str) -> None:
        self._show(self._view.done(outcome, text))


class ChatDisplay:
    """The Display of the rich chat. `show` takes finished lines, `touch` asks for a drawing; `read` tells what a file
    of the workspace holds, `seen` is told of every event, and `answered` of every answer that was shown."""

    def __init__(
        self,
        show: Print,
        touch: Callable[[], None],
        width: Callable[[], int],
        theme: Theme,
        *,
        read: Read = lambda path: None,
        seen: Callable[[Event], None] = lambda event: None,
        answered: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._show = show
        self._touch = touch
        self._width = width
        self._read = read
        self._seen = seen
        self._answered = answered
        self.theme = theme
        self._tools = RunningTools()
        self._markdown: StreamedMarkdown | None = None
        self._pieces: list[str] = []  # of the answer, that have come since the last drawing
        self._thoughts = ""  # that are not shown above yet: the line that has not ended, and what came since
        self._is_thinking = False
        self._said = ""  # of the running message
        self._status = ""
        self._since = 0.0  # when what goes on began

    # What is said.

    def answer(self, text: str) -> None:
        markdown = StreamedMarkdown(self.theme, self._width)
        self._print(f"{markdown.feed(text)}{markdown.close()}")

    def note(self, text: str) -> None:
        self._print(self.theme.paint_lines(self._wrapped(text), "note"))

    def tell(self, text: str) -> None:
        if text:
            self._print(self._wrapped(text))

    def ask(self, text: str) -> None:
        self._print(self.theme.paint_lines(visible(text), "question"))

    def ask_permission(self, approval: Approval, words: str) -> None:
        self.clear()
        self._print(question(approval, self.theme, self._width(), self._read))
        self.note(words.removeprefix(asked_of(approval)).strip("\n"))

    def complain(self, text: str) -> None:
        self._print(self.theme.paint_lines(visible(text), "error"))

    def typed(self, text: str) -> None:
        """What somebody has sent, as it stood in the line."""
        first, *rest = visible(text).split("\n")
        lines = ["", self.theme.paint("> ", "bold") + first, *(f"  {line}" for line in rest)]
        self._print("\n".join(lines))

    def hear(self, line: str, note: str = "") -> None:
        if note:  # the line itself was shown when it was sent
            self.note(note)

    def aside(self, text: str, note: str = "") -> None:
        self.tell(text)
        if note:
            self.note(note)

    def status(self, text: str) -> None:
        self._status = in_one_line(text).removesuffix(" …")
        self._note_begin()

    def clear(self) -> None:
        self._status = ""
        self._since = self._since if self.is_moving else 0.0  # as of a command of one's own
        self._touch()

    def _note_begin(self) -> None:
        if self.is_moving:
            self._since = self._since or time.monotonic()
        self._touch()

    def _wrapped(self, text: str) -> str:
        """What cannot steer the terminal, in lines that end between words."""
        width = max(8, self._width())
        lines = visible(text).split("\n")
        return "\n".join(fill(line, width, break_on_hyphens=False) if len(line) > width else line for line in lines)

    def _print(self, text: str) -> None:
        """After all that came before it."""
        self.drain()
        self._show(text)

    # What goes on.

    @property
    def is_moving(self) -> bool:
        """Whether something is to be drawn again and again."""
        return bool(self._status or self._tools or self._markdown or self._is_thinking)

    def live(self, rows: int) -> str:
        """What is not finished, in at most so many rows."""
        spinner = self._spinner()
        room = rows - bool(spinner)
        parts = [self._tools.live(room), self._draft(room)]
        lines = [line for part in parts if part for line in part.split("\n")][-room:] if room > 0 else []
        return "\n".join([*lines, *([spinner] if spinner else [])])

    def _draft(self, rows: int) -> str:
        if self._is_thinking and self._thoughts:
            last = visible(self._thoughts).rpartition("\n")[2]
            return dimmed(beginning(last[-2 * self._width() :], self._width()), self.theme)
        return self._markdown.live(rows) if self._markdown and rows > 0 else ""

    def _spinner(self) -> str:
        if not self.is_moving:
            return ""
        now = time.monotonic()
        doing = self._status or ("working" if self._tools else "thinking" if self._is_thinking else "answering")
        text = f"{SPIN[int(now * SPINS) % len(SPIN)]} {doing} · {now - self._since:.0f} s · Esc stops"
        return self.theme.paint(beginning(text, self._width()), "note")

    def drain(self) -> None:
        """Shape what has come since the last drawing."""
        if self._is_thinking and "\n" in self._thoughts:
            ended, _, self._thoughts = self._thoughts.rpartition("\n")
            self._show(thoughts(ended, self.theme, self._width()))
        if self._pieces and self._markdown:
            text, self._pieces = "".join(self._pieces), []
            self._show(self._markdown.feed(text))

    def follow(self, event: Event) -> None:
        match shown := read_event(event):
            case AnswerPiece():
                self._add(shown)
            case AnswerBegan():
                self._said = ""
                self.status(THINKING)
            case AnswerEnded(kept=kept):
                self._end_draft(kept)
            case ToolCalled(tool=tool, args=args, place=place):
                self._close_draft()
                self._status = ""
                self._tools.begin(place, tool, ToolView(tool, args, self.theme, self._width, self._read))
            case ToolOutput(call=call, text=text):
                self._tools.output(call, text)
            case ToolReturned(tool=tool, outcome=outcome, text=text):
                if view := self._tools.end(tool):
                    self._print(view.done(outcome, text))
                elif outcome != "done":
                    self.note(f"{tool}: {text[:200]}")
            case SubagentProgress(steps=steps, doing=doing):
                self._tools.progress(steps, doing)
            case Noted(text=text):
                self.note(text)
            case Doing(text=text):
                self.status(text)
            case None:
                pass
            case _:
                assert_never(shown)
        self._seen(event)
        self._note_begin()  # also of what a question has held up, or an earlier chat has begun

    @contextmanager
    def running(self, tool: str, args: str) -> Iterator["OwnCall"]:
        """A call that somebody here makes, beside whatever else goes on."""
        view = ToolView(tool, args, self.theme, self._width)
        place = self._tools.begin_own(view)
        self._note_begin()
        try:
            yield OwnCall(view, self._print, self._touch)
        finally:
            self._tools.drop(place)
            if not self.is_moving:
                self.clear()

    def _add(self, piece: AnswerPiece) -> None:
        if piece.reasoning:
            self._is_thinking, self._status = True, ""
            self._thoughts += piece.reasoning
        if piece.text:
            self._end_thoughts()
            text = piece.text if self._said else piece.text.lstrip()
            self._status = ""
            self._said += text
            self._pieces.append(text)
            self._markdown = self._markdown or StreamedMarkdown(self.theme, self._width)
        elif piece.notice:
            self.note(f"({piece.notice})")
        elif piece.progress:
            self.status(piece.progress)

    def _end_thoughts(self) -> None:
        if self._is_thinking:
            self.drain()
            rest, self._thoughts, self._is_thinking = self._thoughts, "", False
            if rest.strip():
                self._show(thoughts(rest, self.theme, self._width()))

    def _close_draft(self) -> None:
        self._end_thoughts()
        self.drain()
        if self._markdown:
            self._show(self._markdown.close())
            self._markdown = None

    def _end_draft(self, kept: bool) -> None:
        self._close_draft()
        if self._said and not kept:
            self.note("(the answer broke off)")
            self._said = ""
        elif self._said:
            self._answered(self._said)

    def finish(self, content: str) -> None:
        self._close_draft()
        if self._said.strip() != content.strip():
            self.answer(content)
            self._answered(content)
        self.end_turn()

    def leave_turn(self) -> None:
        self._end_draft(kept=True)
        for view in self._tools.leave():
            self._show(view.head())
        self.end_turn()

    def end_turn(self) -> None:
        self._close_draft()
        for view in self._tools.leave():
            self._show(view.done("cancelled", ""))
        self._said = ""
        self.clear()
