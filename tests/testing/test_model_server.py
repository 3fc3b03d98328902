"""The scripted model over HTTP, read with nothing but an HTTP client."""

import asyncio
import io
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from everloop.core.prompt import Usage
from everloop.errors import (
    BadRequest,
    ContextOverflow,
    HostFailed,
    HostTimeout,
    HostUnreachable,
    KeyRefused,
    ProviderError,
    RateLimited,
    StreamCut,
    UnknownModel,
)
from everloop.testing import Call, Calls, CutAt, Empty, End, Fail, Http, Line, Pause, Raw, Say, Spend, Think, Wait
from everloop.testing.model_server import ModelServer
from everloop.testing.script import acts_of
from everloop.testing.script_file import parse_script

HELLO = {"role": "user", "content": "hello"}


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def request_of(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages or (HELLO,)), "stream": True, **more}


async def post(client: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> tuple[int, str]:
    async with client.post(f"{url}/chat/completions", json=body) as answer:
        return answer.status, await answer.text()


async def stream(client: aiohttp.ClientSession, line: Line, **more: Any) -> list[Any]:
    """The events of a line's stream, each decoded but the last."""
    async with ModelServer([line]) as server:
        status, text = await post(client, server.url, request_of(**more))
    assert status == 200
    *events, done, rest = text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


def deltas_of(events: list[Any]) -> list[Any]:
    return [event["choices"][0]["delta"] for event in events]


async def test_text_comes_in_the_pieces_of_the_script(client: aiohttp.ClientSession):
    events = await stream(client, [Think("hm"), Say(["hel", "lö"])])
    assert deltas_of(events) == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "hm"},
        {"content": "hel"},
        {"content": "lö"},
        {},
    ]
    assert [event["choices"][0]["finish_reason"] for event in events] == [None, None, None, None, "stop"]
    assert {(event["object"], event["model"]) for event in events} == {("chat.completion.chunk", "m")}


async def test_parallel_calls_come_with_their_arguments_in_pieces(client: aiohttp.ClientSession):
    events = await stream(client, Calls(Call("look", {"at": "cat"}), Call("hear", ["{", "}"], id="mine")))
    pieces = [delta["tool_calls"][0] for delta in deltas_of(events) if "tool_calls" in delta]
    assert [(piece["index"], piece["id"], piece["function"]["name"]) for piece in pieces if "id" in piece] == [
        (0, "call_1_0", "look"),
        (1, "mine", "hear"),
    ]
    args = [[piece["function"]["arguments"] for piece in pieces if piece["index"] == index] for index in (0, 1)]
    assert ("".join(args[0]), args[1]) == ('{"at":"cat"}', ["", "{", "}"])
    assert len(args[0]) > 2
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_a_call_has_the_id_that_it_has_without_a_wire(client: aiohttp.ClientSession):
    system = {"role": "system", "content": "be kind"}
    events = await stream(client, Call("look"), messages=[system, HELLO])
    assert deltas_of(events)[1]["tool_calls"][0]["id"] == "call_1_0"


async def test_usage_is_told_to_those_who_ask(client: aiohttp.ClientSession):
    line = [Say("hi"), Spend(Usage(90, 3, cache_read=80))]
    asked = await stream(client, line, stream_options={"include_usage": True})
    assert (asked[-1]["choices"], asked[-1]["usage"]) == (
        [],
        {
            "prompt_tokens": 90,
            "completion_tokens": 3,
            "total_tokens": 93,
            "prompt_tokens_details": {"cached_tokens": 80},
        },
    )
    assert all("usage" not in event for event in await stream(client, line))


async def test_an_empty_line_is_a_stream_with_only_an_end(client: aiohttp.ClientSession):
    assert deltas_of(await stream(client, Empty())) == [{}]


async def test_a_line_can_end_for_another_reason(client: aiohttp.ClientSession):
    events = await stream(client, [Say("too lo"), End("length")])
    assert events[-1]["choices"][0]["finish_reason"] == "length"


async def test_who_wants_no_stream_gets_one_answer(client: aiohttp.ClientSession):
    async with ModelServer([[Think("hm"), Say(["he", "llo"]), Call("look", {"at": "cat"})]]) as server:
        status, text = await post(client, server.url, request_of(stream=False))
    (choice,) = json.loads(text)["choices"]
    assert (status, choice["finish_reason"]) == (200, "tool_calls")
    assert choice["message"] == {
        "role": "assistant",
        "content": "hello",
        "reasoning_content": "hm",
        "tool_calls": [
            {"id": "call_1_0", "type": "function", "function": {"name": "look", "arguments": '{"at":"cat"}'}}
        ],
    }


@pytest.mark.parametrize(
    "error, status, code",
    [
        (KeyRefused("no"), 401, "invalid_api_key"),
        (UnknownModel("no"), 404, "model_not_found"),
        (RateLimited("no", 2), 429, "rate_limit_exceeded"),
        (ContextOverflow("no"), 400, "context_length_exceeded"),
        (BadRequest("no"), 400, None),
        (HostFailed("no"), 500, None),
    ],
)
async def test_a_failure_is_what_a_host_would_answer(
    client: aiohttp.ClientSession, error: ProviderError, status: int, code: str | None
):
    async with (
        ModelServer([[Pause(0.001), Fail(error)]]) as server,
        client.post(f"{server.url}/chat/completions", json=request_of()) as answer,
    ):
        told = (await answer.json())["error"]
        assert (answer.status, told["code"], told["message"]) == (status, code, "no")
        assert answer.headers.get("Retry-After") == ("2" if status == 429 else None)


async def test_a_failure_after_the_first_delta_is_told_inside_the_stream(client: aiohttp.ClientSession):
    async with (
        ModelServer([[Say("half"), Fail(HostFailed("no"))]]) as server,
        client.post(f"{server.url}/chat/completions", json=request_of()) as answer,
    ):
        text, cut = await read_until_cut(answer)
    assert (answer.status, cut) == (200, True)
    assert b'"content":"half"' in text
    assert b'"message":"no"' in text


async def read_until_cut(answer: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    text = b""
    try:
        async for piece in answer.content.iter_any():
            text += piece
    except aiohttp.ClientPayloadError:
        return text, True
    return text, False


@pytest.mark.parametrize(
    "line", [Fail(StreamCut("cut")), [Say("half"), Fail(StreamCut("cut"))], [Say("hello"), CutAt(10**6)]]
)
async def test_a_cut_stream_ends_without_its_end(client: aiohttp.ClientSession, line: Line):
    async with (
        ModelServer([line]) as server,
        client.post(f"{server.url}/chat/completions", json=request_of()) as answer,
    ):
        text, cut = await read_until_cut(answer)
    assert cut
    assert b"data: " in text
    assert b"[DONE]" not in text


@pytest.mark.parametrize("byte", [1, 7, 150, 151])
async def test_a_stream_is_cut_at_the_very_byte(client: aiohttp.ClientSession, byte: int):
    async with (
        ModelServer([[Say(["hel", "lo"]), CutAt(byte)]]) as server,
        client.post(f"{server.url}/chat/completions", json=request_of()) as answer,
    ):
        text, cut = await read_until_cut(answer)
    assert (len(text), cut) == (byte, True)


async def test_an_unreachable_host_closes_the_connection_without_a_word(client: aiohttp.ClientSession):
    async with ModelServer([Fail(HostUnreachable("no"))] * 2) as server:
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await post(client, server.url, request_of())


async def test_a_host_that_times_out_holds_the_request_until_the_client_leaves(client: aiohttp.ClientSession):
    async with ModelServer([Fail(HostTimeout("no"))]) as server:
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(post(client, server.url, request_of()))
            await server.called(1)
            asking.cancel()
        await server.left(1)
        assert (server.calls, server.abandoned) == (1, 1)


async def test_a_server_that_holds_a_request_closes_all_the_same(client: aiohttp.ClientSession):
    async with ModelServer([Fail(HostTimeout("no"))]) as server:
        asking = asyncio.create_task(post(client, server.url, request_of()))
        await server.called(1)
    with pytest.raises(aiohttp.ClientError):
        await asking


async def test_any_other_answer_and_garbage_are_sent_as_they_are(client: aiohttp.ClientSession):
    page = Http(503, "<html>down</html>", {"X-Why": "test"})
    async with ModelServer([page, [Raw(": hello\n\ndata: {oh\n\n"), Say("hi")]]) as server:
        assert await post(client, server.url, request_of()) == (503, "<html>down</html>")
        _, text = await post(client, server.url, request_of())
    assert text.startswith(": hello\n\ndata: {oh\n\ndata: {")
    assert text.endswith("[DONE]\n\n")


async def test_an_answer_is_held_open_until_its_gate_is_set(client: aiohttp.ClientSession):
    gate = asyncio.Event()
    async with (
        ModelServer([[Say("half"), Wait(gate), Say("whole")]]) as server,
        client.post(f"{server.url}/chat/completions", json=request_of()) as answer,
    ):
        before = b""
        while b"half" not in before:
            before += await answer.content.readany()
        gate.set()
        after = await answer.content.read()
    assert (b"whole" in before, b"whole" in after) == (False, True)


async def test_a_script_by_conversation_follows_the_messages_of_the_request(client: aiohttp.ClientSession):
    looked = {"role": "assistant", "content": None, "tool_calls": [call("look")]}
    seen = {"role": "tool", "tool_call_id": "c", "content": "a cat"}
    async with ModelServer(by_conversation=[Call("look"), Say("a cat it is")]) as server:
        texts = [(await post(client, server.url, request_of(HELLO, *more)))[1] for more in ([], [looked, seen], [])]
    assert ["a cat it is" in text for text in texts] == [False, True, False]


def call(name: str) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": "{}"}}


async def test_a_function_answers_what_the_request_shows(client: aiohttp.ClientSession):
    system = {"role": "system", "content": "be kind"}
    asked = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
    tools = [{"type": "function", "function": {"name": "look"}}]
    async with ModelServer(lambda shown: Say(f"{shown.system}: {shown.asked}")) as server:
        _, text = await post(client, server.url, request_of(system, asked, tools=tools))
        (shown,) = server.prompts
    assert "be kind: hello" in text
    assert (shown.model, shown.said, shown.tools) == ("m", [("user", "hello")], ("look",))


async def test_the_requests_can_be_read_over_http(client: aiohttp.ClientSession):
    async with ModelServer([Say("hi")]) as server:
        root = server.url.removesuffix("/v1")
        await post(client, server.url, request_of())
        async with client.get(f"{root}/_calls?at_least=1") as answer:
            account = await answer.json()
    assert (account["calls"], account["abandoned"]) == (1, 0)
    assert [request["body"] for request in account["requests"]] == [request_of()]
    assert [asked.body for asked in server.requests] == [request_of()]


async def test_the_script_can_be_changed_and_gates_opened_over_http(client: aiohttp.ClientSession):
    async with ModelServer([Say("old")]) as server:
        root = server.url.removesuffix("/v1")
        await client.post(f"{root}/_script", json=[[{"wait": "now"}, {"say": "new"}]])
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(post(client, server.url, request_of()))
            await server.called(1)
            await client.post(f"{root}/_open?gate=now")
        assert "new" in asking.result()[1]
        async with client.post(f"{root}/_script", json=[{"sing": "la"}]) as refused:
            assert (refused.status, "sing" in await refused.text()) == (400, True)


async def test_the_models_are_listed(client: aiohttp.ClientSession):
    async with ModelServer(models=["a", "b"]) as server, client.get(f"{server.url}/models") as answer:
        assert [model["id"] for model in (await answer.json())["data"]] == ["a", "b"]


async def test_a_request_that_is_no_request_is_refused(client: aiohttp.ClientSession):
    async with ModelServer([Say("hi")]) as server:
        assert (await post(client, server.url, {"model": "m"}))[0] == 400


async def test_a_history_of_megabytes_is_taken(client: aiohttp.ClientSession):
    body = io.BytesIO(json.dumps(request_of({"role": "user", "content": "x" * 3_000_000})).encode())
    async with (
        ModelServer([Say("hi")]) as server,
        client.post(f"{server.url}/chat/completions", data=body) as answer,
    ):
        assert answer.status == 200


async def test_five_hundred_streams_at_once_are_all_answered():
    line = [Pause(0.1), Say(["word "] * 20)]
    connector = aiohttp.TCPConnector(limit=0)
    async with ModelServer(by_conversation=[line]) as server, aiohttp.ClientSession(connector=connector) as client:
        async with asyncio.TaskGroup() as group:
            asking = [group.create_task(post(client, server.url, request_of())) for _ in range(500)]
        assert {task.result()[1].count("word ") for task in asking} == {20}
        assert server.calls == 500


@pytest.mark.parametrize(
    "data, line",
    [
        ("hi", Say("hi")),
        ({"say": ["h", "i"]}, Say(["h", "i"])),
        ([{"think": "hm"}, {"say": "hi"}], [Think("hm"), Say("hi")]),
        ({"call": "look", "args": {"at": "cat"}, "id": "c"}, Call("look", {"at": "cat"}, "c")),
        ({"empty": True}, Empty()),
        ({"pause": 0.5}, Pause(0.5)),
        ({"usage": {"input": 9, "output": 3}}, Spend(Usage(9, 3))),
        ({"end": "length"}, End("length")),
        ({"http": 503, "body": {"a": 1}}, Http(503, {"a": 1})),
        ({"raw": "garbage"}, Raw("garbage")),
        ({"cut_at": 9}, CutAt(9)),
    ],
)
def test_a_script_is_read_from_json(data: Any, line: Line):
    script = parse_script({"by": "conversation", "lines": [data]}, {})
    assert list(acts_of(script.pick(0, lambda: pytest.fail("not needed")))) == list(acts_of(line))


@pytest.mark.parametrize(
    "data", [3, {"by": "moon", "lines": []}, {}, [{"sing": "la"}], [{"end": "never"}], [{"fail": "moon"}]]
)
def test_a_script_that_makes_no_sense_is_refused(data: Any):
    with pytest.raises(ValueError):
        parse_script(data, {})


@contextmanager
def running(script: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "everloop.testing.model_server", "--port", "0", "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready, url = process.stdout.readline().split()
            assert ready == "ready"
            yield process, url
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()


async def test_it_runs_as_a_process_of_its_own(client: aiohttp.ClientSession, tmp_path: Path):
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"by": "conversation", "first": 0.01, "between": 0.001, "lines": ["hi"]}))
    with running(script) as (_, url):
        for _ in range(2):
            status, text = await post(client, url, request_of())
            assert (status, '"content":"hi"' in text) == (200, True)
