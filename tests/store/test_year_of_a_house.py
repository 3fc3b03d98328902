"""A year of a whole house by a clock that was handed over, on both databases: what is told, asked, allowed and sent."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import everloop
from everloop.app import open_desk
from everloop.core.log import Answered, Asked
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.tool import Effect
from everloop.testing import Call, RecordingChannel, Say, ScriptedModel, counting_tool, runs_in
from everloop.testing.channel import Trouble
from everloop.testing.clock import SimulatedClock
from everloop.testing.script import Shown

BEGAN, HOUR, DAY = 1_800_000_000.0, 3600.0, 86400.0


def obedient(shown: Shown) -> Any:
    if shown.asked.startswith("act"):
        return Say("done") if shown.step else Call("act")
    return Say("hello")


class Simulated:
    """A house that is opened by a simulated clock, and what its model was told of the time."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._settings = {"store": {"url": url}}
        self.clock = SimulatedClock(folder / "clock")
        self.clock.set(BEGAN)
        self.told: list[str] = []
        self.channel = RecordingChannel("fake")

    @asynccontextmanager
    async def open(self, model: ScriptedModel | None = None, *tools: everloop.Tool) -> AsyncIterator[everloop.Agent]:
        acting = counting_tool(self._folder / "runs", "act", Effect.UNSAFE, guarded=True)
        more = {"tools": (acting, *tools), "channels": (self.channel,), "clock": self.clock}
        provider = model or ScriptedModel(self._say)
        async with open_desk(self._folder / "home", self._settings, provider=provider, **more) as agent:
            yield agent

    def _say(self, shown: Shown) -> Any:
        self.told.append(shown.tail.splitlines()[0])
        return obedient(shown)

    @property
    def runs(self) -> int:
        path = self._folder / "runs"
        return len(list(runs_in(path))) if path.exists() else 0

    async def pass_until(self, true: Callable[[], Any], step: float = 1.0) -> None:
        """Let time go on until something is so."""
        while not await true():
            self.clock.set(self.clock.now() + step)
            await asyncio.sleep(0.005)


@pytest.fixture
def simulated(home: Any, tmp_path: Path) -> Simulated:
    return Simulated(tmp_path, getattr(home, "url", ""))


def in_words(at: float) -> str:
    return f"Current time: {datetime.fromtimestamp(at).astimezone():%A %Y-%m-%d %H:%M %Z}"


async def test_each_day_of_a_year_is_told_and_kept_as_it_is(simulated: Simulated):
    days = range(0, 365, 26)
    async with simulated.open() as agent:
        for day in days:
            simulated.clock.set(BEGAN + day * DAY)
            assert (await agent.ask("hi")).content == "hello"
        row = await agent.store.session("api:default")
        assert row is not None
        kept = [each.at for each in await agent.store.history(row.id, 0, 100)]
    assert simulated.told == [in_words(BEGAN + day * DAY) for day in days]
    assert sorted(set(kept)) == [BEGAN + day * DAY for day in days]


async def asked_about(agent: everloop.Agent, text: str) -> tuple["asyncio.Task[Any]", Any]:
    asking = asyncio.create_task(agent.ask(text, attended=True))
    while not (waiting := await agent.approvals()):  # noqa: ASYNC110  it happens in the store
        await asyncio.sleep(0.01)
    return asking, waiting[0]


async def test_a_question_lapses_after_its_day_and_not_before(simulated: Simulated):
    async with simulated.open() as agent:
        asking, approval = await asked_about(agent, "act")
        assert approval.until == BEGAN + DAY
        simulated.clock.set(BEGAN + DAY - 60)
        assert [each.id for each in await agent.approvals()] == [approval.id]

        async def has_ended() -> bool:
            return asking.done()

        simulated.clock.set(BEGAN + DAY + 1)
        await simulated.pass_until(has_ended)  # what is due is looked for each second, so that time has to go on
        assert (await asking).content == "done"
        row = await agent.store.session("api:default")
        log = [each.entry for each in await agent.store.history(row.id, 0, 100)]
    assert [each.until for each in log if isinstance(each, Asked)] == [BEGAN + DAY]
    assert [each.verdict for each in log if isinstance(each, Answered)] == ["expired"]
    assert simulated.runs == 0


async def test_a_grant_holds_for_its_hour_and_then_is_asked_again(simulated: Simulated):
    async with simulated.open() as agent:
        asking, approval = await asked_about(agent, "act")
        await agent.decide(approval.id, True, allowance=everloop.Allowance(seconds=HOUR))
        await asking
        assert [grant.until for grant in await agent.grants()] == [BEGAN + HOUR]
        simulated.clock.set(BEGAN + HOUR - 1)
        await agent.ask("act again", attended=True)
        assert simulated.runs == 2
        simulated.clock.set(BEGAN + HOUR + 1)
        assert await agent.grants() == []
        asking, approval = await asked_about(agent, "act once more")
        await agent.decide(approval.id, False)
        await asking
    assert simulated.runs == 2


async def test_an_answer_that_does_not_arrive_is_given_up_after_its_day(simulated: Simulated):
    simulated.channel.trouble(Trouble.DOWN)
    address = Address("fake", "chat")
    async with simulated.open() as agent:
        await agent.tell(Inbound(address, "e", Said(said("hi"), "fake:ann", str(address)), "fake:ann"))

        async def is_given_up() -> bool:
            return [each.state for each in await agent.store.undelivered()] == ["failed"]

        await simulated.pass_until(is_given_up, 300.0)
        [row] = await agent.store.undelivered()
        assert simulated.clock.now() >= BEGAN + DAY - HOUR
        assert row.why.startswith("it did not arrive within 24 hours")
        simulated.channel.trouble(None)
        assert await agent.store.send_again(row.id)

        async def has_arrived() -> bool:
            return bool(simulated.channel.sends)

        await simulated.pass_until(has_arrived)
    assert [sent.text for sent in simulated.channel.sends] == ["(delayed) hello"]


async def test_a_turn_goes_on_while_years_pass(simulated: Simulated):
    """Its lease is elapsed time: a clock that runs ahead takes it from nobody."""
    reached, gate = asyncio.Event(), asyncio.Event()

    @everloop.tool(Effect.READ)
    async def wait() -> str:
        """Wait."""
        reached.set()
        await gate.wait()
        return "waited"

    model = ScriptedModel([Call("wait"), Call("wait"), Say("still here")])
    async with simulated.open(model, wait) as agent:
        asking = asyncio.create_task(agent.ask("wait"))
        await reached.wait()
        simulated.clock.set(BEGAN + 365 * DAY)
        gate.set()
        assert (await asking).content == "still here"
        row = await agent.store.session("api:default")
        log = [type(each.entry).__name__ for each in await agent.store.history(row.id, 0, 100)]
    assert "Resumed" not in log
