import asyncio

import msgspec
import pytest
from aiohttp import web
from tests.ports import free_port
from tests.providers.hosts import cut, never, stream

from everloop.core.message import Message, said
from everloop.core.prompt import Prompt, Transcript, Usage
from everloop.errors import BadRequest, HostFailed, HostTimeout, HostUnreachable, KeyRefused, RateLimited, StreamCut
from everloop.ports.provider import Delta, Reply
from everloop.providers.dialects import openai_chat
from everloop.providers.host import HostProvider

KEY = "sk-canary-very-secret"
PROMPT = Prompt("m", "Be brief.", Transcript((Message("user", said("hi")),)))

HEL = b'data: {"id":"a","model":"m-1","choices":[{"delta":{"content":"Hel"}}]}\n\n'
LO = b'data: {"id":"a","model":"m-1","choices":[{"delta":{"content":"lo"}}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}\n\n'
DONE = b"data: [DONE]\n\n"
HELLO = Reply("Hello", usage=Usage(9, 2), model="m-1")


def answer(body: bytes = b"", status: int = 200, **headers: str):
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(
            status=status, body=body, headers={name.replace("_", "-"): headers[name] for name in headers}
        )

    return handler


class Talk:
    """Asks a host that answers by the script, one handler for each request, and remembers what happened."""

    def __init__(self, serve, http) -> None:
        self.serve = serve
        self._http = http
        self.requests: list[dict] = []
        self.slept: list[float] = []
        self.shown: list[Delta] = []
        self._has_shown = asyncio.Event()

    async def ask(self, *script, key: str = KEY, **options) -> Reply:
        handlers = iter(script)

        async def handler(request: web.Request) -> web.StreamResponse:
            self.requests.append(
                {
                    "path": request.path,
                    "key": request.headers.get("Authorization"),
                    "body": msgspec.json.decode(await request.read()),
                }
            )
            return await next(handlers)(request)

        base = await self.serve(handler) + "/v1/"
        return await self.provider(base, key, **options).reply(PROMPT, self._show)

    def provider(self, base: str, key: str = KEY, **options) -> HostProvider:
        return HostProvider(
            "host", self._http, base, key, openai_chat, sleep=self._sleep, chance=lambda: 0.5, **options
        )

    def shows_and_sends(self, piece: bytes):
        """An answer that goes on with this when its first word has been shown."""

        async def handler(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(HEL)
            await self._has_shown.wait()
            await response.write(piece)
            return response

        return handler

    def _show(self, delta: Delta) -> None:
        self.shown.append(delta)
        self._has_shown.set()

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def talk(serve, http) -> Talk:
    return Talk(serve, http)


async def test_an_answer_is_shown_as_it_comes_and_then_told_whole(talk):
    gate = asyncio.Event()

    async def slowly(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(HEL)
        await gate.wait()
        await response.write(LO + STOP + DONE)
        return response

    def show(delta: Delta) -> None:
        talk.shown.append(delta)
        gate.set()

    provider = talk.provider(await talk.serve(slowly))
    assert await provider.reply(PROMPT, show) == HELLO
    assert talk.shown == [Delta("Hel"), Delta("lo")]


async def test_the_host_is_asked_at_its_address_with_the_key(talk):
    assert await talk.ask(stream(HEL + LO + STOP + DONE)) == HELLO
    assert talk.requests == [
        {
            "path": "/v1/chat/completions",
            "key": "Bearer sk-canary-very-secret",
            "body": {
                "model": "m",
                "stream": True,
                "stream_options": {"include_usage": True},
                "max_tokens": 8192,
                "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
            },
        }
    ]


async def test_a_local_host_needs_no_key(talk):
    await talk.ask(stream(HEL + LO + STOP + DONE), key="")
    assert talk.requests[0]["key"] is None


async def test_a_key_is_freed_of_the_line_end_that_came_with_it(talk):
    await talk.ask(stream(HEL + LO + STOP + DONE), key=KEY + "\n")
    assert talk.requests[0]["key"] == "Bearer sk-canary-very-secret"


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-ü"])
async def test_a_key_that_cannot_be_sent_is_refused_without_telling_it(talk, key):
    with pytest.raises(KeyRefused) as raised:
        await talk.ask(key=key)
    assert "sk-" not in str(raised.value)


async def test_further_headers_are_sent(talk):
    await talk.ask(stream(HEL + LO + STOP + DONE), headers={"Authorization": "Basic x"})
    assert talk.requests[0]["key"] == "Basic x"


async def test_an_answer_that_is_no_stream_is_shown_at_once(talk):
    whole = b'{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}'
    assert await talk.ask(answer(whole)) == Reply("Hi", model="m")
    assert talk.shown == [Delta("Hi")]


async def test_reasoning_is_shown_apart(talk):
    thought = b'data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}\n\n'
    assert await talk.ask(stream(thought + STOP + DONE)) == Reply("", usage=Usage(9, 2), model="m", reasoning="hm")
    assert talk.shown == [Delta(reasoning="hm")]


async def test_a_limited_request_is_made_again_when_the_host_allows_it(talk):
    assert await talk.ask(answer(status=429, retry_after="7"), stream(HEL + LO + STOP + DONE)) == HELLO
    assert talk.slept == [7.0]


async def test_whoever_waits_is_told_when_it_takes_a_while(talk):
    script = (answer(status=429, retry_after=seconds) for seconds in ("1", "1.5", "7"))
    assert await talk.ask(*script, stream(HEL + LO + STOP + DONE), attempts=4) == HELLO
    assert talk.slept == [1.0, 1.5, 7.0]
    assert talk.shown == [
        Delta(progress="asking host again in 2 s …"),
        Delta(progress="asking host again in 7 s …"),
        Delta("Hello"),
    ]


async def test_a_host_that_wants_us_to_wait_too_long_is_not_waited_for(talk):
    with pytest.raises(RateLimited, match="It asks to wait 3600 s"):
        await talk.ask(answer(status=429, retry_after="3600"))
    assert talk.slept == []


async def test_a_failing_host_is_asked_again_and_again_more_slowly(talk):
    with pytest.raises(HostFailed, match=r"host failed to answer for m \(503\): busy. Try again later."):
        await talk.ask(*[answer(b'{"error":{"message":"busy"}}', 503)] * 4, attempts=4)
    assert talk.slept == [0.5, 1.0, 2.0]
    assert len(talk.requests) == 4


async def test_a_host_that_recovers_has_done_no_harm(talk):
    assert await talk.ask(answer(b"<html>", 500), stream(then=cut), stream(HEL + LO + STOP + DONE)) == HELLO
    assert talk.shown == [Delta("Hello")]


async def test_a_refused_key_is_not_tried_again(talk):
    with pytest.raises(KeyRefused, match="Check the key that is set for host"):
        await talk.ask(answer(b'{"error":{"message":"bad key sk-canary-very-secret"}}', 401))
    assert talk.slept == []


async def test_the_key_is_not_told_even_when_the_host_repeats_it(talk):
    with pytest.raises(BadRequest) as raised:
        await talk.ask(answer(b'{"error":{"message":"no sk-canary-very-secret here"}}', 400))
    assert str(raised.value) == "host refuses the request for m (400): no … here."


async def test_an_answer_that_breaks_off_after_something_was_shown_is_not_asked_for_again(talk):
    with pytest.raises(StreamCut):
        await talk.ask(stream(HEL, then=cut))
    assert (talk.shown, talk.slept) == ([Delta("Hel")], [])


async def test_an_answer_that_breaks_off_before_anything_was_shown_is_asked_for_again(talk):
    assert await talk.ask(stream(b": wait\n\n", then=cut), stream(HEL + LO + STOP + DONE)) == HELLO


async def test_a_stream_that_ends_too_early_is_cut(talk):
    with pytest.raises(StreamCut, match="host broke off in the middle of its answer for m-1"):
        await talk.ask(stream(HEL))


async def test_a_host_that_hangs_up_after_its_last_word_has_answered(talk):
    assert await talk.ask(stream(HEL + LO + STOP, then=cut)) == HELLO


async def test_a_host_that_does_not_hang_up_after_its_last_word_has_answered(talk):
    assert await talk.ask(stream(HEL + LO + STOP + DONE, then=never)) == HELLO
    assert await talk.ask(stream(HEL + LO + STOP, then=never), seconds=0.5) == HELLO


async def test_a_silent_host_is_too_slow(talk):
    with pytest.raises(HostTimeout):
        await talk.ask(never, never, seconds=0.5, attempts=2)


async def test_a_page_that_is_no_model_has_failed(talk):
    with pytest.raises(HostFailed, match="not a chat completion"):
        await talk.ask(answer(b"<html>Welcome</html>"), attempts=1)


OVERLOADED = b'data: {"error":{"message":"overloaded","code":529}}\n\n'
LIMITED = b'data: {"error":{"message":"too fast","code":429,"type":"rate_limit_error"}}\n\n'
REFUSED = b'data: {"error":{"message":"not like this","code":400}}\n\n'


async def test_an_error_inside_the_stream_before_anything_was_shown_is_raised_as_what_it_is(talk):
    with pytest.raises(HostFailed, match="overloaded"):
        await talk.ask(stream(OVERLOADED), attempts=1)


@pytest.mark.parametrize(("error", "says"), [(OVERLOADED, "overloaded"), (LIMITED, "accepts no more requests")])
async def test_an_error_that_passes_inside_an_answer_that_was_shown_has_cut_it(talk, error, says):
    with pytest.raises(StreamCut, match=says):
        await talk.ask(talk.shows_and_sends(error), stream(HEL + LO + STOP + DONE))
    assert (talk.shown, talk.slept, len(talk.requests)) == ([Delta("Hel")], [], 1)


async def test_an_error_that_does_not_pass_stays_what_it_is_even_after_something_was_shown(talk):
    with pytest.raises(BadRequest, match="not like this"):
        await talk.ask(talk.shows_and_sends(REFUSED))


async def test_a_host_that_is_not_there_is_unreachable(talk):
    with pytest.raises(HostUnreachable):
        await talk.provider(f"http://127.0.0.1:{free_port()}/v1").reply(PROMPT, talk.shown.append)
    assert talk.slept == [0.5, 1.0]


async def test_cancelling_closes_the_connection(talk):
    closed, shown = asyncio.Event(), asyncio.Event()

    async def wait(request):
        try:
            await asyncio.Event().wait()
        finally:
            closed.set()

    provider = talk.provider(await talk.serve(stream(HEL, then=wait)))
    task = asyncio.create_task(provider.reply(PROMPT, lambda delta: shown.set()))
    await shown.wait()
    task.cancel()
    async with asyncio.timeout(60):
        await closed.wait()
    with pytest.raises(asyncio.CancelledError):
        await task
