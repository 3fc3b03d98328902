"""Vectors as they are kept, and the index of one principal's in this process.

A vector is kept as one byte for each of its numbers. To find the nearest of many, the signs alone are compared, as the
bits of one integer: that picks a few hundred, of which the vectors themselves then tell the order. Both are of Python's
own, so that an embedder at a host needs no further package.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import repeat
from math import sqrt
from operator import mul, xor

from msgspec import Struct

PICKED = 120  # by their signs, of which the order is told by the vectors
OVERHEAD = 250  # bytes of an entry of the index, beside its vector
_HEAD = struct.Struct("<f")  # one divided by the length of what follows
_SIGNS = bytes(ord("1") if byte < 128 else ord("0") for byte in range(256))


def packed(vector: Sequence[float]) -> bytes:
    """As it is kept."""
    most = max(map(abs, vector), default=0.0) or 1.0
    numbers = [round(127 * number / most) for number in vector]
    length = sqrt(sum(map(mul, numbers, numbers))) or 1.0
    return _HEAD.pack(1 / length) + struct.pack(f"<{len(numbers)}b", *numbers)


def cosine(query: Sequence[int], vector: bytes) -> float:
    """Of a query's numbers, and of a vector as it is kept."""
    [scale] = _HEAD.unpack_from(vector)
    return float(sum(map(mul, query, memoryview(vector)[_HEAD.size :].cast("b"))) * scale)


class Near(Struct, frozen=True):
    fact: str
    cosine: float


class VectorIndex:
    """The facts of one principal. `version` and `stamp` say up to where it knows them."""

    def __init__(self) -> None:
        self.version = self.stamp = 0
        self._vectors: dict[str, bytes] = {}
        self._signs: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._vectors)

    @property
    def size(self) -> int:
        """Bytes, about."""
        longest = len(next(iter(self._vectors.values()), b""))
        return len(self) * (OVERHEAD + longest + longest // 8)

    def put(self, vectors: Iterable[tuple[str, bytes]]) -> None:
        for fact, vector in vectors:
            self._vectors[fact] = vector
            self._signs[fact] = _signs_of(vector)

    def drop(self, facts: Iterable[str]) -> None:
        for fact in facts:
            self._vectors.pop(fact, None)
            self._signs.pop(fact, None)

    def clear(self) -> None:
        self._vectors.clear()
        self._signs.clear()

    def nearest(self, query: Sequence[float], most: int) -> list[Near]:
        """The nearest first. Vectors of another length are of another model, and are passed over."""
        wanted = packed(query)
        numbers, [scale] = memoryview(wanted)[_HEAD.size :].cast("b").tolist(), _HEAD.unpack_from(wanted)
        near = {fact: scale * cosine(numbers, self._vectors[fact]) for fact in self._picked(wanted)}
        best = nlargest(most, near, key=near.__getitem__)
        return [Near(fact, near[fact]) for fact in best]

    def cosines(self, query: Sequence[float], facts: Iterable[str]) -> Mapping[str, float]:
        """Of these facts, as far as there are vectors of them."""
        wanted = packed(query)
        numbers, [scale] = memoryview(wanted)[_HEAD.size :].cast("b").tolist(), _HEAD.unpack_from(wanted)
        known = {fact: self._vectors[fact] for fact in facts if fact in self._vectors}
        return {fact: scale * cosine(numbers, vector) for fact, vector in known.items() if len(vector) == len(wanted)}

    def _picked(self, wanted: bytes) -> list[str]:
        if len(self) <= PICKED:
            return [fact for fact, vector in self._vectors.items() if len(vector) == len(wanted)]
        differing = list(map(int.bit_count, map(xor, self._signs.values(), repeat(_signs_of(wanted)))))
        most = _bound(differing)
        picked = [fact for fact, bits in zip(self._signs, differing, strict=True) if bits <= most]
        return [fact for fact in picked if len(self._vectors[fact]) == len(wanted)]


def _bound(differing: Sequence[int]) -> int:
    """The number of bits by which as many differ at most as are to be picked. Counting is quicker than sorting."""
    counts, held = Counter(differing), 0
    for bits in sorted(counts):
        held += counts[bits]
        if held >= PICKED:
            return bits
    return max(counts)


def _signs_of(vector: bytes) -> int:
    return int(vector[_HEAD.size :].translate(_SIGNS) or b"0", 2)
