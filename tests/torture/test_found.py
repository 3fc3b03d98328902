"""What the campaign has found, each as small as it can be told."""

import asyncio
from pathlib import Path
from threading import Timer
from typing import Any

import apsw

import everloop
from everloop.app.user import inbound_of
from everloop.core.people import Role
from everloop.core.tool import Effect, ToolSpec
from everloop.ports.rows import OutboxRow
from everloop.ports.tools import CallContext, Tool
from everloop.runtime.interrupt import Interrupt
from everloop.runtime.outbox import Outbox
from everloop.store.sqlite_file import connect
from everloop.testing import Call, Line, RecordingChannel, Say, ScriptedModel, Shown, counting_tool, runs_in


async def test_a_yes_to_an_old_question_does_not_allow_what_a_new_conversation_asks(tmp_path: Path):
    def answer(shown: Shown) -> Line:
        return Say("done") if shown.step else Call("pay", {"for": shown.asked})

    channel = RecordingChannel("fake")
    pay = counting_tool(tmp_path / "paid", "pay", Effect.UNSAFE, guarded=True)
    async with everloop.open(tmp_path, provider=ScriptedModel(answer), tools=[pay], channels=[channel]) as agent:
        for number, text in enumerate(("milk", "/new", "a yacht"), 1):
            await agent.tell(inbound_of(text, "fake:1", f"m{number}"))
            await channel.sent(number)
        await agent.decide(channel.sends[0].approval, True)
        await channel.sent(4)
    assert [ran.args["for"] for ran in runs_in(tmp_path / "paid")] == ["milk"]


async def test_a_message_that_meets_the_waking_of_its_thread_is_taken_once(tmp_path: Path):
    model = ScriptedModel(lambda shown: Say(f"you said {shown.asked}"))
    async with everloop.open(tmp_path, provider=model) as agent:
        await agent.ask("one", event="m1")
        # The first is known and wakes the resting thread; the second must not begin a lane beside that.
        again, fresh = await asyncio.gather(agent.tell(inbound_of("one", "api:default", "m1")), agent.ask("two"))
        assert (again.fresh, fresh.content) == (False, "you said two")
    assert model.calls == 2


async def test_a_sender_that_is_nudged_while_it_is_cancelled_still_ends():
    class Nothing:
        async def due(self, channel: str, limit: int = 100) -> list[OutboxRow]:
            return []

    sender = Outbox(Nothing(), RecordingChannel())
    task = asyncio.create_task(sender.run())
    await asyncio.sleep(0.01)
    sender.nudge()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=60)
    assert task.cancelled()


async def test_a_second_stop_while_the_first_is_at_work_harms_nothing():
    interrupt = Interrupt()

    async def step() -> None:
        with interrupt:
            try:
                await asyncio.sleep(10)
            finally:
                interrupt.fire()
                await asyncio.sleep(0)

    task = interrupt.task = asyncio.create_task(step())
    await asyncio.sleep(0)
    interrupt.fire()
    await task
    assert interrupt.fired


def test_a_process_that_finds_another_making_the_database_waits_for_it(tmp_path: Path):
    other = apsw.Connection(str(tmp_path / "everloop.db"))
    other.execute("BEGIN IMMEDIATE")
    done = Timer(0.2, other.execute, ["COMMIT"])
    done.start()
    holders, writer, reader = connect(tmp_path)
    done.join()
    for opened in (reader, writer, holders, other):
        opened.close()


async def test_nobody_looks_for_an_effect_while_another_process_may_still_bring_it_about(tmp_path: Path):
    looked: list[str] = []
    working, free = asyncio.Event(), asyncio.Event()

    async def run(args: dict[str, Any], context: CallContext) -> str:
        working.set()
        await free.wait()
        return "done"

    async def verify(args: dict[str, Any], context: CallContext) -> None:
        looked.append(context.key)

    spec = ToolSpec("book_room", "", {"type": "object"}, Effect.VERIFIABLE, permission=Role.GUEST)
    tool = Tool(spec, run, verify)
    model = ScriptedModel(lambda shown: Say("booked") if shown.step else Call("book_room"))
    async with (
        everloop.open(tmp_path, provider=model, tools=[tool]) as one,
        everloop.open(tmp_path, provider=model, tools=[tool]) as other,
    ):
        await one.tell(inbound_of("book it", "api:default", "m1", "ann"))
        await working.wait()
        await other.tell(inbound_of("and then?", "api:default", "m2", "ben"))
        await asyncio.sleep(0.3)
        free.set()
        await other.finish("api:default")
    assert looked == []
