"""Facts, found by a question: by its words in any case, and by its meaning where there is an embedder and vectors.

The index only proposes; what is told is read from the store each time. So nothing is told that was forgotten, or is
true no longer, however old an index is.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Protocol

from ..errors import ProviderError
from ..ports.fact_search import FactVectors, FactWords, PaidEmbedder
from ..ports.memory import FactHit, Memory
from ..readings.words import terms_of
from .built_in import NAME
from .indexes import Indexes
from .ranking import FOUND, HOLDERS, TOLD, WORDS, Ranked, ranked, shares_of, worth_telling
from .scales import BUILT_IN, TEXTS, Scale, scale_of
from .telling import told_facts

_log = logging.getLogger("everloop.recall")

NEAREST = 40  # facts that are ranked for their vectors
FEW = 5  # that are told, at most, where nobody has looked for them
SECONDS = 3.0  # for the vector of a question; then words alone answer
LONGEST = 1000  # characters of what is looked for; of what is longer, the beginning and the end
PEOPLE = 1000  # of whom it is known how many facts there are
_AMONG = 8  # more are looked at than are told: some may be true no longer


class RecallStore(Memory, FactWords, FactVectors, Protocol):
    """What it asks of the store."""


class Recall:
    """The FactFinder and the FactTeller port."""

    def __init__(self, store: RecallStore, embedder: PaidEmbedder, indexes: Indexes | None = None) -> None:
        self.lacks = store.lacks_memory
        self._store = store
        self._embedder = embedder
        self._given = indexes
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()  # of facts, at a version of the memory
        self._scales: dict[str, Scale] = {}
        self._told = ""  # why words alone answer, as it was last said

    @cached_property
    def _indexes(self) -> Indexes:
        return self._given or Indexes(self._store)

    async def find(self, owner: str, query: str, limit: int) -> list[FactHit]:
        if not await self._store.has_memory(owner):
            return []
        return await self._hits(owner, await self._ranked(owner, query), FOUND, limit)

    def knows(self, owner: str) -> Awaitable[bool]:
        return self._store.has_memory(owner)

    async def told(
        self, owner: str, said: Sequence[str], shown: Callable[[], str], room: int, *, strangers: bool = False
    ) -> str:
        if not said or not await self._store.has_memory(owner):
            return ""
        hits = await self._hits(owner, await self._ranked(owner, "\n".join(said)), TOLD, FEW + _AMONG)
        facts = [hit.fact for hit in hits if strangers or not hit.fact.marked][:FEW]
        if not facts:
            return ""
        there = shown()
        return told_facts([fact for fact in facts if fact.text not in there], owner, room)

    async def _hits(self, owner: str, found: Sequence[Ranked], least: float, limit: int) -> list[FactHit]:
        """As the store knows them now."""
        worth = worth_telling(found, least, limit + _AMONG)
        facts = await self._store.facts(owner, ids=[each.fact for each in worth]) if worth else []
        scores = {each.fact: each.score for each in worth}
        return [FactHit(fact, scores[fact.id]) for fact in facts[:limit]]

    async def _ranked(self, owner: str, query: str) -> list[Ranked]:
        query = query if len(query) <= LONGEST else f"{query[: LONGEST // 2]} {query[-LONGEST // 2 :]}"
        words = terms_of(query)[:WORDS]
        if not words:
            return []
        held = await self._store.word_holders(owner, words, HOLDERS)
        shares = shares_of(words, held, await self._count(owner)) if held else {}
        return ranked(shares, await self._cosines(owner, query, shares))

    async def _count(self, owner: str) -> int:
        """How many facts there are, counted once for each version of the memory."""
        version = await self._store.memory_version(owner)
        if self._counts.get(owner, (0, 0))[0] != version:
            self._counts[owner] = version, await self._store.count_facts(owner)
            if len(self._counts) > PEOPLE:
                self._counts.popitem(last=False)
        return self._counts[owner][1]

    async def _cosines(self, owner: str, query: str, facts: Sequence[str] | dict[str, float]) -> dict[str, float]:
        """Of the facts that lie nearest to a question, and of these."""
        if not (model := await self._embedder.model()):
            return {}
        held = self._indexes.of(owner, model)
        async with held.lock:
            await self._indexes.bring_up(owner, model, held)
        if not len(held.index) or not (vectors := await self._vectors(owner, [query])):
            return {}
        vector = vectors[0]
        async with held.lock:
            near = {each.fact: each.cosine for each in held.index.nearest(vector, NEAREST)}
            near.update(held.index.cosines(vector, facts))
        if model == NAME:
            return near
        scale = await self._scale(owner, model)
        return {fact: scale.brought(cosine) for fact, cosine in near.items()}

    async def _scale(self, owner: str, model: str) -> Scale:
        """Of another model than the built-in one: asked once, at the expense of who asks first."""
        if model not in self._scales:
            vectors = await self._vectors(owner, TEXTS)
            if not vectors:
                return BUILT_IN
            self._scales[model] = scale_of(vectors)
        return self._scales[model]

    async def _vectors(self, owner: str, texts: Sequence[str]) -> list[list[float]]:
        """[] where there is none to be had: then words alone answer."""
        try:
            async with asyncio.timeout(SECONDS):
                made = await self._embedder.embed(owner, texts)
        except (ProviderError, TimeoutError) as error:
            why = str(error) or f"it took more than {SECONDS:.0f} seconds"
            if why != self._told:
                _log.warning("facts are found by their words alone, for no vector of the question can be had: %s", why)
            self._told = why
            return []
        self._told = ""
        return made.vectors if made else []
