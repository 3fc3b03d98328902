"""How alike a model finds what means the same, and what has nothing to do with each other. The numbers of ranking.py
were found with the built-in one; another's cosines are brought to those, by what it makes of pairs that are known.
"""

from collections.abc import Sequence
from math import sqrt
from operator import mul

from msgspec import Struct

PAIRS = (
    ("Where does my sister work?", "Ines is employed at the harbour office in Split"),
    ("What can't the boy eat?", "Milo is allergic to strawberries"),
    ("When is the car inspected?", "The Volvo goes to its technical check in May"),
    ("How do I open the garage?", "The code of the garage door is 7731"),
    ("Which doctor looks after grandma?", "Dr Pereira treats Grandmother's heart"),
    ("What did the roof cost?", "The roofer billed 18,200 euros"),
    ("Who takes care of the dog in August?", "Leonie walks Bruno while we are on holiday"),
    ("Which train do I usually take?", "The 6:48 from Gare du Nord is the one for the office"),
    ("What should the website be written in?", "The team chose Elixir for the new shop"),
    ("How do I like my steak?", "Rare, with nothing but salt"),
    ("What was the concert called?", "We heard Winterreise in the town hall"),
    ("When does the contract end?", "The lease runs until 30 September 2031"),
)
TEXTS = tuple(text for pair in PAIRS for text in pair)


class Scale(Struct, frozen=True):
    """The mean cosine of what belongs together, and of what does not."""

    alike: float
    apart: float

    def brought(self, cosine: float) -> float:
        """To what the built-in model would have found."""
        share = (cosine - self.apart) / max(0.05, self.alike - self.apart)
        return BUILT_IN.apart + share * (BUILT_IN.alike - BUILT_IN.apart)


BUILT_IN = Scale(0.352, 0.070)


def scale_of(vectors: Sequence[Sequence[float]]) -> Scale:
    """By those of the TEXTS."""
    asked, told = vectors[::2], vectors[1::2]
    alike = [_cosine(one, other) for one, other in zip(asked, told, strict=True)]
    apart = [_cosine(one, other) for n, one in enumerate(asked) for m, other in enumerate(told) if n != m]
    return Scale(sum(alike) / len(alike), sum(apart) / len(apart))


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = sqrt(sum(map(mul, one, one)) * sum(map(mul, other, other)))
    return float(sum(map(mul, one, other)) / lengths) if lengths else 0.0
