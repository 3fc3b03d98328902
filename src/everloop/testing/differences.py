"""Where a request differs from one that was recorded, told so that a person sees it at a glance."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from msgspec import Struct

from .masking import MASK

_ABSENT = object()
_BEFORE, _LENGTH = 15, 60  # characters of a long value that are shown, from before the first that differs
# What everloop itself tells its models about the moment and the place.
_VOLATILE = (r"(?<=Current time: )[^\n]*", r"(?<=Your workspace is the folder )[^\n;]*")
_NOT_COMPARED = {"prompt_cache_key"}  # the conversation's name, which is another in each home


class RequestDifference(Struct, frozen=True):
    place: str
    recorded: Any
    asked: Any

    def __str__(self) -> str:
        start = max(0, _first_difference(self.recorded, self.asked) - _BEFORE)
        return f"{self.place}: recorded {_show(self.recorded, start)}, asked {_show(self.asked, start)}"


class Comparison:
    """Compares JSON values. What a mask hides in the recorded one may be anything in the other."""

    def __init__(self, volatile: Sequence[str] = ()) -> None:
        """`volatile` are regular expressions for what may differ in a text."""
        self._volatile = re.compile("|".join(f"(?:{pattern})" for pattern in (*_VOLATILE, *volatile)))

    def same(self, recorded: Any, asked: Any) -> bool:
        return next(self._walk(recorded, asked, ""), None) is None

    def differences(self, recorded: Any, asked: Any) -> list[RequestDifference]:
        return list(self._walk(recorded, asked, ""))

    def _walk(self, recorded: Any, asked: Any, place: str) -> Iterator[RequestDifference]:
        match recorded, asked:
            case dict(), dict():
                for key in (key for key in {**recorded, **asked} if key not in _NOT_COMPARED):
                    inner = f"{place}.{key}" if place else key
                    yield from self._walk(recorded.get(key, _ABSENT), asked.get(key, _ABSENT), inner)
            case list(), list():
                for number, (one, other) in enumerate(zip_longest(recorded, asked, fillvalue=_ABSENT)):
                    yield from self._walk(one, other, f"{place}[{number}]")
            case str(), str():
                if recorded != asked:
                    yield from self._compare(recorded, asked, place)
            case _:
                if recorded != asked:
                    yield RequestDifference(place or "the body", recorded, asked)

    def _compare(self, recorded: str, asked: str, place: str) -> Iterator[RequestDifference]:
        recorded, asked = self._volatile.sub("…", recorded), self._volatile.sub("…", asked)
        if not _fits(recorded.split(MASK), asked):
            yield RequestDifference(place or "the body", recorded, asked)


def _fits(parts: Sequence[str], text: str) -> bool:
    """Whether the text is these parts with anything between them."""
    first, *between = parts
    if not between:
        return text == first
    last, at = between.pop(), len(first)
    for part in between:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return text.startswith(first) and text.endswith(last) and len(text) - len(last) >= at


def _first_difference(one: Any, other: Any) -> int:
    if not (isinstance(one, str) and isinstance(other, str)):
        return 0
    pairs = enumerate(zip_longest(one, other))
    return next((number for number, (mine, yours) in pairs if mine != yours), 0)


def _show(value: Any, start: int) -> str:
    if value is _ABSENT:
        return "nothing"
    if not isinstance(value, str):
        text = repr(value)
        return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}…"
    end = start + _LENGTH
    return ("…" if start else "") + repr(value[start:end]) + ("…" if len(value) > end else "")
