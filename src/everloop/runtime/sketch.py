"""What the draft of an answer says while a turn runs: what was said so far, and if that is wanted, what goes on.

None of it is the answer: that leaves through the outbox, without thoughts and tool hints.
"""

import re

from ..ports.events import AnswerBegan, AnswerPiece, Event, ToolCalled
from ..readings.tool_hints import tool_hint

HINTS = 8  # of the last calls
THOUGHTS = 600  # characters, the last ones


class Sketch:
    """One turn's. With `progress` it tells which tools are called, with `reasoning` what the model thinks."""

    def __init__(self, *, progress: bool = False, reasoning: bool = False) -> None:
        self._progress = progress
        self._reasoning = reasoning
        self._hints: list[str] = []
        self._status = ""
        self._thoughts = ""
        self._said = ""

    def hear(self, event: Event) -> None:
        if isinstance(event, AnswerBegan):
            self._said = self._thoughts = self._status = ""
        elif isinstance(event, AnswerPiece):
            self._said += event.text
            self._thoughts += event.reasoning if self._reasoning else ""
            self._status = event.progress if self._progress else ""
        elif isinstance(event, ToolCalled) and self._progress:
            self._hints = [*self._hints, tool_hint(event.tool, event.args)][-HINTS:]

    @property
    def text(self) -> str:
        """As markdown; "" when there is nothing to show yet."""
        hints = "\n".join(f"- {_as_code(hint)}" for hint in self._hints)
        return "\n\n".join(filter(None, (hints, self._said or self._before_it_speaks())))

    def _before_it_speaks(self) -> str:
        quoted = "\n".join(f"> {line}" for line in self._thoughts[-THOUGHTS:].strip().splitlines())
        return "\n\n".join(filter(None, (quoted, self._status)))


def _as_code(text: str) -> str:
    """A code span, in which nothing is markup, whatever the text holds."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"
