"""How to go back from a version of a document to the one before it: what stands in another place of it."""

import re
from collections.abc import Sequence

from msgspec import Struct

from ..readings.words import words_of

SAYING = 3  # words from which on others would hardly stand in a line by chance
_LETTER = r"[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"  # of words that have spaces between them


class Edit(Struct, frozen=True):
    """Of the text of a `version`, `length` characters at `place` were `before` in the version before."""

    version: int
    place: int
    length: int
    before: str


def edit_between(text: str, before: str) -> Edit:
    """Of no version yet."""
    start = _alike(text, before)
    most = min(len(text), len(before)) - start
    end = _alike(text[len(text) - most :][::-1], before[len(before) - most :][::-1])
    return Edit(0, start, len(text) - start - end, before[start : len(before) - end])


def undone(text: str, edit: Edit) -> str:
    return text[: edit.place] + edit.before + text[edit.place + edit.length :]


def without_words(text: str, words: Sequence[str]) -> str:
    """Without the lines that hold any of these. A few letters stand in many lines that have nothing to do with them:
    they are only looked for as whole lines."""
    patterns = [_pattern(each) for each in words if each.strip()]
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not any(each.search(line.casefold()) for each in patterns))


def _pattern(words: str) -> re.Pattern[str]:
    plain = words.strip().casefold()
    said = re.escape(plain)
    if len(words_of(plain)) < SAYING:
        return re.compile(rf"^\W*{said}\W*$")
    before = f"(?<!{_LETTER})" if plain[0].isalnum() else ""
    return re.compile(before + said + (f"(?!{_LETTER})" if plain[-1].isalnum() else ""))


def _alike(one: str, other: str) -> int:
    """With how many same characters they begin; halving, for documents are long and differ little."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least
