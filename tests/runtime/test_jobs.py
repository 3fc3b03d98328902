"""Jobs in an open house: what is due becomes a turn, by whoever may see to it and by the clock that is handed over."""

import asyncio
from pathlib import Path

from everloop.app import open_desk
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.tool import Effect
from everloop.ports.jobs import Job
from everloop.testing import RecordingChannel, Say, ScriptedModel, failpoints
from everloop.testing.clock import SimulatedClock
from everloop.testing.script import Call

from .conftest import letter

DAY = 86400.0


def job(id: str = "j", owner: str = "owner", chat: str = "chat") -> Job:
    address = Address("fake", chat)
    return Job(id, "reminder", 1.0, owner, letter=Inbound(address, "", Said(said(id), owner, str(address)), owner))


async def test_a_job_that_is_due_is_a_turn_whose_answer_leaves_by_its_channel(house):
    channel, model = RecordingChannel("fake"), ScriptedModel([Say("good morning")])
    async with house(model, channels=[channel]) as agent:
        await agent.store.add_job(job())
        await channel.sent(1)
        assert [(row.job.id, row.state) for row in await agent.store.jobs("owner")] == [("j", "done")]
    assert [sent.text for sent in channel.sends] == ["good morning"]


async def test_a_program_leaves_other_peoples_jobs_to_the_gateway(house, tmp_path: Path):
    channel = RecordingChannel("fake")
    async with house(ScriptedModel(lambda shown: Say("hello")), channels=[channel]) as agent:
        await agent.store.add_job(job("hers", "ann", "ann"))
        await agent.store.add_job(job())
        await channel.sent(1)
        assert [row.state for row in await agent.store.jobs("ann")] == ["waiting"]
    model = ScriptedModel(lambda shown: Say("hello, ann"))
    async with open_desk(tmp_path / "home", provider=model, channels=(channel,)) as agent:
        await channel.sent(2)
        assert [row.state for row in await agent.store.jobs("ann")] == ["done"]


async def test_a_fault_in_an_outbox_is_told_and_ends_nothing_and_the_next_answer_leaves(house, monkeypatch, caplog):
    monkeypatch.setenv("EVERLOOP_TEST", "1")
    channel = RecordingChannel("fake")
    async with house(ScriptedModel(lambda shown: Say("hello")), channels=[channel]) as agent:
        before = [(task.name, task.state, task.restarts) for task in agent.tasks()]
        failpoints.arm("outbox.settled", 1, "raise")
        try:
            await agent.tell(letter("hi", "e1", session="fake:chat"))
            await channel.sent(1)
            await agent.tell(letter("hi", "e2", session="fake:chat"))
            await channel.sent(2)
        finally:
            failpoints.disarm()
        after = [(task.name, task.state, task.restarts) for task in agent.tasks()]
    scheduler = [(name, "running", 0) for name in ("scheduler", "memory", "schedules", "heartbeat")]
    answers = ("answers", "running", 0)
    # The fake has nothing to listen to, so that its listening ends by itself.
    lease = ("lease fake", "running", 0)
    lanes = [(name, "running", 0) for name in ("keys", "lanes mail", "lanes leases", "lanes expiry", "fact vectors")]
    assert before == [*lanes, *scheduler, lease, ("outbox fake", "running", 0), ("channel fake", "running", 0), answers]
    assert after == [*lanes, *scheduler, lease, ("outbox fake", "running", 0), ("channel fake", "ended", 0), answers]
    assert caplog.text.count("Reached: outbox.settled") == 1
    assert {task.state for task in agent.tasks()} == {"ended"}


async def move_on(clock: SimulatedClock) -> None:
    while True:
        clock.set(clock.now() + 1)
        await asyncio.sleep(0.005)


async def test_a_day_of_silence_passes_by_the_clock_that_was_handed_over(house, gated, tmp_path: Path):
    clock = SimulatedClock(tmp_path / "clock")
    clock.set(2e9)
    model = ScriptedModel([Call("act"), Say("then not")])
    moving = asyncio.ensure_future(move_on(clock))
    async with house(model, tools=[gated.make("act", Effect.UNSAFE, guarded=True)], clock=clock) as agent:
        async for event in agent.stream("act", attended=True):
            if event.name == "approval_asked":
                clock.set(clock.now() + DAY)
        assert event.data["answer"].content == "then not"
    moving.cancel()
    assert gated.runs == 0
