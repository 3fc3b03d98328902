"""What a person sees: the answer on stdout, everything else on stderr."""

import sys
from typing import TextIO

import msgspec

from ..core.errors import EverloopError
from ..core.ports import Event
from ..core.visible import in_one_line
from .screen import Screen

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
        """One line that is written over by the next; in a file or a pipe, one line for each kind of work."""
        text = in_one_line(text)
        if not self._colour:
            self._log(text)
        elif text != self._status:
            self.clear()
            self._status = text
            self._dim(text)

    def _log(self, text: str) -> None:
        kind = text.translate(_WITHOUT_NUMBERS)
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
        match event.name:
            case "stream_start":
                self._said = ""
                self.status("thinking …")
            case "stream_chunk":
                self._chunk(event)
            case "stream_end" if self._said:
                self._write("\n")
                if not event.data["kept"]:
                    self.note("(the answer broke off; what stands above does not count)")
                    self._said = ""
            case "tool_call":
                self.note(hint(event.data["name"], event.data["args"]))
            case "compacting":
                self.status("summarising what was said before …")
            case "compacted":
                before, after = event.data["before"], event.data["after"]
                self.note(f"(earlier parts are now a summary: about {after:,} tokens instead of {before:,})")
            case "warning" if event.data["reason"] == "window":
                self.note(f"({event.data['text']})")
            case "tool_output":
                self.note(event.data["text"].removesuffix("\n"))
            case "tool_result" if event.data["outcome"] != "done":
                self.note(event.data["text"][:200])

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

    def _chunk(self, event: Event) -> None:
        """A piece may hold the end of a thought and the beginning of the answer, if both came at once."""
        if reasoning := event.data["reasoning"]:
            self._reason(reasoning)
        if text := event.data["text"]:
            self.clear()
            self._end_reasoning()
            text = text.lstrip() if not self._said else text
            self._said += text
            self._write(text)
        elif notice := event.data["notice"]:
            self.note(f"({notice})")
        elif progress := event.data["progress"]:
            self.status(progress)


def hint(name: str, args: str) -> str:
    """A call in short, in one line: its name and its first text argument."""
    try:
        values = msgspec.json.decode(args or "{}")
    except msgspec.DecodeError:
        values = {}
    first = next((value for value in values.values() if isinstance(value, str)), "") if isinstance(values, dict) else ""
    short = first if len(first) <= 40 else first[:40] + "…"
    return in_one_line(f'{name}("{short}")' if short else f"{name}()")
