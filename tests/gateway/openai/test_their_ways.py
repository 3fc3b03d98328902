"""What foreign clients count on beside the plain paths: echoes, one model name, signs of life, users' own slashes."""

import asyncio
import math

from aiohttp import ClientSession, web
from aiohttp.test_utils import TestClient, TestServer

from everloop.core.tool import Effect
from everloop.gateway.http.sse import BEAT, SILENCE, Sse
from everloop.testing import Call, Say, ScriptedModel
from everloop.tools.decorator import tool
from tests.gateway.http_doors import TOKEN, Serve
from tests.gateway.openai.test_chat import ask, client

SENT = {
    "instructions": "be brief",
    "metadata": {"k": "v"},
    "text": {"format": {"type": "json_schema", "name": "P", "schema": {"type": "object"}, "strict": True}},
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": True}],
    "tool_choice": {"type": "function", "name": "f"},
    "temperature": 0.5,
    "top_p": 0.9,
    "max_output_tokens": 100,
    "parallel_tool_calls": False,
    "truncation": "auto",
    "user": "anna",
    "reasoning": {"effort": "low", "summary": "auto"},
    "store": True,
    "prompt_cache_key": "p",
    "safety_identifier": "s",
}


async def test_a_response_says_of_its_request_what_that_has_said_to_the_letter(serve: Serve):
    async with serve(ScriptedModel([Say("{}"), Say("{}")])) as served, ClientSession() as session:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        body = {"model": "everloop", "input": "hi", **SENT}
        async with session.post(f"{served.url}/v1/responses", json=body, headers=headers) as answer:
            whole = await answer.json()
        stream = await client(served).responses.create(**body, stream=True)
        told = [event.response.to_dict() async for event in stream if hasattr(event, "response")]
    assert {name: whole[name] for name in SENT} == SENT
    assert [{name: each[name] for name in SENT} for each in told] == [SENT] * 3


async def test_a_request_that_says_little_is_answered_with_what_openai_has_for_that(serve: Serve):
    async with serve(ScriptedModel([Say("hello")])) as served:
        response = (await client(served).responses.create(model="everloop", input="hi")).to_dict()
    assert (response["text"], response["metadata"], response["tools"], response["tool_choice"]) == (
        *({"format": {"type": "text"}}, {}, []),
        "auto",
    )
    assert response["instructions"] is None
    assert "user" not in response


async def test_a_stream_is_of_one_model_from_its_first_chunk_to_its_last(serve: Serve):
    async with serve(ScriptedModel([Say(["a", "b"]), Say("c")], name="scripted/one")) as served:
        chunks = [chunk.model async for chunk in await ask(served, stream=True)]
        stream = await client(served).responses.create(model="everloop", input="hi", stream=True)
        responses = [event.response.model async for event in stream if hasattr(event, "response")]
    assert ({*chunks}, {*responses}) == ({"everloop"}, {"everloop"})


async def test_while_a_tool_of_the_house_runs_a_stream_has_begun_and_gives_signs_of_life(serve: Serve):
    go = asyncio.Event()

    @tool(Effect.UNSAFE)
    async def work() -> str:
        """Work."""
        await go.wait()
        return "done"

    async with serve(ScriptedModel([Call("work"), Say("hello")]), tools=[work]) as served:
        stream = aiter(await ask(served, stream=True))
        first = (await anext(stream)).choices[0].delta.to_dict()  # the tool has not returned
        go.set()
        rest = [chunk.choices[0].delta.to_dict() async for chunk in stream]
    assert (first, rest) == ({"role": "assistant", "content": ""}, [{"content": "hello"}, {}])


async def test_a_silent_stream_begins_after_a_while_and_gives_signs_of_life_again_and_again():
    begun = []

    async def handle(request: web.Request) -> web.StreamResponse:
        sse = Sse(request, {})
        for _ in range(6):
            await sse.beat()
            begun.append(sse.begun)
        await sse.send_all([({"a": 1}, "said"), ("[DONE]", "")])
        return sse.response

    app = web.Application()
    app.add_routes([web.get("/", handle)])
    async with TestClient(TestServer(app)) as client, client.get("/") as response:
        told = await response.text()
    silent = math.ceil(SILENCE / BEAT) - 1
    assert begun == [False] * silent + [True] * (6 - silent)
    assert told == ": still here\n\n" * (6 - silent) + 'event: said\ndata: {"a":1}\n\ndata: [DONE]\n\n'


async def test_stop_is_taken_and_the_answer_ends_there_whole_and_streamed(serve: Serve):
    said = ["Thought: look\nObser", "vation: none"]
    async with serve(ScriptedModel([Say(said), Say(said)])) as served:
        whole = await ask(served, stop=["\nObservation:"])
        stream = await ask(served, stop="\nObservation:", stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("Thought: look", "stop")
    assert "".join(pieces) == "Thought: look"


async def test_a_lone_fence_around_json_is_taken_off_whole_and_streamed_and_only_where_json_was_asked_for(serve: Serve):
    said = ["```js", 'on\n{"a"', ": 1}\n`", "``"]
    wanted = {"type": "json_object"}
    async with serve(ScriptedModel([Say(said)] * 4)) as served:
        whole = (await ask(served, response_format=wanted)).choices[0].message.content
        stream = await ask(served, response_format=wanted, stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
        format_ = {"text": {"format": wanted}}
        response = (await client(served).responses.create(model="everloop", input="hi", **format_)).output_text
        plain = (await ask(served)).choices[0].message.content
    assert [whole, "".join(pieces), response] == ['{"a": 1}'] * 3
    assert plain == "".join(said)


async def test_slashes_are_the_users_own_words_in_a_request_without_a_session_and_commands_in_one(serve: Serve):
    model = ScriptedModel([Say("a path, I see")])
    async with serve(model) as served:
        said = await ask(served, [{"role": "user", "content": "/session list"}])
        known = await ask(
            served,
            [{"role": "user", "content": "/session list"}],
            extra_headers={"X-Everloop-Session": "api:mine"},
        )
    assert said.choices[0].message.content == "a path, I see"
    assert "a path" not in known.choices[0].message.content
    assert len(model.prompts) == 1
