"""The blocks of an answer that hold text: each takes its lines, and makes lines for a terminal of them.

A block that has become long lets go of its beginning before its end is known: how much, follows from its lines alone.
"""

from typing import Protocol

from msgspec import Struct

from ...readings.half_markdown import finished
from ..cells import parts
from .highlight import highlighted
from .inked import Inked, painted, wrap
from .inline import inked
from .tables import Grid, alignments, cells_of
from .theme import Theme

LONG_PARAGRAPH = 8_000  # letters
LONGEST_PARSED = 32_000  # letters; beyond, marks in it are shown as they are
LONG_CODE = 400  # lines
LONG_TABLE = 200  # rows


class Room(Struct, frozen=True):
    """What a block is shown in: so many cells. A `draft` is drawn again and again, and so it is drawn simply, and no
    line of it is longer than there is room."""

    theme: Theme
    cells: int
    draft: bool = False


class LeafBlock(Protocol):
    def is_long(self) -> bool:
        """Whether some of it is to be let go, by `release`."""

    def release(self, room: Room) -> list[str]:
        """Its beginning, which it then no longer has."""

    def close(self, room: Room) -> list[str]:
        """What is left of it."""

    def tail(self, rows: int) -> "LeafBlock":
        """Another one that looks the same in its last rows, for a draft."""


class Paragraph:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._letters = sum(map(len, lines))

    def add(self, line: str) -> None:
        self.lines.append(line)
        self._letters += len(line)

    def is_long(self) -> bool:
        return self._letters > LONG_PARAGRAPH

    def release(self, room: Room) -> list[str]:
        """All but the last line, which may still become something else."""
        released, self.lines = self.lines[:-1], self.lines[-1:]
        self._letters = sum(map(len, self.lines))
        return text_lines("\n".join(released), room) if released else []

    def close(self, room: Room) -> list[str]:
        return text_lines("\n".join(self.lines), room) if self.lines else []

    def tail(self, rows: int) -> "Paragraph":
        return Paragraph(self.lines[-rows:])  # each line takes a row or more


def text_lines(text: str, room: Room, style: str = "") -> list[str]:
    text = finished(text) if room.draft else text
    inks = inked(text) if len(text) <= LONGEST_PARSED else (Inked(text),)
    if style:
        inks = tuple(Inked(each.text, f"{style} {each.style}".strip(), each.href) for each in inks)
    return [painted(line, room.theme) for line in wrap(inks, room.cells)]


class Code:
    """Lines of code; `opening` and `closing` are what stands around them."""

    def __init__(self, opening: str = "", language: str = "") -> None:
        self._opening = opening
        self._is_fenced = bool(opening)
        self._language = language
        self._lines: list[str] = []
        self.closing = ""

    def add(self, line: str) -> None:
        self._lines.append(line)

    def is_long(self) -> bool:
        return len(self._lines) >= LONG_CODE

    def release(self, room: Room) -> list[str]:
        end = border(self._lines)
        released, self._lines = self._lines[:end], self._lines[end:]
        return [*self._begin(room), *self._shown(released, room)]

    @property
    def ends_blank(self) -> bool:
        """Whether an empty line follows that may as well be what stands between two blocks."""
        return not self._is_fenced and bool(self._lines) and not self._lines[-1]

    def close(self, room: Room) -> list[str]:
        while self.ends_blank:
            self._lines.pop()
        shown = [*self._begin(room), *self._shown(self._lines, room)]
        return [*shown, room.theme.paint(self.closing, "fence")] if self.closing else shown

    def _begin(self, room: Room) -> list[str]:
        opening, self._opening = self._opening, ""
        return [room.theme.paint(line, "fence") for line in broken([opening], room)] if opening else []

    def _shown(self, lines: list[str], room: Room) -> list[str]:
        if room.draft:
            return broken(lines, room)
        return highlighted(lines, self._language, room.theme)

    def tail(self, rows: int) -> "Code":
        short = Code("" if len(self._lines) > rows else self._opening, self._language)
        short._is_fenced = self._is_fenced
        short._lines = self._lines[-rows:]
        short.closing = self.closing
        return short


def border(lines: list[str]) -> int:
    """Where code can be cut so that what follows reads as a beginning: after an empty line, before one at the left."""
    for at in range(len(lines) - 1, len(lines) // 2, -1):
        if lines[at][:1].strip() and not lines[at - 1].strip():
            return at
    return len(lines)


def broken(lines: list[str], room: Room) -> list[str]:
    """Code that is still being written, in lines that fit. What is finished is broken by the terminal, which knows
    that it is one line when somebody copies it."""
    if not room.draft:
        return lines
    return [part for line in lines for part in (parts(line, room.cells) if line else [""])]


class TableBlock:
    def __init__(self, head: str, delimiters: str) -> None:
        self._head = cells_of(head)
        self._aligned = alignments(delimiters)
        self._rows: list[str] = []
        self._grid: Grid | None = None

    def add(self, line: str) -> None:
        self._rows.append(line)

    def is_long(self) -> bool:
        return len(self._rows) >= LONG_TABLE

    def release(self, room: Room) -> list[str]:
        return self.close(room)

    def close(self, room: Room) -> list[str]:
        rows, self._rows = self._rows, []
        if self._grid:
            return self._grid.more(rows, room.theme)
        self._grid = Grid(self._head, self._aligned, rows, room.cells)
        return self._grid.beginning(room.theme)

    def tail(self, rows: int) -> "TableBlock":
        short = TableBlock("", "")
        short._head, short._aligned, short._rows, short._grid = (
            self._head,
            self._aligned,
            self._rows[-rows:],
            self._grid,
        )
        return short
