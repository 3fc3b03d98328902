"""What facts are found by: their words, which are kept with them, and vectors, which are made later."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from .memory import Fact
from .provider import Embeddings


class PaidEmbedder(Protocol):
    """Who makes vectors of texts at the moment, at the expense of the principal whose they are."""

    async def model(self) -> str:
        """Its name, without loading anything; "": nobody makes any."""
        ...

    async def embed(self, owner: str, texts: Sequence[str]) -> Embeddings | None:
        """None: nobody makes any, or there is no room for it in their budget. Raises ProviderError, StoreError."""
        ...


class FactVector(Struct, frozen=True):
    """Of a fact as it was at a version of the memory."""

    fact: str
    version: int
    vector: bytes


class VectorsBehind(Struct, frozen=True):
    """A principal some of whose facts, up to a version of their memory, may have no vector of a model."""

    owner: str
    version: int


class VectorChanges(Struct, frozen=True):
    """What has changed since a version of the memory and a stamp of its vectors: what to drop, then what to put. With
    `anew`, facts were forgotten, and all is to be read again from nothing."""

    version: int
    stamp: int
    anew: bool = False
    dropped: tuple[str, ...] = ()
    vectors: tuple[tuple[str, bytes], ...] = ()


class WordHolders(Struct, frozen=True):
    """How many facts hold a word, and which, where these are few."""

    count: int
    facts: tuple[str, ...] = ()


class FactWords(Protocol):
    """Raises StoreError."""

    async def word_holders(self, owner: str, words: Sequence[str], limit: int) -> dict[str, WordHolders]:
        """By how many facts each of the words is held, also of those that are true no longer; words that none holds are
        left out. By which, where these are at most so many; of words that all tell less than that, some of the rarest
        one's."""
        ...

    async def facts_holding(self, owner: str, words: Sequence[str], limit: int, *, ended: bool = False) -> list[Fact]:
        """Those that hold most of these words, the most first; with `ended` also those that are true no longer."""
        ...

    async def count_facts(self, owner: str) -> int:
        """How many are true."""
        ...

    def lacks_memory(self, owner: str) -> bool:
        """Whether `has_memory` has found a moment ago that there is none; known at once."""
        ...

    async def has_memory(self, owner: str) -> bool:
        """Whether anything was ever remembered. What another process has just written may be seen a second later."""
        ...


class FactVectors(Protocol):
    """Vectors of one model cannot be compared with those of another: every question names its model. Those of a fact
    that is changed or removed go with the change. Raises StoreError."""

    async def vectors_behind(self, model: str, limit: int, owner: str = "", after: str = "") -> list[VectorsBehind]:
        """Whose facts have changed since all of them had vectors of this model; of one owner, or of all by their names,
        from behind one on."""
        ...

    async def unembedded(self, owner: str, model: str, limit: int) -> list[Fact]:
        """Facts that are true and have no vector of this model, the newest first."""
        ...

    async def keep_vectors(self, owner: str, model: str, vectors: Sequence[FactVector]) -> None:
        """But for those of facts that have changed meanwhile. The version of the memory stays."""
        ...

    async def all_embedded(self, owner: str, model: str, version: int) -> None:
        """Every fact up to this version has its vector: those of other models are removed."""
        ...

    async def vector_changes(self, owner: str, model: str, version: int, stamp: int) -> VectorChanges:
        """Since these; 0 and 0 for all."""
        ...
