"""How many cells of a terminal a text takes.

Terminals disagree on emoji that are joined, coloured or asked for by a selector: some show one sign in two cells,
others each of its parts. What is counted here is the most that one of them takes, so that no line is longer
than was meant.
"""

import re
import unicodedata
from functools import lru_cache

from ..readings.characters import whole

_SELECTED = re.compile(".\ufe0f")  # a sign that is to be in colour, which takes two cells where that is heard
_NO_CELL = ("Mn", "Me", "Cf")
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
    if unicodedata.category(letter) in _NO_CELL or "\u1160" <= letter <= "\u11ff":  # letters of a syllable of Hangul
        return 0
    is_wide = unicodedata.east_asian_width(letter) in "WF" or "\U0001f1e6" <= letter <= "\U0001f1ff"  # halves of flags
    return 2 if is_wide else 1


def taking(text: str, room: int) -> int:
    """How many characters of the beginning fit into so many cells; none that people see as one is cut."""
    if text.isascii():
        return min(len(text), max(0, room))
    used = 0
    for at, letter in enumerate(text):
        used += width(letter) if letter != "\ufe0f" else width(text[at - 1]) == 1
        if used > room:
            return whole(text, at)
    return len(text)


def beginning(text: str, room: int) -> str:
    """As much of a text as fits into so many cells, with a sign that there is more."""
    return text if cells(text) <= room else f"{text[: taking(text, room - 1)]}…"


def fitting(text: str, room: int) -> str:
    """The end of the text, as much as fits into so many cells."""
    at = len(text)
    while at > 0 and room - width(text[at - 1]) >= 0:
        at -= 1
        room -= width(text[at])
    return text[at:]
