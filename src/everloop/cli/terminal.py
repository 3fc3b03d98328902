"""What a person sees: the answer on stdout, everything else on stderr."""

import re
import sys
from typing import TextIO, assert_never

from ..errors import EverloopError
from ..ports.events import (
    AnswerBegan,
    AnswerEnded,
    AnswerPiece,
    Event,
    SubagentProgress,
    ToolCalled,
    ToolOutput,
    ToolReturned,
)
from ..ports.permission import Approval
from ..readings.tool_hints import tool_hint
from ..readings.visible import in_one_line
from .below import Below
from .cells import beginning
from .screen import Screen
from .shown_events import Doing, Noted, left_of_stop, read_event

_PERCENT = re.compile(r"(\d+) %")
_WITHOUT_NUMBERS = str.maketrans("", "", "0123456789.")
DIM, PLAIN, CLEAR = "\x1b[2m", "\x1b[0m", "\r\x1b[K"
MARK = "> "  # before what is typed while an answer comes
MOST_LINES = 30  # of what a command prints
PASTES, NO_PASTES = "\x1b[?2004h", "\x1b[?2004l"


class OutputLost(EverloopError):
    """Standard output takes nothing more."""


class WrongUse(EverloopError):
    """Options that do not go together: the command ends with 2, as for an option that there is not."""


def show_prompt(text: str) -> None:
    print(text, end="", flush=True)


def mark_pastes(wanted: bool) -> None:
    """Tell the terminal to mark where a paste begins and ends, or to do so no more, for whatever runs next."""
    screen = Screen.of_answers(sys.stdout)
    if screen.isatty():
        screen.steer(PASTES if wanted else NO_PASTES)
        screen.flush()


class Terminal:
    def __init__(self, out: TextIO, err: TextIO, kept: bool = False) -> None:
        """With `kept`, what cannot be shown now is shown at the next start."""
        self._out = Screen.of_answers(out)
        self._kept = kept
        self._err = Screen.of_notes(err)
        self._colour = err.isatty()
        self._status = ""  # the line that is being overwritten
        self._said = ""  # what of the running message has been printed
        self._reasoning = False  # whether the line on stderr is one of thoughts
        self._printed = 0  # lines that the running commands have printed
        self._below = Below(self._err.terminal)
        self._is_amid = False  # whether the answer has got to the middle of a line
        self._typed = ""  # what is being typed meanwhile
        self._asides: list[tuple[str, str]] = []  # what waits for the end of a line of the answer
        for screen in (self._out, self._err):
            screen.stand_over(self._below)

    def answer(self, text: str) -> None:
        """Raises OutputLost when it cannot be written."""
        self.clear()
        self._write(f"{text}\n")

    def note(self, text: str) -> None:
        self.clear()
        self._end_reasoning()
        self._dim(text)
        print(file=self._err, flush=True)

    def tell(self, text: str) -> None:
        """What the command itself has to say; unlike a note it is not dim."""
        self.clear()
        self._end_reasoning()
        print(text, file=self._err, flush=True)

    def ask(self, text: str) -> None:
        """Something that a person has to decide on."""
        self.tell(text)

    def ask_permission(self, approval: Approval, words: str) -> None:
        self.ask(words)

    def hear(self, line: str, note: str = "") -> None:
        self.aside(f"{MARK}{line}", note)

    @property
    def shows_below(self) -> bool:
        """Whether there is a line of its own for what is typed while an answer comes."""
        return self._below.works

    def begin_below(self) -> None:
        """Someone has just ended a line."""
        self._below.begin()

    def type_below(self, text: str) -> None:
        self._typed = text
        self._show_below()

    def aside(self, text: str, note: str = "") -> None:
        """What is said beside an answer, in a line of its own: no line of the answer is cut in two for it."""
        self._asides.append((text, note))
        if not self._is_amid:
            self._tell_asides()
        self._show_below()

    def _show_below(self) -> None:
        self._below.show(f"{MARK}{self._typed}" if self._typed else self._asides[-1][0] if self._asides else "")

    def _tell_asides(self) -> None:
        asides, self._asides = self._asides, []
        for text, note in asides:
            self.tell(text)
            if note:
                self.note(note)
        if asides:
            self._show_below()

    def status(self, text: str) -> None:
        """One line that is written over by the next; in a file or a pipe, one line for each kind of work, and for each
        quarter of it."""
        text = in_one_line(text)
        if not self._colour:
            self._log(text)
        elif text != self._status:
            self.clear()
            self._status = text
            self._dim(beginning(text, self._below.columns() - 1))  # what fills a second line could not be cleared

    def _log(self, text: str) -> None:
        percent = _PERCENT.search(text)
        kind = (
            f"{text.partition(percent[0])[0]} {int(percent[1]) // 25}" if percent else text.translate(_WITHOUT_NUMBERS)
        )
        if kind != self._status and not text.endswith("…"):  # what only says that it waits says nothing later
            self._status = kind
            print(text, file=self._err, flush=True)

    def clear(self) -> None:
        if self._status and self._colour:
            self._status = ""
            self._err.steer(CLEAR)
            self._err.flush()

    def _dim(self, text: str) -> None:
        if self._colour:
            self._err.steer(DIM)
        self._err.write(text)
        if self._colour:
            self._err.steer(PLAIN)
        self._err.flush()

    def _write(self, text: str) -> None:
        try:
            print(text, end="", file=self._out, flush=True)
        except BrokenPipeError:
            raise
        except OSError as error:
            later = "; it is kept, and shown next time" if self._kept else ""
            raise OutputLost(f"the answer cannot be written ({error.strerror}){later}") from error

    def follow(self, event: Event) -> None:
        """Show one event of a running turn. Raises OutputLost."""
        match shown := read_event(event):
            case AnswerPiece():
                self._show_piece(shown)
            case AnswerBegan():
                self._said = ""
                self.status("thinking …")
            case AnswerEnded(kept=kept):
                self._end_draft(kept)
            case ToolCalled(tool=tool, args=args):
                self._unfold()
                self.note(tool_hint(tool, args))
            case ToolOutput(text=text):
                self._show_output(text)
            case ToolReturned(tool=tool, outcome=outcome, text=text):
                self._unfold()
                if outcome == "cancelled":
                    self.note("; ".join(filter(None, (f"{tool}: stopped", left_of_stop(text)[:200]))))
                elif outcome != "done":
                    self.note(f"{tool}: {text[:200]}" if outcome == "denied" else text[:200])
            case SubagentProgress(steps=steps, doing=doing):
                self.status(f"a task is at step {steps}: {in_one_line(doing)} …")
            case Noted(text=text):
                self.note(text)
            case Doing(text=text):
                self.status(f"{text} …")
            case None:
                pass
            case _:
                assert_never(shown)

    def _show_output(self, text: str) -> None:
        """At a terminal, only the first lines of a command: the rest would push away what stands above it."""
        lines = text.removesuffix("\n").split("\n")
        shown = lines[: max(0, MOST_LINES - self._printed)] if self._colour else lines
        self._printed += len(lines)
        if shown:
            self.note("\n".join(shown))
        if len(shown) < len(lines):
            self.status(f"{self._printed:,} lines … {lines[-1]}")

    def _unfold(self) -> None:
        """Say how much of a command was not shown; the next begins anew."""
        left, self._printed = self._printed - MOST_LINES, 0
        if left > 0 and self._colour:
            self.note(f"(… and {left:,} more lines)")

    def _end_draft(self, kept: bool) -> None:
        self._is_amid = False
        if self._said:
            self._write("\n")
            if not kept:
                self.note("(the answer broke off)")
                self._said = ""
        self._tell_asides()

    def _end_reasoning(self) -> None:
        if self._reasoning:
            self._reasoning = False
            print(file=self._err, flush=True)

    def finish(self, content: str) -> None:
        """The turn is over: print its answer if it has not been streamed already."""
        self.clear()
        if self._said.strip() != content.strip():
            self.answer(content)
        self.end_turn()

    def leave_turn(self) -> None:
        """It goes on where nobody looks; what was shown of it stays."""
        self.clear()
        self._end_reasoning()
        self._end_draft(kept=True)
        self.end_turn()

    def end_turn(self) -> None:
        """Nothing more comes of it."""
        self._said, self._is_amid = "", False
        self._tell_asides()

    def _reason(self, text: str) -> None:
        """What the model thinks before it speaks; never on stdout, and only where someone looks."""
        if self._colour:
            self.clear()
            self._reasoning = True
            self._dim(text)

    def _say(self, text: str) -> None:
        if self._asides and (at := text.find("\n") + 1):
            self._said += text[:at]
            self._write(text[:at])
            self._tell_asides()
            text = text[at:]
        self._said += text
        self._is_amid = not self._said.endswith("\n")
        self._write(text)

    def _show_piece(self, piece: AnswerPiece) -> None:
        """A piece may hold the end of a thought and the beginning of the answer, if both came at once."""
        if piece.reasoning:
            self._reason(piece.reasoning)
        if text := piece.text:
            self.clear()
            self._end_reasoning()
            text = text.lstrip() if not self._said else text
            self._say(text)
        elif piece.notice:
            self.note(f"({piece.notice})")
        elif piece.progress:
            self.status(piece.progress)
