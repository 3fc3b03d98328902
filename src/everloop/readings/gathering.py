"""What somebody sends in one go is one turn: its letters wait in the inbox until no more have come for a while.

Each letter says until when more may come (`due`). Those of one person at one place wait for the last of them, and for
no longer than LONGEST after the first was due. They wait only before a turn: what comes while one runs steers it. A
stop is for what was said before it, so then nothing waits.
"""

from collections.abc import Sequence

from msgspec import Struct

from ..core.mail import Mail, Said, Stop

LONGEST = 5.0  # seconds for which a stream of messages can put off the turn
SKEW = 60.0  # what is due later than this was written by a clock that is wrong


class Gathering(Struct, frozen=True):
    """The letters for which it is too early, and the moment at which the first of them are due."""

    early: frozenset[int] = frozenset()
    ripe: float = 0.0


NOTHING = Gathering()


def gather(mail: Sequence[Mail], now: float) -> Gathering:
    """Which of these letters wait for more."""
    timed = [each for each in mail if isinstance(each.letter, Said) and each.letter.due]
    if not timed or any(isinstance(each.letter, Stop) for each in mail):
        return NOTHING
    bursts: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for each in timed:
        assert isinstance(each.letter, Said)
        bursts.setdefault((each.letter.author, each.letter.address), []).append((each.letter.due, each.id))
    early = {id: ripe for burst in bursts.values() if now < (ripe := _ripe(burst)) < now + SKEW for _, id in burst}
    return Gathering(frozenset(early), min(early.values())) if early else NOTHING


def _ripe(burst: Sequence[tuple[float, int]]) -> float:
    first, last = min(burst)[0], max(burst)[0]
    return min(last, first + LONGEST)
