"""Cosines of models that find everything alike, or nothing, are brought to those of the built-in one."""

import pytest

from everloop.memory.scales import BUILT_IN, TEXTS, Scale, scale_of
from tests.memory.embedders import known


def test_the_scale_is_what_a_model_makes_of_pairs_that_are_known():
    found = scale_of([known(place) for place in range(len(TEXTS))])
    assert (found.alike, found.apart) == (pytest.approx(BUILT_IN.alike), pytest.approx(BUILT_IN.apart))
    assert found.brought(0.5) == pytest.approx(0.5)


@pytest.mark.parametrize("cosine", [0.0, 0.2, 0.34, 0.8])
def test_a_model_that_finds_everything_alike_is_told_from_by_the_same_numbers(cosine: float):
    def squeezed(found: float) -> float:
        return 0.7 + 0.3 * found

    crowded = Scale(squeezed(BUILT_IN.alike), squeezed(BUILT_IN.apart))
    assert crowded.brought(squeezed(cosine)) == pytest.approx(cosine)


def test_a_model_that_tells_nothing_from_anything_brings_no_error():
    assert scale_of([[0.0, 0.0]] * len(TEXTS)).brought(0.0) == pytest.approx(BUILT_IN.apart)
