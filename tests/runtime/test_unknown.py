"""What nobody knows is told to whoever asked, in the house's own words, whatever the model makes of it."""

import asyncio
import re

import pytest

import everloop
from everloop.core.log import CallReturned, CallStarted, Compacted, ModelSaid, Stopped, UserSaid
from everloop.core.message import said
from everloop.core.thread import Thread
from everloop.core.tool import Effect, ToolCall
from everloop.errors import AnswerLost
from everloop.runtime.calls import MAY_HAVE
from everloop.testing import Call, Say, ScriptedModel, Wait
from everloop.tools.decorator import tool

from .conftest import Gated, letter

ABRUPTLY = {"agents": {"shutdown_seconds": 0.0}}
SENTENCE = "Not known whether this took effect: pay {}"


async def cut_off(house, gated: Gated, text: str = "pay bob") -> None:
    async with house(
        ScriptedModel([Call("pay")]), tools=[gated.make("pay", Effect.UNSAFE)], settings=ABRUPTLY
    ) as agent:
        await agent.tell(letter(text, "e1"))
        await gated.begun.wait()


async def test_the_answer_has_it_in_a_field_and_an_event_tells_it(house, gated):
    await cut_off(house, gated)
    gate = asyncio.Event()  # the turn goes on while the house opens
    model = ScriptedModel([(Wait(gate), Say("all paid"))])
    async with house(model, tools=[gated.make("pay", Effect.UNSAFE)]) as agent:
        with agent.events() as events:
            gate.set()
            answer = await agent.ask("pay bob", event="e1")
            told = [event async for event in _until(events, "thinking_finished")]
    assert (answer.content, answer.unknown) == ("all paid", (SENTENCE,))
    assert answer.told == f"all paid\n\n{SENTENCE}"
    (event,) = (event for event in told if event.name == "outcome_unknown")
    assert (event.data["calls"], told[-1].data["unknown"]) == ((SENTENCE,), (SENTENCE,))
    assert gated.runs == 1


async def test_whoever_finds_the_answer_later_is_told_with_it(house, gated):
    await cut_off(house, gated)
    async with house(ScriptedModel([Say("all paid")]), tools=[gated.make("pay", Effect.UNSAFE)]) as agent:
        await agent.finish("api:default")
        (shown,) = await agent.unshown("api:default")
    assert shown.text == f"all paid\n\n{SENTENCE}"


async def test_the_next_turn_does_not_say_it_again(house, gated):
    await cut_off(house, gated)
    async with house(ScriptedModel([Say("all paid"), Say("fine")]), tools=[gated.make("pay", Effect.UNSAFE)]) as agent:
        await agent.ask("pay bob", event="e1")
        assert (await agent.ask("and you?")).unknown == ()


async def test_what_is_known_is_not_called_unknown(house, gated):
    gated.gate.set()
    async with house(ScriptedModel([Call("pay"), Say("paid")]), tools=[gated.make("pay", Effect.UNSAFE)]) as agent:
        answer = await agent.ask("pay bob")
    assert (answer.content, answer.told, answer.unknown) == ("paid", "paid", ())


async def test_a_turn_that_ends_without_an_answer_tells_it_in_its_error(house, gated):
    await cut_off(house, gated)
    async with house(ScriptedModel([Say(""), Say("")]), tools=[gated.make("pay", Effect.UNSAFE)]) as agent:
        with pytest.raises(everloop.TurnFailed, match="\n\n" + re.escape(SENTENCE)) as failed:
            await agent.ask("pay bob", event="e1")
    assert failed.value.unknown == (SENTENCE,)


def calling(*calls: ToolCall) -> Thread:
    return Thread.of(UserSaid(said("pay"), "owner"), ModelSaid("", calls))


def test_only_a_call_that_had_started_may_have_taken_effect():
    thread = calling(ToolCall("a", "pay", '{"to": "bob"}'), ToolCall("b", "pay", '{"to": "eve"}'))
    thread.extend([CallStarted(2, 0), CallReturned(2, 0, "…", "abandoned"), CallReturned(2, 1, "…", "abandoned")])
    assert thread.turn.unknown == ['Not known whether this took effect: pay {"to": "bob"}']


def test_a_summary_in_the_middle_of_the_turn_keeps_it():
    thread = calling(ToolCall("a", "pay", "{}"))
    thread.extend([CallStarted(2, 0), CallReturned(2, 0, "…", "unknown")])
    thread.add(Compacted("they paid", standing=thread.standing))
    thread.add(ModelSaid("all paid"))
    assert thread.finished.unknown == (SENTENCE,)


def test_also_a_turn_that_was_stopped_says_it():
    thread = calling(ToolCall("a", "pay", "{}"))
    thread.extend([CallStarted(2, 0), CallReturned(2, 0, "…", "unknown"), Stopped("owner")])
    assert (thread.finished.text, thread.finished.unknown) == (None, (SENTENCE,))


def test_a_call_cannot_say_more_than_its_line():
    thread = calling(ToolCall("a", "pay", '{"to": "bob\x1b[2J\n' + "x" * 1000 + '"}'))
    thread.extend([CallStarted(2, 0), CallReturned(2, 0, "…", "unknown")])
    (sentence,) = thread.turn.unknown
    assert sentence.startswith('Not known whether this took effect: pay {"to": "bob\\u001b[2J\\u000axxx')
    assert sentence.isprintable()
    assert len(sentence) < 600


async def _until(events, name: str):
    async for event in events:
        yield event
        if event.name == name:
            return


@pytest.mark.parametrize(("effect", "unknown"), [(Effect.UNSAFE, (SENTENCE,)), (Effect.READ, ())])
async def test_a_tool_that_has_lost_the_answer_to_its_call_says_so(house, effect, unknown):
    runs = []

    @tool(effect)
    async def pay() -> str:
        """Ask a server that ends meanwhile."""
        runs.append(1)
        raise AnswerLost("the server was lost in the middle of the call")

    model = ScriptedModel([Call("pay"), Say("who knows")])
    async with house(model, tools=[pay]) as agent:
        answer = await agent.ask("pay bob")
    assert (answer.unknown, len(runs)) == (unknown, 1)
    told = model.prompts[-1].messages[-1].text
    assert told.startswith("Error: the server was lost in the middle of the call")
    assert told.endswith(MAY_HAVE) is bool(unknown)
