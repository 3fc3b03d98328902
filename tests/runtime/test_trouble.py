"""What must not happen when several things go wrong at once."""

import asyncio
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest

import everloop
from everloop.core import log
from everloop.core.tool import Effect, ToolSpec
from everloop.errors import StoreUnreachable, TurnFailed
from everloop.ports.events import Event
from everloop.ports.tools import CallContext, Tool
from everloop.testing import Call, RecordingChannel, Say, ScriptedModel, Wait
from everloop.tools.decorator import tool
from tests.runtime.conftest import letter
from tests.runtime.test_turns import entries, kinds

ANYTHING = {"type": "object"}


async def test_a_stop_during_a_slow_clean_up_ends_its_turn_and_nothing_else(house, gated):
    begun, cleaning, clean = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @tool(Effect.UNSAFE)
    async def linger() -> str:
        """Takes its time to end."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await clean.wait()
        return "never"

    model = ScriptedModel(lambda shown: Say("fine") if shown.asked != "linger" else Call("linger"))
    async with house(model, tools=[linger]) as agent:
        asking = asyncio.create_task(agent.ask("linger"))
        await begun.wait()  # no tool begins after a stop
        await agent.ask("/stop")
        await cleaning.wait()
        agent._lanes._check_stop(asking and (await agent.store.session("api:default")).id)  # as the poll does
        assert (await agent.ask("hello", "api:other")).content == "fine"
        clean.set()
        with pytest.raises(TurnFailed, match="stopped"):
            await asking


async def test_a_store_that_cannot_be_read_while_a_stop_is_looked_for_ends_no_turn(house):
    gate = asyncio.Event()
    model = ScriptedModel([[Say("half "), Wait(gate), Say("whole")]])
    async with house(model) as agent:
        asking = asyncio.create_task(agent.ask("hi"))
        await model.called(1)
        read, failed = agent.store.mail, asyncio.Event()

        async def fail(thread):
            failed.set()
            raise StoreUnreachable("gone")

        agent.store.mail = fail
        await agent.ask("/stop")
        await failed.wait()
        agent.store.mail = read
        with pytest.raises(TurnFailed, match="stopped"):  # found by polling
            await asking


async def test_a_lease_that_was_given_back_while_it_was_renewed_costs_nobody_a_turn(house):
    """A lane that rested meanwhile is reported as lost; the thread's next lane must not be cancelled for it."""
    gate = asyncio.Event()
    model = ScriptedModel([[Wait(gate), Say("one")], [Say("two")]])
    async with house(model, settings={"store": {"lease_seconds": 120}}) as agent:
        renew, renewing, go_on = agent.store.renew, asyncio.Event(), asyncio.Event()

        async def slow(leases):
            renewing.set()
            await go_on.wait()
            return await renew(leases)

        agent.store.renew = slow
        first = asyncio.create_task(agent.ask("one"))
        await model.called(1)
        thread = (await agent.store.session("api:default")).id
        agent._lanes._lanes[thread].book.held_from -= 60  # by our clock it is time to renew
        await renewing.wait()
        gate.set()
        await first
        second = asyncio.create_task(agent.ask("two"))
        go_on.set()
        assert (await second).content == "two"
        assert "Resumed" not in kinds(await entries(agent))


async def test_one_who_gives_up_waiting_takes_nobody_along(house):
    gate = asyncio.Event()
    model = ScriptedModel([[Wait(gate), Say("at last")]])
    async with house(model) as agent:
        asking = [asyncio.create_task(agent.ask("hi", event="e1")) for _ in range(2)]
        await model.called(1)
        asking[0].cancel()
        with suppress(asyncio.CancelledError):
            await asking[0]
        again = asyncio.create_task(agent.ask("hi", event="e1"))
        gate.set()
        assert (await asking[1]).content == (await again).content == "at last"


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"a": 1}, "Error: TypeError: a tool returns text, not dict"),
        (None, "Error: TypeError: a tool returns text, not NoneType"),
        ("caf\udce9", "caf?"),
    ],
)
async def test_a_tool_that_returns_no_text_does_not_spoil_the_conversation(house, result, told):
    async def run(args, context: CallContext):
        return result

    odd = Tool(ToolSpec("odd", "Returns anything.", ANYTHING, Effect.READ), run)
    model = ScriptedModel([Call("odd"), Say("I see")])
    async with house(model, tools=[odd]) as agent:
        assert (await agent.ask("try it")).content == "I see"
    assert model.prompts[1].said[-1] == ("tool", told)
    async with house(ScriptedModel([Say("still here")]), tools=[odd]) as agent:
        assert (await agent.ask("and now?")).content == "still here"


async def test_a_tool_that_cancels_itself_has_failed(house):
    @tool(Effect.READ)
    async def quit() -> str:
        """Gives up."""
        raise asyncio.CancelledError

    model = ScriptedModel([Call("quit"), Say("oh")])
    async with house(model, tools=[quit]) as agent:
        assert (await agent.ask("go")).content == "oh"
    assert model.prompts[1].said[-1] == ("tool", "Error: quit cancelled itself")


async def test_a_long_error_is_shortened_like_any_result(house):
    @tool(Effect.READ)
    async def shout() -> str:
        """Fails loudly."""
        raise RuntimeError("x" * 100_000)

    model = ScriptedModel([Call("shout"), Say("ow")])
    async with house(model, tools=[shout]) as agent:
        await agent.ask("go")
    assert len(model.prompts[1].said[-1][1]) <= 8000


async def test_a_verification_that_breaks_leaves_the_call_unknown(house, gated):
    async def verify(args, context: CallContext):
        raise OSError("no idea")

    gated_tool = gated.make("act", Effect.VERIFIABLE)
    act = Tool(gated_tool.spec, gated_tool.run, verify)
    async with house(
        ScriptedModel([Call("act")]), tools=[act], settings={"agents": {"shutdown_seconds": 0.0}}
    ) as agent:
        await agent.tell(letter("act", "e1"))
        await gated.begun.wait()
    model = ScriptedModel([Say("I do not know")])
    async with house(model, tools=[act]) as agent:
        assert (await agent.ask("act", event="e1")).content == "I do not know"
        outcomes = [entry.outcome for entry in await entries(agent) if isinstance(entry, log.CallReturned)]
    assert outcomes == ["unknown"]


async def test_a_turn_whose_every_step_fails_ends_after_three_tries(house):
    def broken(shown):
        raise ZeroDivisionError

    async with house(ScriptedModel(broken)) as agent:
        with pytest.raises(TurnFailed, match="interrupted three times") as failed:
            await agent.ask("hi")
        assert failed.value.error_id in str(failed.value)


async def test_asking_while_the_house_closes_is_answered_with_a_sentence(house, gated):
    model = ScriptedModel(lambda shown: Say("fine") if shown.asked == "hi" else Call("hold"))
    settings = {"agents": {"max_concurrent_turns": 1, "shutdown_seconds": 0.0}}
    async with house(model, tools=[gated.make("hold", Effect.UNSAFE)], settings=settings) as agent:
        await agent.ask("hi")
        await agent.tell(letter("hold", "e1", session="api:other"))
        await gated.begun.wait()
        late = asyncio.create_task(agent.ask("are you there?"))
        await asyncio.sleep(0)
    with pytest.raises(everloop.EverloopError, match="closed"):
        await late


async def test_a_slow_reader_of_a_stream_still_gets_the_answer(house):
    model = ScriptedModel([Say([f"{n} " for n in range(12_000)])])
    async with house(model) as agent:
        stream = agent.stream("count")
        first = await anext(stream)
        await agent.finish("api:default")
        rest = [event async for event in stream]
    assert first.name == "thinking_started"
    assert rest[-1].name == "answer"
    assert rest[-1].data["answer"].content.endswith("11999 ")


async def test_a_stream_ends_with_its_own_turn(house):
    gate = asyncio.Event()
    model = ScriptedModel([[Say("one"), Wait(gate)], [Say("two")]])
    async with house(model) as agent:
        seen: list[Event] = []
        async for event in agent.stream("first"):
            seen.append(event)
            if event.name == "stream_chunk":
                await agent.tell(letter("second", "e2"))
                gate.set()
    assert [event.data["content"] for event in seen if event.name == "thinking_finished"] == ["one"]


async def test_letters_are_taken_in_the_order_of_their_arrival(house, gated):
    model = ScriptedModel(lambda shown: Call("hold") if shown.asked == "hold" and shown.step == 0 else Say("done"))
    async with house(model, tools=[gated.make("hold", Effect.UNSAFE)]) as agent:
        asking = asyncio.create_task(agent.ask("hold"))
        await gated.begun.wait()
        await agent.tell(letter("from bob", "b1", author="bob"))
        await agent.ask("/stop")
        await agent.tell(letter("from the owner", "o2"))
        with pytest.raises(TurnFailed):
            await asking
        await agent.finish("api:default")
        heard = [entry.author for entry in await entries(agent) if isinstance(entry, log.UserSaid)]
    assert heard == ["owner", "bob", "owner"]


async def test_an_interrupting_message_breaks_off_the_answer(house):
    model = ScriptedModel([[Say("a long story"), Wait(asyncio.Event())], Say("short")])
    async with house(model, settings={"agents": {"defaults": {"steering": "interrupt"}}}) as agent:
        asking = asyncio.create_task(agent.ask("tell me a story"))
        await model.called(1)
        assert (await agent.ask("no, something else")).content == "short"
        with pytest.raises(TurnFailed, match="stopped"):
            await asking


async def test_finishing_does_not_wait_for_a_persons_answer(house, gated):
    act = gated.make("act", Effect.UNSAFE, guarded=True)
    settings = {"agents": {"shutdown_seconds": 0.0}}
    model = ScriptedModel([[Wait(asyncio.Event())]])
    async with house(model, tools=[act], settings=settings) as agent:
        await agent.tell(letter("act", "e1"))
        await model.called(1)
    async with house(ScriptedModel([Call("act")]), tools=[act]) as agent:
        assert await agent.finish("api:default")
        assert [outbound.kind for outbound in await agent.unshown("api:default")] == ["question"]


async def test_one_hanging_chat_holds_up_no_other(house):
    class Hanging(RecordingChannel):
        async def send(self, part):
            if part.address.chat == "slow":
                await asyncio.Event().wait()
            return await super().send(part)

    channel = Hanging("fake")
    async with house(ScriptedModel(lambda shown: Say("hello")), channels=[channel]) as agent:
        await agent.tell(letter("hi", "e1", session="fake:slow"))
        await agent.tell(letter("hi", "e2", session="fake:quick"))
        await channel.sent(1)  # else both may be one turn
        await agent.tell(letter("hi", "e3", session="fake:quick"))
        await channel.sent(2)


async def test_the_reply_to_a_command_leaves_at_once(house):
    channel = RecordingChannel("fake")
    async with house(ScriptedModel([]), channels=[channel]) as agent:
        await agent.tell(letter("/help", "e1", session="fake:chat"))
        await channel.sent(1)
    assert channel.sends[0].text.startswith("everloop commands")


def let_a_day_pass(home: Path) -> None:
    # By the store's own library: two of them in one process do not see each other's locks, and spoil the file.
    with closing(apsw.Connection(str(home / "everloop.db"))) as database:
        database.execute("PRAGMA busy_timeout = 10000")
        database.execute("UPDATE jobs SET due = due - 86400")


async def test_silence_for_a_day_is_a_denial(house, gated, tmp_path):
    model = ScriptedModel([Call("act"), Say("then not")])
    async with house(model, tools=[gated.make("act", Effect.UNSAFE, guarded=True)]) as agent:
        async for event in agent.stream("act", attended=True):
            if event.name == "approval_asked":
                let_a_day_pass(tmp_path / "home")
        assert event.data["answer"].content == "then not"
    assert model.prompts[1].said[-1] == ("tool", "Nobody answered in time, so this was not allowed.")
    assert gated.runs == 0
