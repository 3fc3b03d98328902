"""Quotes and items of lists: what a line has to begin with to stand in them, and what is shown before it."""

import re

from ..cells import cells
from .theme import Theme

DEEPEST = 16
_BLANK = re.compile(" *$")
_QUOTE = re.compile(r" {0,3}> ?")
_ITEM = re.compile(r"( {0,3})([-+*]|(\d{1,9})([.)]))(?:( +)|$)")
_TASK = re.compile(r"\[([ xX])\] +(?=\S)")


class QuotedIn:
    waits = False
    is_empty = False
    cells = 2

    def goes_on(self, text: str, at: int) -> int:
        """Where the text begins in a line that stands in it; -1 for one that does not."""
        found = _QUOTE.match(text, at)
        return found.end() if found else -1

    def mark(self, theme: Theme) -> str:
        return theme.paint("│", "quote") + " "


class NestedIn:
    """An item. `indent` is what its further lines begin with; `goes_on_at` where its first line goes on."""

    def __init__(self, mark: str, indent: int, goes_on_at: int, is_empty: bool) -> None:
        self.kind = mark[-1]
        self.number = int(mark[:-1]) if mark[:-1] else None
        self.task = ""
        self.is_empty = is_empty  # it has no text yet
        self.waits = True  # its mark has not been shown
        self.goes_on_at = goes_on_at
        self._indent = indent

    @property
    def cells(self) -> int:
        return cells(self._plain()) + 1

    def goes_on(self, text: str, at: int) -> int:
        if _BLANK.match(text, at):
            if self.is_empty:
                return -1
            return min(len(text), at + self._indent)
        return at + self._indent if text.startswith(" " * self._indent, at) else -1

    def mark(self, theme: Theme) -> str:
        plain = self._plain()
        if not self.waits:
            return " " * (cells(plain) + 1)
        self.waits = False
        return theme.paint(plain, "bullet") + " "

    def _plain(self) -> str:
        return self.task or ("•" if self.number is None else f"{self.number}{self.kind}")


def read_item(text: str, at: int, interrupts: bool) -> NestedIn | None:
    """The item that begins there. One that interrupts a paragraph has text, and begins a list with 1."""
    found = _ITEM.match(text, at)
    if found is None:
        return None
    is_empty = not text[found.end() :].strip()
    if interrupts and (is_empty or (found[3] and int(found[3]) != 1)):
        return None
    spaces = len(found[5] or "")
    after = 1 if is_empty or spaces > 4 else spaces
    start = found.end(2) + after
    item = NestedIn(found[2], start - at, min(start, len(text)), is_empty)
    if task := _TASK.match(text, item.goes_on_at):
        item.task = "☐" if task[1] == " " else "☑"
        item.goes_on_at = task.end()
    return item


def prefix(inside: "list[QuotedIn | NestedIn]", theme: Theme, width: int) -> str:
    """What stands before a line; where that would leave no room, only the last of it."""
    marks = [each.mark(theme) for each in inside]
    total = sum(each.cells for each in inside)
    while marks and total + 8 > width:
        total -= inside[len(inside) - len(marks)].cells
        marks = marks[1:]
    return "".join(marks)


class Numbers:
    """Which number the next item of a list has: the one that is written, or one more than the last."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[str, int]] = {}

    def enter(self, depth: int, container: QuotedIn | NestedIn) -> None:
        kind, last = self._last.get(depth, ("", -1))
        self.begin(depth)
        if isinstance(container, NestedIn) and container.number is not None:
            if kind == container.kind:
                container.number = max(container.number, last + 1)
            self._last[depth] = container.kind, container.number

    def begin(self, depth: int) -> None:
        """A block begins so deep, which ends the lists there and below."""
        for each in [each for each in self._last if each >= depth]:
            del self._last[each]

    def copied(self) -> "Numbers":
        other = Numbers()
        other._last = dict(self._last)
        return other
