"""The server against OpenAI's own client: what satisfies that is the dialect and not our idea of it."""

from collections.abc import AsyncIterator

import pytest

from everloop.core.prompt import Usage
from everloop.errors import ContextOverflow, HostFailed, HostUnreachable, KeyRefused, RateLimited, UnknownModel
from everloop.testing import Call, Calls, Fail, Say, Spend, Think
from everloop.testing.model_server import ModelServer

openai = pytest.importorskip("openai")

HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def client(server: ModelServer) -> AsyncIterator["openai.AsyncOpenAI"]:
    async with openai.AsyncOpenAI(base_url=server.url, api_key="sk-test", max_retries=0) as client:
        yield client


async def test_it_streams_text_and_reasoning(server, client):
    server.play([[Think("hm"), Say(["hel", "lo"])]])
    chunks = [chunk async for chunk in await client.chat.completions.create(model="m", messages=HELLO, stream=True)]
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert [delta.content for delta in deltas if delta.content] == ["hel", "lo"]
    assert [delta.reasoning_content for delta in deltas if hasattr(delta, "reasoning_content")] == ["hm"]
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert server.requests[0].headers["Authorization"] == "Bearer sk-test"


async def test_its_own_accumulator_puts_calls_and_usage_together(server, client):
    server.play([[Say("I look."), *Calls(Call("look", {"at": "cat"}), Call("hear")), Spend(Usage(90, 3, 80))]])
    options = {"include_usage": True}
    async with client.chat.completions.stream(model="m", messages=HELLO, stream_options=options) as stream:
        answer = await stream.get_final_completion()
    message = answer.choices[0].message
    calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls]
    assert (message.content, calls) == (
        "I look.",
        [("call_1_0", "look", '{"at":"cat"}'), ("call_1_1", "hear", "{}")],
    )
    assert answer.choices[0].finish_reason == "tool_calls"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (90, 3, 93)
    assert answer.usage.prompt_tokens_details.cached_tokens == 80


async def test_it_answers_whole(server, client):
    server.play([Say("hello"), Call("look")])
    first = await client.chat.completions.create(model="m", messages=HELLO)
    second = await client.chat.completions.create(model="m", messages=HELLO)
    assert (first.choices[0].message.content, first.usage.completion_tokens) == ("hello", 2)
    assert second.choices[0].message.tool_calls[0].function.name == "look"


@pytest.mark.parametrize(
    "error, kind, code",
    [
        (KeyRefused("no"), "AuthenticationError", "invalid_api_key"),
        (UnknownModel("no"), "NotFoundError", "model_not_found"),
        (RateLimited("no", 2), "RateLimitError", "rate_limit_exceeded"),
        (ContextOverflow("no"), "BadRequestError", "context_length_exceeded"),
        (HostFailed("no"), "InternalServerError", None),
        (HostUnreachable("no"), "APIConnectionError", None),
    ],
)
async def test_its_errors_are_those_of_the_host(server, client, error, kind, code):
    server.play([Fail(error)])
    with pytest.raises(getattr(openai, kind)) as raised:
        await client.chat.completions.create(model="m", messages=HELLO, stream=True)
    assert raised.value.code == code


async def test_an_error_inside_the_stream_is_raised_as_one(server, client):
    server.play([[Say("half"), Fail(HostFailed("overloaded"))]])
    stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
    with pytest.raises(openai.APIError, match="overloaded"):
        [chunk async for chunk in stream]


async def test_it_waits_as_long_as_retry_after_says_and_tries_again(server, client):
    server.play([Fail(RateLimited("slow", 0.01)), Say("hello")])
    answer = await client.with_options(max_retries=1).chat.completions.create(model="m", messages=HELLO)
    assert (answer.choices[0].message.content, server.calls) == ("hello", 2)


async def test_the_models_are_listed(server, client):
    assert [model.id async for model in client.models.list()] == ["scripted"]
