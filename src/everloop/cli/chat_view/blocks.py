"""Markdown read line by line: which quotes and lists a line stands in, and to which block it belongs.

The rules are CommonMark's (https://spec.commonmark.org/0.31.2/#appendix-a-parsing-strategy) with tables and tasks; a
line decides by itself, with what is open before it, so that the pieces in which a text comes make no difference.
Blocks that are closed are shown at once, and forgotten.
"""

import copy
import re
from collections.abc import Callable

from .containers import DEEPEST, NestedIn, Numbers, QuotedIn, prefix, read_item
from .leaves import Code, LeafBlock, Paragraph, Room, TableBlock, text_lines
from .tables import is_delimiters
from .theme import Theme

_INDENT = re.compile(" *")
_QUOTE = re.compile(r" {0,3}> ?")
_FENCE = re.compile(r"( {0,3})(?:(`{3,})([^`]*)|(~{3,})(.*))")
_HEADING = re.compile(r" {0,3}(#{1,6})(?: +(.*?))??(?: +#+)? *")
_RULE = re.compile(r" {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-+) *")
LEAST = 8  # cells that are left to text, however deep it is nested


class Blocks:
    def __init__(self, theme: Theme, width: Callable[[], int]) -> None:
        self._theme = theme
        self._width = width
        self._draft = False
        self._inside: list[QuotedIn | NestedIn] = []
        self._before: list[QuotedIn | NestedIn] | None = None  # what the last shown block was inside of
        self._numbers = Numbers()
        self._leaf: LeafBlock | None = None
        self._fence = ""  # what closes the code that is open
        self._indent = 0  # of its opening
        self._blank = False  # an empty line since the last block began
        self._gap = False  # one is shown before the open block
        self._shown: list[str] = []

    def line(self, text: str) -> list[str]:
        """What is finished by one more line."""
        self._read(text)
        if self._leaf and self._leaf.is_long():
            self._show(self._leaf.release(self._room()))
        return self._taken()

    def close(self) -> list[str]:
        self._end(0)
        return self._taken()

    def draft(self, rows: int) -> "Blocks":
        """Another one that goes on as this would, and shows the last rows alike."""
        other = copy.copy(self)
        other._draft = True
        other._theme = self._theme.with_links(False)
        other._inside = [copy.copy(each) for each in self._inside]
        if self._before is not None:
            shared = dict(zip(map(id, self._inside), other._inside, strict=True))
            other._before = [shared.get(id(each), each) for each in self._before]
        other._numbers = self._numbers.copied()
        other._leaf = self._leaf.tail(rows) if self._leaf else None
        other._shown = []
        return other

    def _taken(self) -> list[str]:
        shown, self._shown = self._shown, []
        return shown

    def _read(self, text: str) -> None:
        at, matched = self._continued(text)
        goes_on = matched == len(self._inside)
        if self._fence and goes_on:
            self._take_code(text[at:])
        elif not text[at:].strip():
            self._take_blank(matched)
        else:
            self._take_text(text, at, matched)

    def _continued(self, text: str) -> tuple[int, int]:
        """How many of the open quotes and items this line goes on with, and where its own text begins."""
        at = matched = 0
        for each in self._inside:
            after = each.goes_on(text, at)
            if after < 0:
                break
            at, matched = after, matched + 1
        return at, matched

    def _take_code(self, text: str) -> None:
        code = self._leaf
        assert isinstance(code, Code)
        stripped = text.strip()
        if len(stripped) >= len(self._fence) and not stripped.strip(self._fence[0]) and _indent(text) < 4:
            code.closing = stripped
            self._close_leaf()
        else:
            code.add(text[min(self._indent, _indent(text)) :])

    def _take_blank(self, matched: int) -> None:
        if isinstance(self._leaf, Code) and matched == len(self._inside):
            self._leaf.add("")
            return
        self._close_leaf()
        if matched < len(self._inside):
            self._end(matched)
        self._blank = True

    def _take_text(self, text: str, at: int, matched: int) -> None:
        is_paragraph = isinstance(self._leaf, Paragraph)
        if is_paragraph and matched == len(self._inside) and self._completes(text[at:]):
            return
        opened, at = self._opened(text, at, interrupts=is_paragraph and matched == len(self._inside))
        rest = text[at:]
        if not opened and self._goes_on_with(rest, lazily=matched < len(self._inside)):
            return
        self._end(matched)
        for each in opened:
            self._numbers.enter(len(self._inside), each)
            self._inside.append(each)
        self._begin(rest)

    def _completes(self, rest: str) -> bool:
        """Whether this line makes a heading, or a table, of the paragraph above it."""
        paragraph = self._leaf
        assert isinstance(paragraph, Paragraph)
        if found := _UNDERLINE.fullmatch(rest):
            lines, paragraph.lines = paragraph.lines, []
            self._leaf, self._gap = None, True
            self._show_heading("\n".join(lines), 1 if found[1][0] == "=" else 2)
            return True
        if not is_delimiters(rest, paragraph.lines[-1]):
            return False
        head = paragraph.lines.pop()
        if paragraph.lines:
            self._close_leaf()
        self._leaf = TableBlock(head, rest)
        return True

    def _opened(self, text: str, at: int, interrupts: bool) -> tuple[list[QuotedIn | NestedIn], int]:
        """The quotes and items that begin in this line, and where they end."""
        opened: list[QuotedIn | NestedIn] = []
        while len(self._inside) + len(opened) < DEEPEST:
            if found := _QUOTE.match(text, at):
                opened.append(QuotedIn())
                at = found.end()
                continue
            item = None if _RULE.fullmatch(text, at) else read_item(text, at, interrupts and not opened)
            if item is None:
                break
            opened.append(item)
            at = item.goes_on_at
        return opened, at

    def _goes_on_with(self, rest: str, lazily: bool) -> bool:
        leaf = self._leaf
        if isinstance(leaf, Code):
            if not self._fence and not lazily and _indent(rest) >= 4:
                leaf.add(rest[4:])
                return True
            return False
        if leaf is None or _starts(rest):
            return False
        if isinstance(leaf, TableBlock):
            if "|" in rest and not lazily:
                leaf.add(rest)
                return True
            return False
        assert isinstance(leaf, Paragraph)
        leaf.add(rest.strip())
        return True

    def _begin(self, rest: str) -> None:
        if not rest.strip():
            return  # an item that has nothing yet
        for each in self._inside:
            each.is_empty = False
        self._numbers.begin(len(self._inside))
        self._gap, self._blank = self._blank, False
        if _indent(rest) >= 4:
            self._leaf = Code()
            self._leaf.add(rest[4:])
        elif found := _HEADING.fullmatch(rest):
            self._gap = True
            self._show_heading(found[2] or "", len(found[1]))
        elif _RULE.fullmatch(rest):
            self._show([self._theme.paint("─" * self._room().cells, "rule")])
        elif found := _FENCE.fullmatch(rest):
            self._indent, self._fence = len(found[1]), found[2] or found[4]
            info = (found[3] or found[5] or "").strip()
            self._leaf = Code(f"{self._fence}{info}", info.split(maxsplit=1)[0].strip("{}.").lower() if info else "")
        else:
            self._leaf = Paragraph([rest.strip()])

    def _show_heading(self, text: str, level: int) -> None:
        style = f"heading{min(level, 3)}"
        marks = "" if self._theme.code(style) else f"{'#' * level} "
        self._show(text_lines(marks + text, self._room(), style))

    def _close_leaf(self) -> None:
        leaf, self._leaf, self._fence = self._leaf, None, ""
        if leaf:
            self._blank = self._blank or (isinstance(leaf, Code) and leaf.ends_blank)
            self._show(leaf.close(self._room()))

    def _end(self, matched: int) -> None:
        """Close what is open, and leave all that is deeper."""
        self._close_leaf()
        while len(self._inside) > matched:
            if self._inside[-1].waits:  # an item without any text
                self._gap, self._blank = self._blank, False
                self._show([""])
            self._inside.pop()

    def _room(self) -> Room:
        return Room(self._theme, self._cells(), self._draft)

    def _cells(self) -> int:
        width = self._width()
        return max(LEAST, width - sum(each.cells for each in self._inside)) if width > LEAST else max(1, width)

    def _show(self, lines: list[str]) -> None:
        if not lines:
            return
        if self._gap and self._before is not None:
            shared = [a for a, b in zip(self._inside, self._before, strict=False) if a is b]
            self._shown.append(prefix(shared, self._theme, self._width()).rstrip())
        self._gap = False
        for line in lines:
            self._shown.append((prefix(self._inside, self._theme, self._width()) + line).rstrip(" "))
        self._before = [*self._inside]


def _starts(rest: str) -> bool:
    """Whether this line begins a block that ends a paragraph."""
    if _indent(rest) >= 4:
        return False
    return any(pattern.fullmatch(rest) for pattern in (_HEADING, _RULE, _FENCE))


def _indent(text: str) -> int:
    found = _INDENT.match(text)
    return found.end() if found else 0
