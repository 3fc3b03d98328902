"""Vectors as they are kept, and the nearest of many of them."""

import random

import pytest

from everloop.memory.vectors import PICKED, VectorIndex, packed


def around(chance: random.Random, centre: list[float], spread: float) -> list[float]:
    return [number + chance.gauss(0, spread) for number in centre]


def cosine(one: list[float], other: list[float]) -> float:
    lengths = (sum(x * x for x in one) * sum(x * x for x in other)) ** 0.5
    return sum(map(lambda x, y: x * y, one, other)) / lengths


def test_a_kept_vector_is_as_near_as_the_vector_itself_within_a_hundredth():
    chance = random.Random(1)
    one, other = ([chance.gauss(0, 1) for _ in range(384)] for _ in range(2))
    index = VectorIndex()
    index.put([("one", packed(one)), ("other", packed(other))])
    near = index.cosines(one, ["one", "other", "gone"])
    assert near == pytest.approx({"one": 1.0, "other": cosine(one, other)}, abs=0.01)


def test_of_thousands_the_nearest_are_found_in_their_order():
    chance = random.Random(2)
    wanted = [chance.gauss(0, 1) for _ in range(96)]
    index = VectorIndex()
    index.put((f"far{n}", packed([chance.gauss(0, 1) for _ in range(96)])) for n in range(20 * PICKED))
    index.put((f"near{n}", packed(around(chance, wanted, 0.2 + n / 10))) for n in range(5))
    assert [each.fact for each in index.nearest(wanted, 5)] == [f"near{n}" for n in range(5)]


def test_what_is_dropped_is_found_no_more_and_what_is_put_again_counts_once():
    index = VectorIndex()
    index.put([("a", packed([1.0, 0.0])), ("b", packed([0.9, 0.1]))])
    index.put([("b", packed([0.0, 1.0]))])
    index.drop(["a", "never there"])
    assert [(each.fact, round(each.cosine, 3)) for each in index.nearest([0.0, 2.0], 5)] == [("b", 1.0)]
    assert (len(index), index.size > 0) == (1, True)


def test_vectors_of_another_length_are_passed_over_and_one_of_nothing_but_zeros_is_near_to_nothing():
    index = VectorIndex()
    index.put([("other", packed([1.0, 0.0, 0.0])), ("zero", packed([0.0, 0.0]))])
    assert [(each.fact, each.cosine) for each in index.nearest([1.0, 0.0], 5)] == [("zero", 0.0)]
    assert index.cosines([1.0, 0.0], ["other"]) == {}
