"""A host that never ends, or never stops to send: it is stopped, said so, and not paid a second time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import chain, count, repeat
from types import ModuleType

import pytest
from aiohttp import web

from everloop.core.message import Message, said
from everloop.core.prompt import Prompt, Transcript
from everloop.core.tool import ToolCall
from everloop.errors import AnswerOversized, AnswerTimeout, HostTimeout, ProviderError
from everloop.ports.provider import Delta, Reply
from everloop.providers.dialects import anthropic_messages, gemini, openai_chat, openai_responses
from everloop.providers.dialects.sse import MOST_BYTES as MOST_OF_A_LINE
from everloop.providers.host import HostProvider
from everloop.providers.limits import MOST_BYTES

PROMPT = Prompt("m", "Be brief.", Transcript((Message("user", said("hi")),)))
MIB = 2**20

DIALECTS = [openai_chat, openai_responses, anthropic_messages, gemini]
WORDS = {
    openai_chat: b'data: {"choices":[{"delta":{"content":"on and "}}]}\n\n',
    openai_responses: b'data: {"type":"response.output_text.delta","output_index":0,"delta":"on and "}\n\n',
    anthropic_messages: b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"on and "}}'
    b"\n\n",
    gemini: b'data: {"candidates":[{"content":{"parts":[{"text":"on and "}]}}]}\n\n',
}
BEGIN = {
    anthropic_messages: b'data: {"type":"message_start","message":{"id":"a","model":"m"}}\n\n'
    b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
}
HEARTBEATS = [
    b": ping\n\n",
    b":\n",
    b"\n",
    b"\r\n\r\n",
    b" ",
    b"data:\n\n",
    b"data: \r\n\r\n",
    b"event: ping\n\n",
    b"id: 7\nretry: 10\n\n",
    b": data: {}\n",
    b"nonsense\n",
]

ONLY_HEARTBEATS = (
    "host sent signs of life for 10 min and nothing of an answer, and was stopped (the limit is a third of "
    "providers.host.answer_seconds = 1800, but at least 2 min). It may be paid for, so it is not asked again by "
    "itself: ask later, choose another model, or raise that setting."
)
TOO_LONG = (
    "host did not come to the end of its answer within 0.5 s (providers.host.answer_seconds = 0.5) and was stopped. "
    "It may be paid for, so it is not asked again by itself: ask for less, or raise that setting."
)


def named(dialect: object) -> str:
    return dialect.NAME if isinstance(dialect, ModuleType) else repr(dialect)


class Pieces:
    """The Http and the HttpAnswer port: a host that sends these pieces, as fast as they are taken."""

    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, *pieces: bytes, forever: bytes = b"") -> None:
        self._pieces, self._forever = pieces, forever
        self.requests = self.taken = 0

    @asynccontextmanager
    async def request(self, method: str, url: str, **more: object) -> AsyncIterator["Pieces"]:
        self.requests += 1
        yield self

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in chain(self._pieces, repeat(self._forever) if self._forever else ()):
            self.taken += 1
            yield piece

    async def read(self, limit: int = 0) -> bytes:
        return b""

    async def close(self) -> None: ...


def every(seconds: float) -> Callable[[], float]:
    """A clock that is so much later whenever someone looks at it."""
    times: Iterator[float] = (number * seconds for number in count())
    return lambda: next(times)


async def ask(host: Pieces, dialect=openai_chat, shown: list[Delta] | None = None, **more) -> Reply:
    provider = HostProvider("host", host, "http://host", "", dialect, **more)
    return await provider.reply(PROMPT, (shown if shown is not None else []).append)


async def fail(host: Pieces, dialect=openai_chat, **more) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await ask(host, dialect, **more)
    return raised.value


# Signs of life


@pytest.mark.parametrize("dialect", DIALECTS, ids=named)
@pytest.mark.parametrize("heartbeat", HEARTBEATS)
async def test_a_host_that_only_says_that_it_is_there_is_stopped_and_not_asked_again(dialect, heartbeat):
    host = Pieces(forever=heartbeat)
    error = await fail(host, dialect, now=every(15))
    assert (type(error).__mro__[1], str(error), error.kind) == (AnswerTimeout, ONLY_HEARTBEATS, "endless")
    assert (host.requests, host.taken) == (1, 42)  # 600 s


@pytest.mark.parametrize("dialect", DIALECTS, ids=named)
async def test_an_event_that_never_becomes_whole_is_no_more_than_a_sign_of_life(dialect):
    host = Pieces(b"data: ", forever=b"x")
    assert str(await fail(host, dialect, now=every(15))) == ONLY_HEARTBEATS


@pytest.mark.parametrize("dialect", DIALECTS, ids=named)
async def test_a_host_that_says_something_now_and_then_may_take_its_time(dialect):
    said_at_times = [BEGIN.get(dialect, b""), *([b": ping\n\n"] * 30 + [WORDS[dialect]]) * 10]
    shown: list[Delta] = []
    error = await fail(Pieces(*filter(None, said_at_times)), dialect, shown=shown, now=every(15))
    assert (error.kind, len(shown)) == ("cut", 10)  # its end did not come, but it was heard for 75 minutes


async def test_a_call_that_is_written_piece_by_piece_is_progress_although_nothing_is_shown():
    piece = b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":%s}]}}]}\n\n'
    script = [piece % b'{"name":"look","arguments":"{"}', *[b": ping\n\n", piece % b'{"arguments":" "}'] * 100]
    end = [piece % b'{"arguments":"}"}', b'data: {"choices":[{"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n']
    reply = await ask(Pieces(*script, *end), now=every(500))
    assert reply.calls == (ToolCall("a", "look", "{" + " " * 100 + "}"),)


async def test_a_host_that_has_us_wait_in_a_queue_is_waited_for():
    """As OpenRouter does: https://openrouter.ai/docs/api-reference/streaming"""
    queue = [b": OPENROUTER PROCESSING\n\n"] * 39
    answer = WORDS[openai_chat] + b'data: {"choices":[{"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    assert (await ask(Pieces(*queue, answer), now=every(15))).text == "on and "


async def test_a_complete_answer_that_is_followed_by_signs_of_life_is_an_answer():
    complete = WORDS[openai_chat] + b'data: {"choices":[{"finish_reason":"stop"}]}\n\n'
    host = Pieces(complete, forever=b": ping\n\n")
    assert (await ask(host, now=every(15))).text == "on and "
    assert host.taken == 11  # for as long as a silent host is waited for, not longer


async def test_more_time_for_answers_is_more_time_for_signs_of_life():
    host = Pieces(forever=b": ping\n\n")
    assert "for 20 min" in str(await fail(host, now=every(15), answer_seconds=3600.0))
    assert host.taken == 82


# The answer as a whole, over a real connection


def endlessly(piece: bytes, first: bytes = b"", status: int = 200):
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status)
        await response.prepare(request)
        await response.write(first or piece)
        while True:
            await response.write(piece)
            await asyncio.sleep(0.005)

    return handler


@pytest.mark.parametrize("dialect", DIALECTS, ids=named)
async def test_an_answer_that_does_not_end_is_stopped_and_not_asked_for_again(serve, http, dialect):
    requests, shown = [], []

    async def handler(request: web.Request) -> web.StreamResponse:
        requests.append(request.path)
        return await endlessly(WORDS[dialect], BEGIN.get(dialect, b""))(request)

    provider = HostProvider("host", http, await serve(handler), "", dialect, answer_seconds=0.5)
    with pytest.raises(AnswerTimeout) as raised:
        await provider.reply(PROMPT, shown.append)
    assert (str(raised.value), raised.value.kind, len(requests)) == (TOO_LONG, "endless", 1)
    assert "".join(delta.text for delta in shown).startswith("on and on and ")


@pytest.mark.parametrize("piece", [b": ping\n\n", b'{"choices": [', b"data: x", b'data: {"choices":[]}\n\n'])
async def test_nothing_that_a_host_sends_prolongs_its_answer(serve, http, piece):
    provider = HostProvider("host", http, await serve(endlessly(piece)), "", openai_chat, answer_seconds=0.5)
    with pytest.raises(AnswerTimeout) as raised:
        await provider.reply(PROMPT, print)
    assert str(raised.value) == TOO_LONG


async def test_a_complete_answer_whose_host_goes_on_and_on_is_an_answer(serve, http):
    end = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    url = await serve(endlessly(b'data: {"choices":[]}\n\n', first=end))
    provider = HostProvider("host", http, url, "", openai_chat, answer_seconds=0.5)
    assert (await provider.reply(PROMPT, print)).text == "Hi"


async def test_an_error_page_that_trickles_is_not_waited_for(serve, http):
    url = await serve(endlessly(b"<", status=500))
    provider = HostProvider("host", http, url, "", openai_chat, attempts=1, seconds=0.5)
    with pytest.raises(HostTimeout, match=r"has not sent all of its answer within 2 s\."):
        await provider.reply(PROMPT, print)


async def test_an_error_page_without_end_is_read_in_part(serve, http):
    url = await serve(endlessly(b"<html>" * 10_000, status=400))
    provider = HostProvider("host", http, url, "", openai_chat)
    with pytest.raises(ProviderError, match=r"host refuses the request for m \(400\)"):
        await provider.reply(PROMPT, print)


# Size


@pytest.mark.parametrize("dialect", DIALECTS, ids=named)
@pytest.mark.parametrize(
    ("first", "forever", "what"),
    [
        (b"data: ", b"x" * MIB, "a line"),
        (b": ", b"x" * MIB, "a line"),
        (b"nonsense", b"x" * MIB, "a line"),
        (b"{", b" " * MIB, "an answer"),
        (b"data: {\n", (b"data: " + b"7" * 2000 + b"\n") * 500, "an event"),
        (b"data: {\n", (b"data: " + b"{}" * 1000 + b"\n") * 500, "an event"),
    ],
)
async def test_what_is_read_as_a_whole_has_a_limit(dialect, first, forever, what):
    host = Pieces(first, forever=forever)
    error = await fail(host, dialect)
    assert (type(error), host.requests) == (AnswerOversized, 1)
    assert str(error) == (
        f"host sent {what} of more than 16 MiB, which is more than is read, and was stopped. Check the host's address, "
        "or ask it for less."
    )
    assert host.taken < 100


@pytest.mark.parametrize("dialect", DIALECTS, ids=named)
async def test_an_answer_as_a_whole_has_a_limit(dialect):
    host = Pieces(BEGIN.get(dialect, b": \n"), forever=b": " + b"x" * MIB + b"\n" + WORDS[dialect])
    error = await fail(host, dialect)
    assert (type(error), host.requests, host.taken) == (AnswerOversized, 1, MOST_BYTES // MIB + 1)
    assert str(error) == (
        "host sent an answer of more than 256 MiB, which is more than is read, and was stopped. Check the host's "
        "address, or ask it for less."
    )


async def test_a_large_answer_in_one_event_is_read():
    text = b"x" * (MOST_OF_A_LINE - 100)
    pieces = [text[start : start + 100_000] for start in range(0, len(text), 100_000)]
    event = [b'data: {"choices":[{"delta":{"content":"', *pieces, b'"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n']
    assert len((await ask(Pieces(*event))).text) == len(text)
