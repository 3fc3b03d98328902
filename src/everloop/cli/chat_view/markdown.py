"""An answer in markdown, shown while it comes in pieces."""

from collections.abc import Callable

from ...readings.visible import visible
from .blocks import Blocks
from .theme import Theme

TAB = 4
_STEP = 4_096  # letters


class StreamedMarkdown:
    """What `feed` and `close` return makes up the whole, the same whatever the pieces were."""

    def __init__(self, theme: Theme, width: Callable[[], int]) -> None:
        self._width = width
        self._blocks = Blocks(theme, width)
        self._pending: list[str] = []  # of the line that has not ended

    def feed(self, text: str) -> str:
        """What is finished for good since the last call, ending with a newline, or nothing."""
        if "\n" not in text:
            if text:
                self._pending.append(text)
            return ""
        first, *lines = text.split("\n")
        self._pending.append(first)
        shown = self._blocks.line(_clean("".join(self._pending)))
        for line in lines[:-1]:
            shown += self._blocks.line(_clean(line))
        self._pending = [lines[-1]] if lines[-1] else []
        return _joined(shown)

    def live(self, rows: int) -> str:
        """The last rows of the block that still grows, without a newline at the end."""
        if rows < 1:
            return ""
        draft = self._blocks.draft(rows)
        shown = draft.line(_clean(self._last(rows * self._width()))) if self._pending else []
        return "\n".join([*shown, *draft.close()][-rows:])

    def close(self) -> str:
        """What is left."""
        shown = self._blocks.line(_clean("".join(self._pending))) if self._pending else []
        self._pending = []
        return _joined([*shown, *self._blocks.close()])

    def _last(self, letters: int) -> str:
        """As much of the line that has not ended as can be seen of it. Where it is cut does not move with each piece,
        or all of it would be broken into other lines."""
        self._pending = ["".join(self._pending)]
        return self._pending[0][max(0, len(self._pending[0]) - letters) // _STEP * _STEP :]


def _clean(line: str) -> str:
    return visible(line.removesuffix("\r")).expandtabs(TAB)


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
