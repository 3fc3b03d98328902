"""The vectors of those who were last asked about, in this process: bounded in bytes over all of them, and brought up to
date whenever one is looked at, whichever process has changed the memory."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from ..ports.fact_search import FactVectors
from .vectors import VectorIndex

LARGEST = 96_000_000  # bytes of all indexes together
LARGE = 500  # vectors at once, from which on they are not taken in on the event loop


class HeldIndex:
    """Of one principal and model. Whoever looks at it holds its lock."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.index = VectorIndex()
        self.is_too_large = False  # to be held at all: words alone answer


class Indexes:
    def __init__(self, store: FactVectors, largest: int = LARGEST) -> None:
        self._store = store
        self._largest = largest
        self._held: OrderedDict[tuple[str, str], HeldIndex] = OrderedDict()

    @property
    def size(self) -> int:
        return sum(held.index.size for held in self._held.values())

    def of(self, owner: str, model: str) -> HeldIndex:
        """Not up to date yet."""
        held = self._held.setdefault((owner, model), HeldIndex())
        self._held.move_to_end((owner, model))
        return held

    async def bring_up(self, owner: str, model: str, held: HeldIndex) -> None:
        """To what the store knows now; whoever calls this holds the lock."""
        index = held.index
        changes = await self._store.vector_changes(owner, model, index.version, index.stamp)
        if changes.anew:
            index = held.index = VectorIndex()
            held.is_too_large = False
        index.drop(changes.dropped)
        if not held.is_too_large:
            await _put(index, changes.vectors)
        index.version, index.stamp = changes.version, changes.stamp
        if index.size > self._largest:
            index.clear()
            held.is_too_large = True
        self._bound((owner, model))

    def _bound(self, kept: tuple[str, str]) -> None:
        for each in list(self._held):
            if self.size <= self._largest:
                break
            if each != kept:
                del self._held[each]


async def _put(index: VectorIndex, vectors: Sequence[tuple[str, bytes]]) -> None:
    if len(vectors) > LARGE:
        await asyncio.to_thread(index.put, vectors)
    else:
        index.put(vectors)
