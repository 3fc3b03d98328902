"""The words of a text, by which it is found again (full-text search): letters and digits, without case and accents.

They are made here and not by the databases, so that both find the same. Chinese and Japanese have no spaces, so there
each character is a word.
"""

import re
import unicodedata
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice, zip_longest
from math import log
from typing import TypeVar

LONGEST = 64  # letters of a word; what is longer is not typed by anyone
MOST = 5000  # different words of an entry

_ALONE = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = rf"[{_ALONE}]|[^\W_{_ALONE}]+"  # compiled at its first use, which a short conversation never comes to
_SAID_BY_ALL = (
    "a about again also am an and any are as at be been but by can could did do does for from had has have hello "
    "hey hi how i if in into is it its just me my no not now of ok okay on or our please remember s said say so t "
    "tell thank thanks that the their them then there these they this to told us was we were what when where which "
    "who whose why will with would yes you your"
)
_COMMON = frozenset(_SAID_BY_ALL.split())
_STEMMED, _STEM = 4, 3  # letters of a word that has endings, and of what is left of it at least
_ENDINGS = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("ss", "ss"), ("us", "us"), ("is", "is"), ("s", ""))
_VOWELS = frozenset("aeiouy")
_DIGITS = 6  # by which a long number is known, with or without what stands before it, such as a country's
_NUMBER = r"\+?\d(?:[ ./()-]{0,2}\d){5,}"
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH = rf"(?:{'|'.join(f'{name[:3]}(?:{name[3:]})?' for name in _MONTHS)})\b"
_CODE = rf"\b[a-z0-9]+(?:[-/.][a-z0-9]+)+|\b(?!{_MONTH})[a-z]{{1,5}}(?: [0-9]{{2,}}[a-z]?)+(?: [a-z])?\b"
_DATE = rf"\b(\d{{4}}-\d\d-\d\d)\b|\b(\d\d?(?:st|nd|rd|th|\.)?(?: of)? {_MONTH})|\b({_MONTH} \d\d?)\b"


def words_of(text: str) -> list[str]:
    """The different words of a text, in their order."""
    return list(dict.fromkeys(word[:LONGEST] for word in re.findall(_WORD, folded(text))))[:MOST]


def placed(text: str) -> Iterator[tuple[int, list[str]]]:
    """Where each word of a text stands, and how it is spelled there: one word, but for a few odd letters."""
    return ((match.start(), re.findall(_WORD, folded(match[0]))) for match in re.finditer(_WORD, text))


def uncommon(words: Iterable[str]) -> list[str]:
    """Those that say what is looked for; people ask in sentences."""
    return [word for word in words if word not in _COMMON]


def terms_of(text: str) -> list[str]:
    """By which a fact is found: its words without their endings, but for those that all facts hold; numbers and codes
    also as they are written without gaps, and the months of dates by their names."""
    words = words_of(text)
    plain = [stem(word) for word in uncommon(words) or words]
    return list(dict.fromkeys((*plain, *_joined(folded(text)))))


def stem(word: str) -> str:
    """An English word without the endings that its neighbours in a sentence give it. It need not be a word: what is
    looked for loses the same ones."""
    if len(word) < _STEMMED or not word.isascii() or not word.isalpha():
        return word
    for ending, instead in _ENDINGS:
        left = word[: -len(ending)] + instead
        if word.endswith(ending) and len(left) >= _STEM and not _VOWELS.isdisjoint(left):
            word = left
            break
    if len(word) > _STEM and word[-1] == word[-2] and word[-1] not in "aeiouls":
        return word[:-1]  # planned, running
    return word[:-1] if word[-1] == "e" and len(word) > _STEM else word


def _joined(text: str) -> Iterator[str]:
    """Of a text without case and accents: 912 34 567 as its last digits, AB-12/c as ab12c, 2026-03-14 and
    14 March as 14.3."""
    for match in re.finditer(_NUMBER, text):
        digits = re.sub(r"\D", "", match[0])
        yield f"#{digits[-_DIGITS:]}"
    for match in re.finditer(_CODE, text):
        if any(letter.isdigit() for letter in match[0]) and match[0].split()[0] not in _COMMON:
            yield re.sub(r"\W", "", match[0])
    for year_first, day_first, month_first in re.findall(_DATE, text):
        *_, month, day = year_first.split("-") if year_first else _month_and_day(day_first or month_first)
        yield from (stem(_MONTHS[int(month) - 1]), f"{int(day)}.{int(month)}.") if 1 <= int(month) <= 12 else ()


def _month_and_day(date: str) -> tuple[int, str]:
    [month] = [place for place, name in enumerate(_MONTHS, 1) if name[:3] in date]
    return month, re.findall(r"\d+", date)[0]


def folded(text: str) -> str:
    """Without case and accents."""
    plain = text.casefold()
    if plain.isascii():
        return plain
    return "".join(letter for letter in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(letter))


def is_question(text: str) -> bool:
    """Whoever looks for something looks for what was answered before what was asked."""
    return text.rstrip(" \n\"'”»)").endswith(("?", "？", "؟"))


def rarity(held: int, of: int) -> float:
    """How much it tells that an entry holds a word, when so many of so many do. Two rare words are to count for more
    than any number of common ones, which every long text holds."""
    return log(max(1.2, of / max(1, held))) ** 2


Place = TypeVar("Place")
Enough = Callable[[AbstractSet[str], int], bool]
_AS_GOOD = 0.6  # as the best


def best_of(
    places: Iterable[tuple[Place, AbstractSet[str]]],
    weights: Mapping[str, float],
    most: int,
    enough: Enough = lambda words, round: True,
) -> list[Place]:
    """The places that are most likely meant, best first; of equals the first given. `enough` says which words are worth
    a place, and in which round, when others with the same words have been taken before.

    Good is what holds most of the words, and good is what holds those that nothing before it does. By the first alone,
    whoever asks in the same phrase about one thing after the other would be shown their own earlier questions; by the
    second alone, nothing that stands beside what is just a little more likely. So they take turns."""
    known = [(place, frozenset(words)) for place, words in places]
    heavy, covering = _heaviest(known, weights, enough), _covering(known, weights, most, enough)
    turns = (place for pair in zip_longest(covering, heavy) for place in pair if place is not None)
    return list(islice(dict.fromkeys(turns), most))


def _heaviest(
    places: Sequence[tuple[Place, frozenset[str]]], weights: Mapping[str, float], enough: Enough
) -> list[Place]:
    """Those that hold most of the words, or nearly as much as the best does."""
    weighed = [(sum(weights[word] for word in words), place) for place, words in places if enough(words, 1)]
    least = _AS_GOOD * max((weight for weight, _ in weighed), default=0.0)
    heavy = [(weight, place) for weight, place in weighed if weight >= least]
    return [place for _, place in sorted(heavy, key=lambda each: -each[0])]


def _covering(
    places: Sequence[tuple[Place, frozenset[str]]], weights: Mapping[str, float], most: int, enough: Enough
) -> list[Place]:
    """Those that together hold as much as possible. When all that can be had is held, a new round begins."""
    groups: defaultdict[frozenset[str], deque[Place]] = defaultdict(deque)
    for place, words in places:
        groups[words].append(place)
    picked: list[Place] = []
    for round in range(1, most + 1):
        left, before = set(weights), len(picked)
        while len(picked) < most:
            words = _next([words for words in groups if enough(words & left, round)], weights, left)
            if not words & left:
                break
            picked.append(groups[words].popleft())
            left -= words
            if not groups[words]:
                del groups[words]
        if len(picked) == before:
            break
    return picked


def _next(groups: Iterable[frozenset[str]], weights: Mapping[str, float], left: AbstractSet[str]) -> frozenset[str]:
    """The words of the group that holds most of what is left, and if that is the same, most of all."""

    def weight(words: AbstractSet[str]) -> tuple[float, float]:
        return sum(weights[word] for word in words & left), sum(weights[word] for word in words)

    return max(groups, key=weight, default=frozenset())
