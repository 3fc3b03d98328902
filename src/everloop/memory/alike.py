"""Whether a text tells the same as another, by the words that say something in it."""

from ..readings.words import terms_of, words_of

_ENOUGH = 0.5  # of the telling words
_STEM = 4  # letters by which words of a kind are known
_OF_SPEAKER = frozenset({"user", "person", "they", "he", "she"})


def share_in(fact: str, text: str, names: str = "") -> float:
    """Which share of a fact's telling words stands in a text. Who it is about (`names`) does not count."""
    named = {*terms_of(names), *words_of(names), *_OF_SPEAKER}
    telling = [word for word in terms_of(fact) if word not in named]
    held = {*terms_of(text), *words_of(text)}
    return sum(any(_alike(word, other) for other in held) for word in telling) / max(1, len(telling))


def tells_of(fact: str, text: str, names: str = "") -> bool:
    return share_in(fact, text, names) >= _ENOUGH


def tells_all(fact: str, text: str) -> bool:
    """Whether all of it stands there; of one word alone nobody can say that."""
    return len(terms_of(fact)) > 1 and share_in(fact, text) == 1.0


def _alike(one: str, other: str) -> bool:
    return one == other or (len(one) >= _STEM <= len(other) and one[:_STEM] == other[:_STEM])
