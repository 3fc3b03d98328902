"""How much is tried: little where somebody works on one room, enough in `make test`, all there is in `make torture`.

What `make test` does in a short form is marked, and `make torture` runs what is marked with EVERLOOP_FULL=1:

    @pytest.mark.shortened
    def test_…():
        for world in worlds(in_full(500, 20)): …

A property needs no mark. In `make test` its examples are the same in every run, in `make torture` they are new ones.
"""

import os
from typing import TypeVar

from hypothesis import settings

FULL = bool(os.environ.get("EVERLOOP_FULL"))
THOROUGH = FULL or bool(os.environ.get("EVERLOOP_THOROUGH"))

FEW = 6  # examples of a property, when somebody works on core and wants to know at once
PART = 4  # of all examples, one in so many is tried in `make test`

Amount = TypeVar("Amount")


def in_full(full: Amount, short: Amount) -> Amount:
    """What a test in its full form does, and what in its short one."""
    return full if FULL else short


def examples(count: int) -> settings:
    """So many examples of a property in its full form."""
    if FULL:
        return settings(max_examples=count)
    return settings(max_examples=min(count, max(FEW, count // PART)) if THOROUGH else min(count, FEW))
