"""/v1/responses as the real `openai` package speaks it."""

import openai
import pytest

import everloop
from everloop.core.tool import Effect
from everloop.errors import HostFailed
from everloop.testing import Call, End, Fail, Say, ScriptedModel, Spend
from everloop.tools.decorator import tool
from tests.gateway.http_doors import TOKEN, Serve, Served

WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "Tell the weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}
USED = everloop.Usage(input=100, output=20, cache_read=60, reasoning=5)


def client(served: Served) -> openai.AsyncOpenAI:
    return served.client()


def ask(served: Served, input="hi", **more):
    return client(served).responses.create(model="everloop", input=input, **more)


@tool(Effect.READ)
async def look() -> str:
    """Look."""
    return "seen"


async def test_a_question_gets_an_answer_with_its_usage(serve: Serve):
    model = ScriptedModel([[Say("hello"), Spend(USED)]])
    async with serve(model) as served:
        answer = await ask(served, instructions="Be brief.")
    assert (answer.output_text, answer.status, answer.instructions) == ("hello", "completed", "Be brief.")
    used = answer.usage
    assert (used.input_tokens, used.output_tokens, used.total_tokens) == (100, 20, 120)
    assert (used.input_tokens_details.cached_tokens, used.output_tokens_details.reasoning_tokens) == (60, 5)
    assert model.prompts[0].system.endswith("\n\nBe brief.")


async def test_a_response_is_gone_on_from_by_its_id(serve: Serve):
    model = ScriptedModel([Say("one"), Say("two")])
    async with serve(model) as served:
        first = await ask(served, "first")
        second = await ask(served, "second", previous_response_id=first.id)
        assert second.previous_response_id == first.id
        with pytest.raises(openai.ConflictError, match="is not the last of its conversation"):
            await ask(served, "third", previous_response_id=first.id)
    assert model.prompts[1].said == [("user", "first"), ("assistant", "one"), ("user", "second")]


@pytest.mark.parametrize("id", ["resp_", "resp_x", "nonsense", "resp_WyJhIiwiYiJd", "resp_ä", "x" * 5000])
async def test_a_response_that_is_not_there_cannot_be_gone_on_from(serve: Serve, id: str):
    async with serve(ScriptedModel([])) as served:
        with pytest.raises(openai.NotFoundError, match="There is no response of this id"):
            await ask(served, previous_response_id=id)


async def test_the_response_of_somebody_else_cannot_be_gone_on_from(serve: Serve):
    async with serve(ScriptedModel([Say("one")])) as served:
        first = await ask(served)
        with pytest.raises(openai.NotFoundError):
            await ask(
                *(served, "more"),
                previous_response_id=first.id,
                extra_headers={"Authorization": f"Bearer {TOKEN}:ann"},
            )


async def test_the_whole_conversation_may_be_given_instead(serve: Serve):
    model = ScriptedModel([Call("weather", {"city": "Bern"}, "c1"), Say("It rains.")])
    given = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "weather?"}]
    async with serve(model) as served:
        first = await ask(served, given, tools=[WEATHER])
        (call,) = first.output
        given += [item.to_dict() for item in first.output]
        given.append({"type": "function_call_output", "call_id": call.call_id, "output": "rain"})
        second = await ask(served, given, tools=[WEATHER])
    assert (call.type, call.name, call.arguments, call.call_id) == ("function_call", "weather", '{"city":"Bern"}', "c1")
    assert second.output_text == "It rains."
    assert model.prompts[1].said == [("user", "weather?"), ("assistant", ""), ("tool", "rain")]


async def test_results_for_a_named_response_go_on_with_its_turn(serve: Serve):
    model = ScriptedModel([Call("weather", {"city": "Bern"}, "c1"), Say("It rains.")])
    async with serve(model) as served:
        first = await ask(served, "weather?", tools=[WEATHER])
        results = [{"type": "function_call_output", "call_id": "c1", "output": "rain"}]
        second = await ask(served, results, previous_response_id=first.id, tools=[WEATHER])
    assert second.output_text == "It rains."
    assert model.prompts[1].said[-1] == ("user", "Result of the call (c1):\nrain")


async def test_a_session_is_gone_on_with(serve: Serve):
    model = ScriptedModel([Say("one"), Say("two")])
    session = {"X-Everloop-Session": "api:mine"}
    async with serve(model) as served:
        await ask(served, "first", extra_headers=session)
        await ask(served, "second", extra_headers=session)
    assert model.prompts[1].said == [("user", "first"), ("assistant", "one"), ("user", "second")]


async def test_an_answer_streams_as_it_comes(serve: Serve):
    async with serve(ScriptedModel([Say(["hel", "lo"])])) as served:
        events = [event async for event in await ask(served, stream=True)]
    assert [event.type.removeprefix("response.") for event in events] == [
        *("created", "in_progress", "output_item.added", "content_part.added"),
        *("output_text.delta", "output_text.delta"),
        *("output_text.done", "content_part.done", "output_item.done", "completed"),
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].response.output_text == "hello"
    assert events[0].response.id == events[-1].response.id


async def test_the_helper_of_the_client_follows_a_turn_with_tools_of_both(serve: Serve):
    model = ScriptedModel([(Say("I look."), Call("look")), (Say("I ask."), Call("weather", {"city": "Bern"}, "c1"))])
    asked = {"model": "everloop", "input": "hi", "tools": [WEATHER]}
    async with serve(model, tools=[look]) as served, client(served).responses.stream(**asked) as stream:
        done = await stream.get_final_response()
    assert [item.type for item in done.output] == ["message", "message", "function_call"]
    assert done.output_text == "I look.I ask."
    assert (done.output[2].call_id, done.output[2].arguments) == ("c1", '{"city":"Bern"}')


async def test_an_answer_that_was_cut_off_says_so(serve: Serve):
    async with serve(ScriptedModel([[Say("half"), End("length")]])) as served:
        answer = await ask(served)
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")


async def test_a_stream_that_breaks_off_says_so(serve: Serve):
    async with serve(ScriptedModel([(Say("half"), Fail(HostFailed("it is down")))])) as served:
        events = [event async for event in await ask(served, stream=True)]
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.message.startswith("It is down (error ")


async def test_the_same_key_is_one_response(serve: Serve):
    key = {"Idempotency-Key": "k1"}
    async with serve(ScriptedModel([Say("once")])) as served:
        first = await ask(served, extra_headers=key)
        second = await ask(served, extra_headers=key)
        with pytest.raises(openai.ConflictError):
            await ask(served, "other", extra_headers=key)
    assert (first.id, first.output_text) == (second.id, second.output_text)


@pytest.mark.parametrize("name, value", [("background", True), ("conversation", "c")])
async def test_what_we_have_not_is_refused_by_its_name(serve: Serve, name: str, value: object):
    async with serve(ScriptedModel([])) as served:
        with pytest.raises(openai.BadRequestError) as told:
            await ask(served, **{name: value})
    assert (told.value.code, told.value.param) == ("unsupported_parameter", name)


async def test_a_form_is_told_to_the_model(serve: Serve):
    model = ScriptedModel([Say("{}")])
    form = {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}
    async with serve(model) as served:
        await ask(served, text=form)
    assert model.prompts[0].system.endswith('It must fit this JSON schema: {"type":"object"}')
