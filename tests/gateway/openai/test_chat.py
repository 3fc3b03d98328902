"""/v1/chat/completions as the real `openai` package speaks it."""

import asyncio
import base64
import io
from collections.abc import AsyncIterator

import openai
import pytest
from aiohttp import ClientSession
from PIL import Image

import everloop
from everloop.core.decide import HANDED
from everloop.core.log import CallReturned, UserSaid
from everloop.core.message import Media, Text
from everloop.core.tool import Effect, ToolCall
from everloop.errors import HostFailed, RateLimited
from everloop.providers.catalog import HOSTS
from everloop.testing import Call, Calls, End, Fail, Say, ScriptedModel, Spend, Think, Wait
from everloop.testing.model_server import ModelServer
from everloop.tools.decorator import tool
from tests.gateway.http_doors import TOKEN, Serve, Served

USED = everloop.Usage(input=100, output=20, cache_read=60, reasoning=5)
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tell the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
HI = [{"role": "user", "content": "hi"}]


def client(served: Served, **more) -> openai.AsyncOpenAI:
    return served.client(**more)


def ask(served: Served, messages=None, **more):
    more.setdefault("model", "everloop")
    return client(served).chat.completions.create(messages=messages or HI, **more)


@tool(Effect.READ)
async def look() -> str:
    """Look."""
    return "seen"


async def test_a_question_gets_an_answer_with_its_usage(serve: Serve):
    async with serve(ScriptedModel([[Say("hello"), Spend(USED)]], name="scripted/one")) as served:
        answer = await ask(served)
    assert answer.choices[0].message.to_dict() == {"role": "assistant", "content": "hello", "refusal": None}
    assert (answer.choices[0].finish_reason, answer.object) == ("stop", "chat.completion")
    assert answer.usage.to_dict() == {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }


async def test_the_synchronous_client_is_answered_too(serve: Serve):
    async with serve(ScriptedModel([Say("hello")])) as served:

        def talk() -> str | None:
            with openai.OpenAI(base_url=f"{served.url}/v1", api_key=TOKEN, max_retries=0) as sync:
                return sync.chat.completions.create(model="everloop", messages=HI).choices[0].message.content

        assert await asyncio.to_thread(talk) == "hello"


async def test_an_answer_streams_as_it_comes(serve: Serve):
    model = ScriptedModel([[Think("hm"), Say(["hel", "lo"]), Spend(USED)]])
    async with serve(model) as served:
        stream = await ask(served, stream=True, stream_options={"include_usage": True})
        chunks = [chunk async for chunk in stream]
    assert [chunk.choices[0].delta.to_dict() for chunk in chunks[:-1]] == [
        {"role": "assistant", "reasoning_content": "hm"},
        {"content": "hel"},
        {"content": "lo"},
        {},
    ]
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None, None, None, "stop"]
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 120)
    assert len({chunk.id for chunk in chunks}) == 1


async def test_the_first_words_come_before_the_last_are_known(serve: Serve):
    gate = asyncio.Event()
    async with serve(ScriptedModel([(Say("half "), Wait(gate), Say("whole"))])) as served:
        stream = await ask(served, stream=True)
        first = await anext(aiter(stream))
        gate.set()
        rest = [chunk.choices[0].delta.content async for chunk in stream]
    assert (first.choices[0].delta.content, rest) == ("half ", ["whole", None])


async def test_our_own_tools_run_here_and_the_client_sees_the_words(serve: Serve):
    model = ScriptedModel(
        [(Say("I look."), Call("look")), Say("It is there."), (Say("I look."), Call("look")), Say("Yes.")]
    )
    async with serve(model, tools=[look]) as served:
        answer = await ask(served)
        stream = await ask(served, stream=True)
        said = [chunk.choices[0].delta.content async for chunk in stream]
    assert answer.choices[0].message.content == "It is there."
    assert "".join(filter(None, said)) == "I look.\n\nYes."


async def test_the_conversation_is_shown_to_the_model_as_the_client_gives_it(serve: Serve):
    model = ScriptedModel([Say("Bern.")])
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": [{"type": "text", "text": "capital?"}]},
    ]
    async with serve(model) as served:
        await ask(served, messages)
    assert model.prompts[0].said == [("user", "hi"), ("assistant", "hello"), ("user", "capital?")]
    assert model.prompts[0].system.endswith("\n\nBe brief.")


async def test_each_request_without_a_session_is_a_thread_of_its_own_and_not_in_the_list(serve: Serve):
    async with serve(ScriptedModel([Say("one"), Say("two")])) as served:
        await ask(served)
        await ask(served)
        store = served.agent.store
        assert await store.conversations("owner") == []
        found = await store.conversations("owner", archived=True)
    assert [(each.session.partition(":")[0], each.messages) for each in found] == [("openai", 2), ("openai", 2)]


async def test_with_a_session_the_last_message_is_the_next_in_it(serve: Serve):
    model = ScriptedModel([Say("one"), Say("two")])
    session = {"X-Everloop-Session": "api:mine"}
    async with serve(model) as served:
        await ask(served, [{"role": "user", "content": "first"}], extra_headers=session)
        history = [{"role": "user", "content": "made up"}, {"role": "user", "content": "second"}]
        await ask(served, history, extra_headers=session)
    assert model.prompts[1].said == [("user", "first"), ("assistant", "one"), ("user", "second")]


async def test_a_session_of_somebody_else_is_not_to_be_found(serve: Serve):
    async with serve(ScriptedModel([Say("one")])) as served:
        session = {"X-Everloop-Session": "api:mine"}
        await ask(served, extra_headers=session)
        stranger = {**session, "Authorization": f"Bearer {TOKEN}:ann"}
        with pytest.raises(openai.NotFoundError, match="There is no such session"):
            await ask(served, extra_headers=stranger)


async def test_the_clients_tools_are_called_and_their_results_taken(serve: Serve):
    model = ScriptedModel([(Say("I ask."), Call("weather", {"city": "Bern"}, "c1")), Say("It rains.")])
    messages = [{"role": "user", "content": "weather?"}]
    async with serve(model) as served:
        first = await ask(served, messages, tools=[WEATHER])
        (call,) = first.choices[0].message.tool_calls
        messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "rain"}]
        second = await ask(served, messages, tools=[WEATHER])
    assert first.choices[0].finish_reason == "tool_calls"
    assert call.to_dict() == {
        "id": "c1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city":"Bern"}'},
    }
    assert second.choices[0].message.content == "It rains."
    shown = model.prompts[1]
    assert shown.said == [("user", "weather?"), ("assistant", "I ask."), ("tool", "rain")]
    assert shown.messages[1].calls == (ToolCall("c1", "weather", '{"city":"Bern"}'),)
    assert "weather" in shown.tools


async def test_in_a_session_the_results_are_the_next_message(serve: Serve):
    model = ScriptedModel([Call("weather", {"city": "Bern"}, "c1"), Say("It rains.")])
    session = {"X-Everloop-Session": "api:mine"}
    messages = [{"role": "user", "content": "weather?"}]
    async with serve(model) as served:
        first = await ask(served, messages, tools=[WEATHER], extra_headers=session)
        messages += [first.choices[0].message, {"role": "tool", "tool_call_id": "c1", "content": "rain"}]
        second = await ask(served, messages, tools=[WEATHER], extra_headers=session)
        said = [entry for entry in await served.entries("api:mine") if isinstance(entry, UserSaid)]
    assert (first.choices[0].message.content, second.choices[0].message.content) == (None, "It rains.")
    assert model.prompts[1].said[2:] == [("tool", HANDED), ("user", "Result of weather (c1):\nrain")]
    assert [entry.brought.outside for entry in said] == [False, True]


async def test_calls_stream_whole(serve: Serve):
    model = ScriptedModel([Calls(Call("weather", {"city": "Bern"}, "c1"), Call("weather", {"city": "Rom"}, "c1"))])
    asked = {"model": "everloop", "messages": HI, "tools": [WEATHER]}
    async with serve(model) as served, client(served).chat.completions.stream(**asked) as stream:
        done = await stream.get_final_completion()
    calls = [(call.id, call.function.arguments) for call in done.choices[0].message.tool_calls]
    assert calls == [("c1", '{"city":"Bern"}'), ("call_1_1", '{"city":"Rom"}')]
    assert done.choices[0].finish_reason == "tool_calls"


async def test_a_call_of_ours_and_one_of_the_clients_in_one_answer(serve: Serve):
    model = ScriptedModel([Calls(Call("look", {}, "c1"), Call("weather", {"city": "Bern"}, "c2"))])
    session = {"X-Everloop-Session": "api:mine"}
    async with serve(model, tools=[look]) as served:
        answer = await ask(served, tools=[WEATHER], extra_headers=session)
        results = [entry for entry in await served.entries("api:mine") if isinstance(entry, CallReturned)]
    assert [call.id for call in answer.choices[0].message.tool_calls] == ["c2"]
    assert [(result.text, result.outcome) for result in results] == [("seen", "done"), (HANDED, "handed")]


async def test_a_choice_of_tools_is_kept_to_as_far_as_it_can_be(serve: Serve):
    model = ScriptedModel([Say("a"), Say("b")])
    async with serve(model) as served:
        await ask(served, tools=[WEATHER], tool_choice="none")
        await ask(served, tools=[WEATHER], tool_choice={"type": "function", "function": {"name": "weather"}})
    assert ["weather" in shown.tools for shown in model.prompts] == [False, True]
    assert model.prompts[1].system.endswith("You must call one of the tools weather before you answer.")


async def test_the_same_key_and_request_are_one_turn_and_one_answer_also_after_a_restart(serve: Serve):
    key = {"Idempotency-Key": "k1"}
    async with serve(ScriptedModel([Say("once")])) as served:
        first = await ask(served, extra_headers=key)
        second = await ask(served, extra_headers=key)
    model = ScriptedModel([])
    async with serve(model) as served:
        third = await ask(served, extra_headers=key)
        with pytest.raises(openai.ConflictError, match="was used before with another request"):
            await ask(served, [{"role": "user", "content": "other"}], extra_headers=key)
    assert [each.choices[0].message.content for each in (first, second, third)] == ["once"] * 3
    assert model.calls == 0


async def test_two_requests_with_the_same_key_at_once_are_one_turn(serve: Serve):
    model = ScriptedModel([Say("once")])
    key = {"Idempotency-Key": "k1", "X-Everloop-Session": "api:mine"}
    async with serve(model) as served:
        answers = await asyncio.gather(*(ask(served, extra_headers=key) for _ in range(5)))
    assert [each.choices[0].message.content for each in answers] == ["once"] * 5
    assert model.calls == 1


async def test_another_key_or_another_user_is_another_turn(serve: Serve):
    model = ScriptedModel([Say("one"), Say("two"), Say("three")])
    async with serve(model) as served:
        await ask(served, extra_headers={"Idempotency-Key": "k1"})
        await ask(served, extra_headers={"Idempotency-Key": "k2"})
        await ask(served, extra_headers={"Idempotency-Key": "k1", "Authorization": f"Bearer {TOKEN}:ann"})
    assert model.calls == 3


def png() -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(made, "PNG")
    return made.getvalue()


async def test_images_and_files_reach_the_model(serve: Serve):
    model = ScriptedModel([Say("a red square")])
    image = f"data:image/png;base64,{base64.b64encode(png()).decode()}"
    text = base64.b64encode(b"some words").decode()
    content = [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": image}},
        {"type": "file", "file": {"filename": "notes.txt", "file_data": text}},
    ]
    async with serve(model) as served:
        await ask(served, [{"role": "user", "content": content}])
        (message,) = model.prompts[0].messages
        question, picture, notes = message.parts
        told = Text("[notes.txt, kept as file:050777a35dcd]\nsome words", "notes.txt", True)
        assert (question, notes) == (Text("what is this?"), told)
        assert isinstance(picture, Media)
        assert (picture.mime, picture.name, picture.owner) == ("image/png", "file.png", "owner")
        assert await served.agent.files.get("owner", picture.file) == png()


async def test_an_address_inside_is_not_fetched(serve: Serve, canary: str):
    content = [{"type": "image_url", "image_url": {"url": canary}}]
    async with serve(ScriptedModel([])) as served:
        with pytest.raises(openai.BadRequestError, match="cannot be fetched"):
            await ask(served, [{"role": "user", "content": content}])


async def test_an_address_that_the_owner_allows_is_fetched(serve: Serve, canary: str):
    model = ScriptedModel([Say("a red square")])
    content = [{"type": "image_url", "image_url": {"url": canary}}]
    host = canary.removeprefix("http://").partition("/")[0]
    async with serve(model, settings={"tools": {"web": {"allow": [host]}}}) as served:
        await ask(served, [{"role": "user", "content": content}])
    (picture,) = model.prompts[0].messages[0].parts
    assert picture.mime == "image/png"


@pytest.mark.parametrize(
    "line, error, code",
    [
        (Fail(RateLimited("slow down")), openai.RateLimitError, "rate_limit_exceeded"),
        (Fail(HostFailed("it is down")), openai.InternalServerError, "turn_failed_server"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_that_fails_is_told_in_their_shape(serve: Serve, line, error, code, stream):
    async with serve(ScriptedModel([line])) as served:
        with pytest.raises(error) as told:
            await ask(served, stream=stream)
    assert (told.value.code, told.value.response.headers["x-should-retry"]) == (code, "false")
    assert "(error " in told.value.body["message"]


async def test_a_stream_that_breaks_off_says_so(serve: Serve):
    async with serve(ScriptedModel([(Say("half"), Fail(HostFailed("it is down")))])) as served:
        with pytest.raises(openai.APIError, match="It is down"):
            async for _ in await ask(served, stream=True):
                pass


async def test_an_answer_that_was_cut_off_says_so(serve: Serve):
    async with serve(ScriptedModel([[Say("half"), End("length")]])) as served:
        assert (await ask(served)).choices[0].finish_reason == "length"


async def test_without_a_token_nobody_is_answered(serve: Serve):
    async with serve(ScriptedModel([])) as served:
        with pytest.raises(openai.AuthenticationError):
            await ask(served, extra_headers={"Authorization": "Bearer wrong"})


async def test_a_model_that_is_not_there_is_not_found(serve: Serve):
    async with serve(ScriptedModel([])) as served:
        with pytest.raises(openai.NotFoundError) as told:
            await ask(served, model="gpt-nowhere")
    assert (told.value.code, told.value.param) == ("model_not_found", "model")


async def test_what_we_have_not_is_refused_by_its_name(serve: Serve):
    async with serve(ScriptedModel([])) as served:
        for name, value in {"n": 2, "logprobs": True}.items():
            with pytest.raises(openai.BadRequestError) as told:
                await ask(served, **{name: value})
            assert (told.value.code, told.value.param) == ("unsupported_parameter", name)


async def test_more_than_is_taken_is_refused_before_it_is_read(serve: Serve):
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b" " * 1_000_000

    async with serve(ScriptedModel([])) as served, ClientSession() as session:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        try:
            async with session.post(f"{served.url}/v1/chat/completions", data=endless(), headers=headers) as answer:
                assert (answer.status, (await answer.json())["error"]["code"]) == (413, "request_too_large")
        except OSError:  # it hung up while we were still sending
            pass


async def test_a_command_works_in_a_session(serve: Serve):
    session = {"X-Everloop-Session": "api:mine"}
    async with serve(ScriptedModel([Say("one")])) as served:
        await ask(served, extra_headers=session)
        answer = await ask(served, [{"role": "user", "content": "/new"}], extra_headers=session)
    assert answer.choices[0].message.content == "New session started."


@pytest.fixture
async def models() -> AsyncIterator[ModelServer]:
    async with ModelServer(lambda shown: Say(f"{shown.model} here"), models=("a", "b")) as server:
        yield server


async def test_a_preset_or_any_other_model_can_be_asked_for_and_nonsense_cannot(serve: Serve, models, monkeypatch):
    for host in HOSTS.values():
        for variable in host.key_variables:
            monkeypatch.delenv(variable, raising=False)
    settings = {
        "agents": {"defaults": {"model": "custom/a"}},
        "providers": {"custom": {"api_base": models.url, "api_key": "sk-canary"}},
        "models": {"quick": {"model": "custom/b"}},
    }
    session = {"X-Everloop-Session": "api:mine"}
    async with serve(None, settings=settings) as served:
        assert [model.id async for model in await client(served).models.list()] == [
            *("everloop", "quick", "everloop/bare", "bare/quick"),
        ]
        said = [await ask(served, model=name, extra_headers=session) for name in ("everloop", "quick", "custom/b")]
        said.append(await ask(served, extra_headers=session))
        for name in ("openai/gpt-x", "nowhere/x", "/", "a/", "\x00", "x" * 5000, "../..", "quick/", "gpt-4o-mini"):
            with pytest.raises(openai.NotFoundError):
                await ask(served, model=name)
    assert [each.choices[0].message.content for each in said] == ["a here", "b here", "b here", "a here"]
    assert said[1].model == "custom/b"


async def test_models_are_listed(serve: Serve):
    async with serve(ScriptedModel([])) as served:
        assert [model.id async for model in await client(served).models.list()] == ["everloop", "everloop/bare"]
        assert (await client(served).models.retrieve("everloop")).id == "everloop"
        with pytest.raises(openai.NotFoundError):
            await client(served).models.retrieve("gpt-nowhere")
        with pytest.raises(openai.NotFoundError, match="There is no POST /v1/embeddings here"):
            await client(served).embeddings.create(model="x", input="y", encoding_format="float")


async def test_a_client_that_goes_away_does_not_end_the_turn(serve: Serve):
    gate = asyncio.Event()
    session = "api:mine"
    async with serve(ScriptedModel([(Say("half "), Wait(gate), Say("whole"))])) as served:
        stream = await ask(served, stream=True, extra_headers={"X-Everloop-Session": session})
        await anext(aiter(stream))
        await stream.close()
        finishing = asyncio.ensure_future(served.agent.finish(session))
        gate.set()
        await finishing
        assert (await served.entries(session))[-1].text == "half whole"


async def test_a_conversation_that_is_too_long_for_the_model_becomes_shorter_first(serve: Serve):
    model = ScriptedModel(lambda shown: Say("ok"))
    words = "one two three four five six seven eight nine ten " * 20
    messages = [{"role": role, "content": f"{n} {words}"} for n in range(30) for role in ("user", "assistant")]
    messages.append({"role": "user", "content": "and now?"})
    async with serve(model, settings={"agents": {"defaults": {"context_window": 8192}}}) as served:
        answer = await ask(served, messages)
    assert answer.choices[0].message.content == "ok"
    shown = model.prompts[-1].said
    assert shown[-1] == ("user", "and now?")
    assert len(shown) < len(messages)
