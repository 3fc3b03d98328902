"""Embedders for tests: they know a few words that mean the same, and count what they are asked."""

from collections.abc import Sequence

from everloop.errors import HostUnreachable
from everloop.ports.provider import Embeddings

MEANINGS = ({"cat", "kitten", "pet", "miso"}, {"live", "lives", "home", "oslo", "rome"}, {"tea", "drink", "beverage"})


def vector(text: str) -> list[float]:
    words = set(text.casefold().replace("'s", "").replace("?", "").split())
    return [float(len(words & meaning)) for meaning in MEANINGS] + [0.05]


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
        return Embeddings([vector(text) for text in texts], self.name)
