"""What a person sees: the answer on stdout, everything else on stderr."""

import re
import sys
from typing import TextIO, assert_never

import msgspec

from ..core.errors import EverloopError
from ..core.events import (
    AnswerBegan,
    AnswerEnded,
    AnswerGiven,
    AnswerPiece,
    CallMeasured,
    CommandDone,
    Event,
    LetterTaken,
    OutcomeUnknown,
    PermissionAsked,
    SummaryBegan,
    SummaryWritten,
    ToolCalled,
    ToolOutput,
    ToolReturned,
    TurnBegan,
    TurnEnded,
    Warned,
)
from ..readings.visible import in_one_line
from .screen import Screen

_PERCENT = re.compile(r"(\d+) %")
_WITHOUT_NUMBERS = str.maketrans("", "", "0123456789.")
DIM, PLAIN, CLEAR = "\x1b[2m", "\x1b[0m", "\r\x1b[K"
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

    def status(self, text: str) -> None:
        """One line that is written over by the next; in a file or a pipe, one line for each kind of work, and for each
        quarter of it."""
        text = in_one_line(text)
        if not self._colour:
            self._log(text)
        elif text != self._status:
            self.clear()
            self._status = text
            self._dim(text)

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
        match event:
            case AnswerPiece():
                self._show_piece(event)
            case AnswerBegan():
                self._said = ""
                self.status("thinking …")
            case AnswerEnded(kept=kept):
                self._end_draft(kept)
            case ToolCalled(tool=tool, args=args):
                self.note(hint(tool, args))
            case ToolOutput(text=text):
                self.note(text.removesuffix("\n"))
            case ToolReturned(tool=tool, outcome=outcome, text=text):
                if outcome != "done":
                    self.note(f"{tool}: {text[:200]}" if outcome == "denied" else text[:200])
            case SummaryBegan():
                self.status("summarising what was said before …")
            case SummaryWritten(before=before, after=after):
                self.note(f"(earlier parts are now a summary: about {after:,} tokens instead of {before:,})")
            case Warned(reason=reason, text=text):
                if reason == "window":  # others end the turn, and are told as its end
                    self.note(f"({text})")
            case LetterTaken() | TurnBegan() | CallMeasured() | CommandDone():
                pass
            case PermissionAsked() | OutcomeUnknown() | TurnEnded() | AnswerGiven():
                pass  # whoever has asked shows these
            case _:
                assert_never(event)

    def _end_draft(self, kept: bool) -> None:
        if self._said:
            self._write("\n")
            if not kept:
                self.note("(the answer broke off)")
                self._said = ""

    def _end_reasoning(self) -> None:
        if self._reasoning:
            self._reasoning = False
            print(file=self._err, flush=True)

    def finish(self, content: str) -> None:
        """The turn is over: print its answer if it has not been streamed already."""
        self.clear()
        if self._said.strip() != content.strip():
            self.answer(content)

    def _reason(self, text: str) -> None:
        """What the model thinks before it speaks; never on stdout, and only where someone looks."""
        if self._colour:
            self.clear()
            self._reasoning = True
            self._dim(text)

    def _show_piece(self, piece: AnswerPiece) -> None:
        """A piece may hold the end of a thought and the beginning of the answer, if both came at once."""
        if piece.reasoning:
            self._reason(piece.reasoning)
        if text := piece.text:
            self.clear()
            self._end_reasoning()
            text = text.lstrip() if not self._said else text
            self._said += text
            self._write(text)
        elif piece.notice:
            self.note(f"({piece.notice})")
        elif piece.progress:
            self.status(piece.progress)


def hint(name: str, args: str) -> str:
    """A call in short, in one line: its name and its first text argument."""
    try:
        values = msgspec.json.decode(args or "{}")
    except msgspec.DecodeError:
        values = {}
    first = next((value for value in values.values() if isinstance(value, str)), "") if isinstance(values, dict) else ""
    short = first if len(first) <= 40 else first[:40] + "…"
    return in_one_line(f'{name}("{short}")' if short else f"{name}()")
