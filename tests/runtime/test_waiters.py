"""Who waits for a turn, and who comes late."""

import pytest

from everloop.core.turn import Finished
from everloop.errors import TurnFailed
from everloop.runtime import waiters
from everloop.runtime.waiters import Waiters


def ended(mail: int) -> Finished:
    return Finished(1, mail, f"to {mail}", "api:a", (mail,))


async def test_whoever_waits_is_told_and_so_is_whoever_comes_a_moment_later():
    waiting = Waiters()
    early = waiting.add("t", 7)
    waiting.tell(ended(7))
    late = waiting.add("t", 7)
    assert [await early, await late] == [ended(7), ended(7)]


async def test_what_ended_long_ago_is_not_kept():
    waiting = Waiters()
    for mail in range(waiters.RECENT + 1):
        waiting.tell(ended(mail))
    assert [waiting.add("t", mail).done() for mail in (0, 1)] == [False, True]


async def test_a_house_that_closes_tells_whoever_waits_and_whoever_comes():
    waiting = Waiters()
    early = waiting.add("t", 7)
    waiting.close()
    for future in (early, waiting.add("t", 8)):
        with pytest.raises(TurnFailed, match="goes on at the next start"):
            await future
