"""When what a conversation does to files counts as strangers' doing.

A page can have the model write a file with a file tool, a command, a link, or a command that goes on in the background.
So nobody asks how: from the moment when a call begins that strangers' words may have led to, until it is over, the
folder that it works in is tainted.
"""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import structs

from .rows import Taint
from .tool import Effect, ToolSpec


def taint_of(spec: ToolSpec, outside: bool) -> bool | None:
    """Whether a call of this tool taints its folder with strangers' doing; None if it does not taint it at all.

    Where no stranger has spoken, what a tool tells of its changes is the model's own doing, hence the person's. Of any
    other tool nobody knows what it does to files, or whose script it runs."""
    if spec.effect is Effect.READ:
        return None
    if outside or spec.outside:
        return True
    return None if spec.undoable else False


def merged(taints: Sequence[Taint], most: int) -> list[Taint]:
    """The same times and more, in at most so many: where the shortest pauses were, there are none any more."""
    ordered = sorted(taints, key=lambda taint: taint.began)
    pauses = [after.began - (before.ended or 0.0) for before, after in pairwise(ordered)]
    shortest = sorted(range(len(pauses)), key=pauses.__getitem__)[: max(0, len(ordered) - most)]
    closed = set(shortest)
    kept: list[Taint] = []
    for at, taint in enumerate(ordered):
        if at - 1 in closed:
            last = kept[-1]
            kept[-1] = structs.replace(last, ended=max(last.ended or 0.0, taint.ended or 0.0))
        else:
            kept.append(taint)
    return kept
