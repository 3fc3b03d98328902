"""Whatever is sent, nothing breaks: it is answered, or refused with a sentence in the shape of its door."""

import asyncio
from contextlib import suppress
from random import Random
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession
from hypothesis import given
from hypothesis import strategies as st

from everloop.core.tool import ToolCall
from everloop.gateway.http.errors import Refused
from everloop.gateway.openai import chat_shapes, responses_shapes
from everloop.gateway.openai.request import ClientMessage, ClientRequest, check, check_calls, results_of, tidy
from everloop.testing import Say, ScriptedModel
from tests.effort import examples, in_full
from tests.gateway.http_doors import TOKEN, Serve, Served

FUNCTION = {"name": "weather", "description": "Tell it.", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
PNG = "data:image/png;base64,iVBORw0KGgo="
CHAT = {
    "model": "everloop",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "there"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        {"role": "user", "content": [{"type": "file", "file": {"filename": "a.txt", "file_data": "aGk="}}]},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": "auto",
    "response_format": {"type": "json_object"},
    "max_tokens": 5,
    "temperature": 1,
    "reasoning_effort": "low",
    "stream": False,
}
RESPONSES = {
    "model": "everloop",
    "instructions": "Be brief.",
    "input": [
        {"role": "user", "content": "weather?"},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "so?"}]},
    ],
    "tools": [{"type": "function", **FUNCTION}],
    "text": {"format": {"type": "text"}},
    "reasoning": {"effort": "low"},
    "stream": False,
}
MESSAGE = {
    "platform": "discord",
    "platform_user_id": "7",
    "platform_channel_id": "c1",
    "content": "hi",
    "attachments": [],
    "id": None,
}
STRANGE: list[Any] = [
    *(None, True, 0, -1, 10**30, 1.5, 1e308, "", " ", "\x00", "/new", "/stop now", "everloop", "ä\u2028", "x" * 5000),
    *([], {}, [[]], [{}], {"type": "text"}, {"role": "user"}, [1, "a", None], PNG, "http://", "data:", "data:,x"),
    *("file:///etc/passwd", "resp_x", {"a": {"b": {"c": []}}}, ["x"] * 50, "user", "assistant", "tool", "required"),
]


def changed(value: Any, random: Random) -> Any:
    """The same JSON with something in it changed: replaced, left out, or repeated."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        name = random.choice(list(value))
        if random.random() < 0.1:
            return {key: each for key, each in value.items() if key != name}
        return {**value, name: changed(value[name], random)}
    if isinstance(value, list) and value and random.random() < 0.85:
        at = random.randrange(len(value))
        if (what := random.random()) < 0.2:
            return [*value[:at], *value[at + 1 :]]
        return [*value[:at], value[at] if what < 0.3 else changed(value[at], random), *value[at + (what >= 0.3) :]]
    return random.choice(STRANGE)


async def send(served: Served, session: ClientSession, path: str, body: bytes, **headers: str) -> tuple[int, str]:
    known = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **headers}
    async with session.post(f"{served.url}{path}", data=body, headers=known) as answer:
        return answer.status, await answer.text()


def is_told(status: int, text: str) -> bool:
    """Whether this is an answer, or a refusal as it should be."""
    if status == 200:
        return True
    error = msgspec.json.decode(text)["error"]
    return 400 <= status < 500 and bool(error["code"]) and error["message"][-1] in ".!?)"


def test_a_failure_of_ours_or_a_refusal_without_a_sentence_is_not_as_it_should_be():
    assert is_told(400, '{"error":{"code":"x","message":"No."}}')
    assert not is_told(500, '{"error":{"code":"x","message":"No."}}')
    assert not is_told(400, '{"error":{"code":"x","message":"no"}}')


@pytest.mark.shortened
@pytest.mark.parametrize(
    "path, body", [("/v1/chat/completions", CHAT), ("/v1/responses", RESPONSES), ("/message", MESSAGE)]
)
async def test_a_request_with_something_wrong_in_it_is_answered_or_refused(serve: Serve, path: str, body: Any):
    random = Random(6)
    seen = set()
    async with serve(ScriptedModel(lambda shown: Say("ok"))) as served, ClientSession() as session:
        assert (await send(served, session, path, msgspec.json.encode(body)))[0] == 200
        for _ in range(in_full(60, 20)):
            bodies = [changed(body, random) for _ in range(10)]
            sending = [send(served, session, path, msgspec.json.encode(each)) for each in bodies]
            for sent, (status, text) in zip(bodies, await asyncio.gather(*sending), strict=True):
                assert is_told(status, text), (sent, status, text)
                seen.add(status)
    assert {200, 400} <= seen


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/message", "/message/stream"])
async def test_what_is_no_json_is_refused(serve: Serve, path: str):
    bodies = [b"", b"{", b"\xff\xfe", b'"\\ud800"', b"[" * 100_000, b"null", b"[]", b"1e999", b'{"a":1}{"b":2}', b"NaN"]
    async with serve(ScriptedModel([])) as served, ClientSession() as session:
        for body in bodies:
            status, text = await send(served, session, path, body)
            assert (status, is_told(status, text)) == (400, True), body


@pytest.mark.parametrize("name", ["X-Everloop-Session", "Idempotency-Key"])
async def test_strange_headers_are_taken_or_refused(serve: Serve, name: str):
    values = ["x", ":", "a:", ":b", "a:b:c:d", "cli:direct", "é:é", "a:" + "b" * 5000, "openai:x", "platform:x/y"]
    body = msgspec.json.encode({"messages": [{"role": "user", "content": "hi"}]})
    async with serve(ScriptedModel(lambda shown: Say("ok"))) as served, ClientSession() as session:
        for value in values:
            status, text = await send(served, session, "/v1/chat/completions", body, **{name: value})
            assert is_told(status, text), (value, text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
NAMES = st.sampled_from([*CHAT, *RESPONSES, "n", "stop", "role", "type", "content"])


@examples(300)
@given(JSON | st.dictionaries(NAMES, JSON))
def test_any_json_is_read_or_refused(plain: Any):
    for read in (chat_shapes.read, responses_shapes.read):
        with suppress(Refused):
            assert isinstance(read(plain), ClientRequest | tuple)


IDS = st.sampled_from(["a", "b", "c"])
CALLS = st.lists(st.builds(ToolCall, IDS, st.just("weather"), st.just("{}")), max_size=3).map(tuple)
PIECES = st.lists(st.sampled_from(["", " ", "hi", "so"]), max_size=2).map(tuple)
TURNS = st.one_of(
    st.builds(ClientMessage, st.just("user"), PIECES),
    st.builds(ClientMessage, st.just("assistant"), PIECES, CALLS),
    st.builds(ClientMessage, st.just("tool"), PIECES, st.just(()), IDS),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[ClientMessage]:
    """Turns in any order; often the results of calls follow them, in some order."""
    turns: list[ClientMessage] = []
    for turn in draw(st.lists(TURNS, max_size=8)):
        turns.append(turn)
        if turn.calls and draw(st.booleans()):
            turns += [ClientMessage("tool", ("done",), answers=call.id) for call in draw(st.permutations(turn.calls))]
    return turns


@examples(500)
@given(conversations())
def test_a_conversation_is_refused_or_becomes_one_that_hosts_accept(turns: list[ClientMessage]):
    try:
        check(turns)
        check_calls(turns)
    except Refused:
        return
    tidied = tidy(turns)
    assert tidied[0].role == "user"
    assert tidied[-1].role != "assistant"
    waiting: list[str] = []
    for before, turn in zip([None, *tidied], tidied, strict=False):
        if turn.role == "tool":
            assert turn.answers == waiting.pop(0)
            continue
        assert waiting == []
        waiting = [call.id for call in turn.calls]
        assert before is None or turn.role != "assistant" or before.role != "assistant"
        assert turn.calls or any(str(piece).strip() for piece in turn.pieces)
    assert waiting == []
    results = [sorted(turn.answers for turn in each if turn.role == "tool") for each in (turns, tidied)]
    assert results[0] == results[1]


def test_the_results_at_the_end_are_told_in_their_order():
    calls = (ToolCall("a", "one", "{}"), ToolCall("b", "two", "{}"))
    turns = [
        ClientMessage("assistant", (), calls),
        ClientMessage("tool", ("1",), answers="a"),
        ClientMessage("tool", ("2",), answers="b"),
    ]
    assert results_of(turns) == "Result of one (a):\n1\n\nResult of two (b):\n2"


@pytest.mark.parametrize("field, value", [("max_tokens", 10**30), ("max_tokens", 0), ("temperature", 3), ("top_p", -1)])
async def test_a_number_out_of_its_range_is_refused(serve: Serve, field: str, value: float):
    body = msgspec.json.encode({"messages": [{"role": "user", "content": "hi"}]})
    body = body[:-1] + f',"{field}":{value}}}'.encode()
    async with serve(ScriptedModel([])) as served, ClientSession() as session:
        status, text = await send(served, session, "/v1/chat/completions", body)
    assert (status, msgspec.json.decode(text)["error"]["param"]) == (400, field)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/message"])
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "nonsense"])
async def test_a_packed_body_is_refused(serve: Serve, path: str, encoding: str):
    async with serve(ScriptedModel([])) as served, ClientSession() as session:
        status, text = await send(served, session, path, b"\x00garbage" * 9, **{"Content-Encoding": encoding})
    error = msgspec.json.decode(text)["error"]
    told = "send the request as it is, without Content-Encoding"
    assert (status, error["code"], error["message"]) == (415, "unsupported_encoding", told)
