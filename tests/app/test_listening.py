"""How a channel stands is told when it changes, and not before it is known."""

import asyncio

import pytest

from everloop.app.listening import CALM, SETTLED, ToldListening
from everloop.errors import ChannelRefused
from everloop.ports.listening import ChannelStanding, ListeningState, Traffic


class Notes:
    """What was told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.more = asyncio.Event()

    async def keep_listening(self, lease: str, state: ListeningState, why: str = "") -> None:
        self.told.append((state, why))
        self.more.set()

    async def listening(self) -> dict[str, ChannelStanding]:
        return {}

    async def traffic(self, channel: str) -> Traffic:
        return Traffic()

    async def until(self, number: int) -> None:
        while len(self.told) < number:
            self.more.clear()
            await self.more.wait()


async def refuse() -> None:
    raise ChannelRefused("the token is\nwrong")


async def returns() -> None:
    pass


class Bed:
    """A clock on which who sleeps is awake when they are woken."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.asleep, self.woken = asyncio.Event(), asyncio.Event()

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        self.asleep.set()
        await self.woken.wait()


@pytest.mark.parametrize(("failures", "seconds"), [(0, SETTLED), (2, CALM)])
async def test_it_listens_when_it_has_gone_well_for_a_while_and_after_a_failure_for_longer(
    failures: int, seconds: float
):
    clock, notes = Bed(), Notes()
    told = ToldListening(notes, "fake", clock)
    for _ in range(failures):
        with pytest.raises(ChannelRefused):
            await told.run(refuse)
    running = asyncio.ensure_future(told.run(asyncio.Event().wait))
    await clock.asleep.wait()
    before = [("starting", ""), *[("failed", "the token is wrong")] * failures]
    assert (clock.asked, notes.told) == ([seconds], before)
    clock.woken.set()
    await notes.until(len(before) + 1)
    running.cancel()
    await asyncio.wait([running])
    assert notes.told == [*before, ("listening", "")]


async def test_one_that_the_platform_calls_listens_at_once():
    notes = Notes()
    await ToldListening(notes, "fake", Bed()).run(returns)
    assert notes.told == [("starting", ""), ("listening", "")]
