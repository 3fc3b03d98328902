"""The scripted model as a Provider."""

import asyncio

import pytest

from everloop.core.message import Message, said
from everloop.core.prompt import Prompt, Transcript, Usage
from everloop.core.tool import ToolCall, ToolSpec
from everloop.errors import BadRequest, RateLimited, StreamCut
from everloop.ports import Provider
from everloop.ports.provider import Delta, Reply
from everloop.testing import (
    Call,
    Calls,
    Empty,
    End,
    Fail,
    Line,
    Pause,
    Raw,
    Say,
    ScriptedModel,
    Spend,
    Think,
    Wait,
    paced,
)

HELLO = Message("user", said("hello"))
LOOKED = Message("assistant", calls=(ToolCall("c", "look", "{}"),))
SEEN = Message("tool", said("a cat"), answers="c")


def prompt_of(*messages: Message) -> Prompt:
    return Prompt("m", "be kind", Transcript(messages or (HELLO,)), tools=(ToolSpec("look", "", {}),), tail="noon")


def unseen(delta: Delta) -> None:
    pass


async def ask(model: ScriptedModel, *messages: Message) -> Reply:
    return await model.reply(prompt_of(*messages), unseen)


async def shown_while(line: Line) -> list[Delta]:
    deltas: list[Delta] = []
    await ScriptedModel([line]).reply(prompt_of(), deltas.append)
    return deltas


async def test_it_is_a_provider():
    provider: Provider = ScriptedModel()
    await provider.close()


async def test_it_says_its_lines_in_order():
    model = ScriptedModel([Say("one"), Say("two")])
    assert [(await ask(model)).text, (await ask(model)).text] == ["one", "two"]


async def test_a_script_that_has_run_out_refuses_the_request():
    model = ScriptedModel([Say("one")])
    await ask(model)
    with pytest.raises(BadRequest, match="has 1 lines and was asked for line 2"):
        await ask(model)


async def test_a_script_by_conversation_needs_no_memory_of_its_own():
    script = [Call("look"), Say("a cat it is")]
    first = await ask(ScriptedModel(by_conversation=script), HELLO)
    restarted = ScriptedModel(by_conversation=script)
    assert await ask(restarted, HELLO) == first
    assert (await ask(restarted, HELLO, LOOKED, SEEN)).text == "a cat it is"


async def test_a_script_by_conversation_begins_again_with_each_user_message():
    answered = Message("assistant", said("a cat it is"))
    reply = await ask(ScriptedModel(by_conversation=[Call("look")]), HELLO, LOOKED, SEEN, answered, HELLO)
    assert [call.name for call in reply.calls] == ["look"]


async def test_a_function_answers_what_it_is_shown():
    assert (await ask(ScriptedModel(lambda shown: Say(f"you said {shown.asked}")))).text == "you said hello"


async def test_a_whole_reply_carries_thought_text_calls_usage_and_finish():
    line = [Think("hm"), Say(["I ", "look."]), Call("look", {"at": "cat"}), Call("hear", "{broken"), Spend(Usage(9, 3))]
    assert await ask(ScriptedModel([line])) == Reply(
        text="I look.",
        calls=(ToolCall("call_1_0", "look", '{"at":"cat"}'), ToolCall("call_1_1", "hear", "{broken")),
        usage=Usage(9, 3),
        finish="calls",
        model="m",
        reasoning="hm",
    )


async def test_several_calls_are_one_answer():
    reply = await ask(ScriptedModel([Calls(Call("a"), Call("b", id="mine"))]))
    assert [(call.id, call.name) for call in reply.calls] == [("call_1_0", "a"), ("mine", "b")]


async def test_an_empty_line_is_an_empty_answer():
    reply = await ask(ScriptedModel([Empty()]))
    assert (reply.text, reply.calls, reply.finish) == ("", (), "stop")


async def test_a_line_can_end_for_another_reason():
    assert (await ask(ScriptedModel([[Say("too lo"), End("length")]]))).finish == "length"


async def test_each_piece_is_shown_as_a_delta():
    assert await shown_while([Think("hm"), Say(["he", "llo"])]) == [
        Delta(reasoning="hm"),
        Delta(text="he"),
        Delta(text="llo"),
    ]


async def test_it_fails_as_told_before_and_in_the_middle_of_an_answer():
    deltas: list[Delta] = []
    model = ScriptedModel([Fail(RateLimited("slow", 2.0)), [Say("half"), Fail(StreamCut("gone"))]])
    with pytest.raises(RateLimited):
        await model.reply(prompt_of(), deltas.append)
    with pytest.raises(StreamCut):
        await model.reply(prompt_of(), deltas.append)
    assert deltas == [Delta(text="half")]


async def test_an_answer_is_held_open_until_its_gate_is_set():
    gate, deltas = asyncio.Event(), asyncio.Queue[Delta]()
    model = ScriptedModel([[Say("half "), Wait(gate), Say("whole")]])
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(model.reply(prompt_of(), deltas.put_nowait))
        await model.called(1)
        assert await deltas.get() == Delta(text="half ")
        assert not answer.done()
        gate.set()
    assert answer.result().text == "half whole"


async def test_it_remembers_what_it_was_shown_though_the_transcript_grows():
    model = ScriptedModel([Say("one")])
    prompt = prompt_of(HELLO)
    await model.reply(prompt, unseen)
    prompt.transcript.messages.append(LOOKED)
    (shown,) = model.prompts
    assert (shown.system, shown.said, shown.tools, shown.tail) == ("be kind", [("user", "hello")], ("look",), "noon")
    assert model.calls == 1


async def test_what_needs_a_wire_is_refused_without_one():
    with pytest.raises(TypeError, match="model_server"):
        await ask(ScriptedModel([Raw("garbage")]))


def test_a_paced_line_pauses_before_the_first_delta_and_between_deltas():
    assert paced([Say(["a", "b"]), Call("c")], first=1, between=0.1) == [
        Pause(1),
        Say("a"),
        Pause(0.1),
        Say("b"),
        Pause(0.1),
        Call("c"),
    ]
