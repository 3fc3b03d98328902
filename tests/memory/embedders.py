"""Embedders for tests: they know a few words that mean the same, and count what they are asked."""

from collections.abc import Sequence

from everloop.errors import HostUnreachable
from everloop.memory.scales import BUILT_IN, TEXTS
from everloop.ports.provider import Embeddings

MEANINGS = ({"cat", "kitten", "pet", "miso"}, {"live", "lives", "home", "oslo", "rome"}, {"tea", "drink", "beverage"})


def vector(text: str) -> list[float]:
    words = set(text.casefold().replace("'s", "").replace("?", "").split())
    return [float(len(words & meaning)) for meaning in MEANINGS] + [0.05]


def known(place: int) -> list[float]:
    """The vector of one of the TEXTS, so that the scale is that of the built-in model."""
    pair, told = divmod(place, 2)
    parts = [BUILT_IN.apart if told else 0.0] * (len(TEXTS) // 2)
    parts[pair] = BUILT_IN.alike if told else 1.0
    return [*parts, (1.0 - sum(part * part for part in parts)) ** 0.5 if told else 0.0]


class WordEmbedder:
    """The PaidEmbedder port."""

    def __init__(self, name: str = "host/words", *, broken: bool = False, room: int = 10**9) -> None:
        self.name = name
        self.broken = broken
        self.room = room  # texts that may be embedded
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    async def model(self) -> str:
        return self.name

    async def embed(self, owner: str, texts: Sequence[str]) -> Embeddings | None:
        self.asked.append((owner, tuple(texts)))
        if self.broken:
            raise HostUnreachable("nobody is there")
        if len(texts) > self.room:
            return None
        return Embeddings([known(TEXTS.index(text)) if text in TEXTS else vector(text) for text in texts], self.name)
