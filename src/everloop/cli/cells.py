"""How many cells of a terminal a text takes.

Terminals disagree on emoji that are joined, coloured or asked for by a selector: some show one sign in two cells,
others each of its parts. What is counted here is the most that one of them takes, so that no line is longer
than was meant.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from ..readings.characters import whole

_SELECTED = re.compile(".\ufe0f")  # a sign that is to be in colour, which takes two cells where that is heard
_NO_CELL = ("Mn", "Me", "Cf")
_VOWELS = "\u1160\u11ff\ud7b0\ud7ff"  # from one letter to the other: those of a syllable of Hangul but its first
# Halves of flags; signs that newer tables than Python's own have as wide; emoji, also those that are not there yet.
_WIDE = "\U0001f1e6\U0001f1ff☰☷⚊⚏䷀䷿\U0001d300\U0001d356\U0001d360\U0001d376\U0001fa70\U0001faff"
_SOFT_HYPHEN = "\xad"


def cells(text: str) -> int:
    """Of a text in one line, without tabs."""
    if text.isascii():
        return len(text)
    return sum(map(width, text)) + sum(width(found[0]) == 1 for found in _SELECTED.findall(text))


@lru_cache(maxsize=4096)
def width(letter: str) -> int:
    """Of one character, by itself."""
    if letter.isascii() or letter == _SOFT_HYPHEN:
        return 1
    if unicodedata.category(letter) in _NO_CELL or _within(letter, _VOWELS):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" or _within(letter, _WIDE) else 1


def _within(letter: str, ranges: str) -> bool:
    return any(first <= letter <= last for first, last in zip(ranges[::2], ranges[1::2], strict=True))


def fit_end(text: str, room: int, start: int = 0) -> int:
    """Where the text ends that fits into so many cells from there on; nothing that people see as one is cut."""
    if text.isascii():
        return min(len(text), start + max(0, room))
    used = 0
    for at in range(start, len(text)):
        letter = text[at]
        used += width(letter) if letter != "\ufe0f" else at > start and width(text[at - 1]) == 1
        if used > room:
            return max(start, whole(text, at))
    return len(text)


def parts(text: str, room: int, first: int | None = None) -> Iterator[str]:
    """All of the text, in parts of so many cells; of fewer in the `first`, where nothing may fit."""
    start, left = 0, room if first is None else first
    while start < len(text):
        end = fit_end(text, left, start)
        if end == start and left >= room:
            end = start + 1  # wider than any room
        yield text[start:end]
        start, left = end, room


def beginning(text: str, room: int) -> str:
    """As much of a text as fits into so many cells, with a sign that there is more."""
    return text if cells(text) <= room else f"{text[: fit_end(text, room - 1)]}…"


def fitting(text: str, room: int) -> str:
    """The end of the text, as much as fits into so many cells."""
    at = len(text)
    while at > 0 and room - width(text[at - 1]) >= 0:
        at -= 1
        room -= width(text[at])
    return text[at:]
