"""Text with its looks, and how it is broken into lines of so many cells."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..cells import cells, parts
from .theme import Theme

GOES_ON = "  ↪ "
_WORDS = re.compile(r"\n| +|[^ \n]+")


class Inked(NamedTuple):
    """Text of one look: names of styles, with a space between them. With `href` it leads somewhere."""

    text: str
    style: str = ""
    href: str = ""


Line = list[Inked]


def painted(line: Iterable[Inked], theme: Theme) -> str:
    return "".join(_paint(each, theme) for each in line)


def _paint(each: Inked, theme: Theme) -> str:
    if not each.style:
        return each.text
    text = theme.paint(each.text, each.style)
    return theme.link(text, each.href) if each.href else text


def length(line: Iterable[Inked]) -> int:
    return sum(cells(each.text) for each in line)


def wrap(inks: Sequence[Inked], room: int) -> list[Line]:
    """Lines of at most so many cells, broken at spaces, and within a word only if it is longer than a line or has
    letters of two cells, between which one may break anywhere. One that is too wide for any line stands alone."""
    if len(inks) == 1 and len(inks[0].text) <= room and inks[0].text.isascii() and "\n" not in inks[0].text:
        return [[*inks]]
    wrapping = _Wrapping(max(1, room))
    for each in inks:
        wrapping.add(each)
    return wrapping.finished()


def cut(inks: Line, room: int) -> list[Line]:
    """Lines of code of so many cells, every letter of it."""
    lines: list[Line] = [[]]
    used = 0
    for text, style, href in inks:
        for at, part in enumerate(parts(text, room, room - used)):
            if at:
                lines.append([])
                used = 0
            if part:
                lines[-1].append(Inked(part, style, href))
                used += cells(part)
    return lines


def whole_rows(line: str, style: str, theme: Theme, width: int) -> list[str]:
    """A line of which every letter counts. Rows with which it goes on are marked: else one of them could be taken for
    a line of its own, by which a long line would say something else."""
    first, *further = parts(line, max(8, width - len(GOES_ON)), max(8, width)) if line else [""]
    mark = theme.paint(GOES_ON, "note")
    return [theme.paint(first, style), *(mark + theme.paint(part, style) for part in further)]


class _Wrapping:
    def __init__(self, room: int) -> None:
        self._room = room
        self._lines: list[Line] = []
        self._line: Line = []
        self._used = 0
        self._gap = Inked("")
        self._word: Line = []
        self._long = 0  # cells of the word

    def add(self, ink: Inked) -> None:
        text, style, href = ink
        for found in _WORDS.findall(text):
            if found == "\n":
                self._end_word()
                self._end_line()
            elif found[0] == " ":
                self._end_word()
                self._gap = Inked(found, style, href)
            else:
                self._word.append(Inked(found, style, href))
                self._long += cells(found)

    def finished(self) -> list[Line]:
        self._end_word()
        if self._line or not self._lines:
            self._end_line()
        return self._lines

    def _end_word(self) -> None:
        if not self._word:
            return
        gap = len(self._gap.text) if self._used else 0
        if self._used + gap + self._long <= self._room:
            if gap:
                self._put(self._gap)
            for each in self._word:
                self._put(each)
            self._used += gap + self._long
        elif self._long <= self._room and all(each.text.isascii() for each in self._word):
            self._end_line()
            for each in self._word:
                self._put(each)
            self._used = self._long
        else:
            self._break_word(gap)
        self._word, self._long, self._gap = [], 0, Inked("")

    def _break_word(self, gap: int) -> None:
        """It begins in this line if some of it has room there, and only what has wide letters does."""
        if self._used + gap + 1 < self._room and any(not each.text.isascii() for each in self._word):
            if gap:
                self._put(self._gap)
                self._used += gap
        elif self._used:
            self._end_line()
        for text, style, href in self._word:
            for at, part in enumerate(parts(text, self._room, self._room - self._used)):
                if at:
                    self._end_line()
                if part:
                    self._put(Inked(part, style, href))
                    self._used += cells(part)

    def _put(self, ink: Inked) -> None:
        if self._line:
            last = self._line[-1]
            if last.style == ink.style and last.href == ink.href:
                self._line[-1] = Inked(last.text + ink.text, ink.style, ink.href)
                return
        self._line.append(ink)

    def _end_line(self) -> None:
        self._lines.append(self._line)
        self._line, self._used, self._gap = [], 0, Inked("")
