"""Tables in so many cells: columns side by side, their cells wrapped; or, where that is too narrow, row by row."""

import re
from collections.abc import Sequence
from itertools import zip_longest

from .inked import Inked, Line, length, painted, wrap
from .inline import inked
from .theme import Theme

_DELIMITERS = re.compile(r" {0,3}\|?( *:?-+:? *\|)+( *:?-+:? *)?\|? *|(?!)")
_BAR = re.compile(r"(?<!\\)\|")
_NARROWEST = 6  # cells of a column that has to be wrapped
_BETWEEN = " │ "


def is_delimiters(line: str, head: str) -> bool:
    """Whether this line, below that one, makes a table of both."""
    return (
        "|" in line
        and "-" in line
        and "|" in head
        and _DELIMITERS.fullmatch(line) is not None
        and len(cells_of(line)) == len(cells_of(head))
    )


def cells_of(line: str) -> list[str]:
    parts = [part.strip().replace("\\|", "|") for part in _BAR.split(line.strip())]
    if parts and not parts[0]:
        parts = parts[1:]
    if parts and not parts[-1]:
        parts = parts[:-1]
    return parts


def alignments(line: str) -> list[str]:
    ends = [(cell.startswith(":"), cell.endswith(":")) for cell in cells_of(line)]
    return ["centre" if left and right else "right" if right else "left" for left, right in ends]


class Grid:
    """A table whose columns are as wide as the rows need that it was made with."""

    def __init__(self, head: Sequence[str], aligned: Sequence[str], rows: Sequence[str], room: int) -> None:
        self._head = [inked(cell) for cell in head]
        self._aligned = aligned
        self._first = [[inked(cell) for cell in cells_of(row)] for row in rows]
        columns = [*zip_longest(self._head, *self._first, fillvalue=())]
        natural = [
            max((length(line) for cell in column for line in wrap(cell, 10_000)), default=0) for column in columns
        ]
        self._widths = fitted(natural, room - len(_BETWEEN) * (len(natural) - 1))
        self._room = room

    def beginning(self, theme: Theme) -> list[str]:
        """The head, and the rows that it was made with."""
        return [*self._heading(theme), *(line for row in self._first for line in self._row(row, theme))]

    def more(self, rows: Sequence[str], theme: Theme) -> list[str]:
        return [line for row in rows for line in self._row([inked(cell) for cell in cells_of(row)], theme)]

    def _heading(self, theme: Theme) -> list[str]:
        if not self._widths:
            return []
        head = [[Inked(each.text, f"{each.style} head".strip(), each.href) for each in cell] for cell in self._head]
        rule = theme.paint("─┼─".join("─" * width for width in self._widths), "border")
        return [*self._row(head, theme), rule]

    def _row(self, row: Sequence[Sequence[Inked]], theme: Theme) -> list[str]:
        if not self._widths:
            return self._record(row, theme)
        row = [*row, *[()] * (len(self._widths) - len(row))]
        while len(row) > len(self._widths):  # a later row with more cells than any before
            row = [*row[:-2], [*row[-2], Inked(" "), *row[-1]]]
        wrapped = [wrap(cell, width) for cell, width in zip(row, self._widths, strict=True)]
        bar = theme.paint(_BETWEEN, "border")
        lines = []
        for parts in zip_longest(*wrapped, fillvalue=[]):
            last = max((at for at, part in enumerate(parts) if part), default=0)
            shown = [self._cell(at, part, theme) for at, part in enumerate(parts[: last + 1])]
            lines.append(bar.join(shown).rstrip(" "))
        return lines

    def _cell(self, at: int, line: Line, theme: Theme) -> str:
        spare = max(0, self._widths[at] - length(line))
        align = self._aligned[at] if at < len(self._aligned) else "left"
        before = spare if align == "right" else spare // 2 if align == "centre" else 0
        return f"{' ' * before}{painted(line, theme)}{' ' * (spare - before)}"

    def _record(self, row: Sequence[Sequence[Inked]], theme: Theme) -> list[str]:
        """A row as lines, where columns side by side have no room."""
        lines = [theme.paint("─" * min(self._room, 10), "border")]
        for name, cell in zip_longest(self._head, row, fillvalue=()):
            named = [Inked(each.text, f"{each.style} head".strip(), each.href) for each in name]
            both = [*named, Inked(": "), *cell] if named else cell
            lines += [painted(line, theme) for line in wrap(both, self._room)]
        return lines


def fitted(natural: Sequence[int], room: int) -> list[int]:
    """How wide columns are, if each would like to be so wide: those that ask for little get it, the others share the
    rest. Empty if that is too little for them."""
    widths, left = [max(1, each) for each in natural], room
    if sum(widths) <= room:
        return widths
    waiting = sorted(range(len(widths)), key=widths.__getitem__)
    while waiting:
        share = left // len(waiting)
        at = waiting.pop(0)
        if widths[at] > share:
            if share < _NARROWEST:
                return []
            widths[at] = share
        left -= widths[at]
    return widths
