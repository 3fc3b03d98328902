"""Which facts a question means: by the words that it shares with them, and by how near their vectors are.

Both count together, as one number, and not as the places in two lists: rank fusion lets a fact that shares a common
word stand before one that means the same in other words. The numbers were found on one half of the questions in
tests/memory/evaluation, and are tried on the other (docs/recall.md).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import nsmallest
from math import log

from msgspec import Struct

from ..ports.fact_search import WordHolders

WORDS = 16  # of a question
SHARING = 60  # facts that hold most of them, of which it is looked how near they are
HOLDERS = 500  # facts that are looked at for a word; one that more hold tells little
_SHARED = 0.4  # what the words count for, if a fact holds all of them, beside the vectors' cosine
_ALIKE = 0.65  # the cosine that is taken for a fact without a vector, if it holds all of them
_RELEVANT = 0.2  # what they count for when it is asked whether the best is worth anything
_CODE, _LONG = 2.0, 3  # words with digits, of so many letters at least, tell twice as much: numbers, codes, dates

TOLD = 0.34  # relevance of what is told though nobody has looked for it
FOUND = 0.2  # of what is told to whoever looks
NEARLY = 0.7  # of the best one's score: what lies below it is not told beside it


class Ranked(Struct, frozen=True):
    fact: str
    score: float
    relevance: float


def shares_of(words: Sequence[str], held: Mapping[str, WordHolders], of: int, most: int = SHARING) -> dict[str, float]:
    """How much of the question each fact holds, from 0 to 1; of the many the most. Words that no fact holds count, too:
    most likely it is about something else."""
    weights = {word: _weight(word, held[word].count if word in held else 1, of) for word in words}
    whole = sum(weights.values())
    shares: defaultdict[str, float] = defaultdict(float)
    for word in words:
        for fact in held[word].facts if word in held else ():
            shares[fact] += weights[word] / whole
    best = nsmallest(most, shares, key=lambda fact: (-shares[fact], fact))
    return {fact: shares[fact] for fact in best}


def ranked(shares: Mapping[str, float], cosines: Mapping[str, float]) -> list[Ranked]:
    """Best first, of those that share something with the question or have a cosine; of equals the first by name."""
    found = [_ranked(fact, shares.get(fact, 0.0), cosines.get(fact)) for fact in {*shares, *cosines}]
    return sorted(found, key=lambda each: (-each.score, each.fact))


def worth_telling(found: Sequence[Ranked], least: float, most: int) -> list[Ranked]:
    """Of what was ranked; nothing rather than what only stands near."""
    enough = NEARLY * found[0].score if found else 0.0
    return [each for each in found[:most] if each.relevance >= least and each.score >= enough]


def _ranked(fact: str, shared: float, cosine: float | None) -> Ranked:
    alike = _ALIKE * shared if cosine is None else cosine
    return Ranked(fact, alike + _SHARED * shared, alike + _RELEVANT * shared)


def _weight(word: str, count: int, of: int) -> float:
    """The rarer, the more it tells."""
    weight = float(log(max(1.2, of / count)) ** 1.5)
    return weight * _CODE if len(word) >= _LONG and any(letter.isdigit() for letter in word) else weight
