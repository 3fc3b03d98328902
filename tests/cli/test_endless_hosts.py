"""Hosts whose answers never end, as people read of them at each door: one sentence, within the limit, paid once."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress

import aiohttp
import openai
import pytest
from tests.cli.person import Person, is_one_plain_sentence
from tests.cli.test_gateway_command import new_token, start

SECONDS = "1.5"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
WORD = b'data: {"choices":[{"delta":{"content":"on and "}}]}\n\n'
TOO_LONG = (
    "custom did not come to the end of its answer within 1.5 s (providers.custom.answer_seconds = 1.5) and was "
    "stopped. It may be paid for, so it is not asked again by itself: ask for less, or raise that setting."
)
TOO_LARGE = (
    "custom sent a line of more than 16 MiB, which is more than is read, and was stopped. Check the host's address, or "
    "ask it for less."
)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


ENDLESS = {
    "comments": (HEAD, chunk(b": ping\n\n")),
    "words": (HEAD, chunk(WORD)),
    "a body that is no stream": (b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n{", b" "),
    "a head": (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "heads before the head": (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "trailers": (HEAD + chunk(WORD) + b"0\r\n", b"X-More: y\r\n"),
    "the length of a piece": (HEAD + b"5;", b"x"),
}


class Host:
    """Answers every POST with `first`, and then with `again` for as long as anyone listens."""

    def __init__(self) -> None:
        self.first, self.again, self.pause = HEAD, chunk(WORD), 0.02
        self.asked = 0

    async def __aenter__(self) -> "Host":
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            if (await reader.readuntil(b"\r\n\r\n")).startswith(b"POST"):
                self.asked += 1
                writer.write(self.first)
                while True:
                    writer.write(self.again)
                    await writer.drain()
                    await asyncio.sleep(self.pause)
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()


@pytest.fixture
async def model() -> AsyncIterator[Host]:
    async with Host() as host:
        yield host


@pytest.fixture
def hurried(person: Person) -> Person:
    """Someone who has set a limit that one can wait for."""
    person.environment["EVERLOOP_PROVIDERS__CUSTOM__ANSWER_SECONDS"] = SECONDS
    return person


@pytest.mark.parametrize("how", ENDLESS)
async def test_at_the_terminal_an_answer_that_never_ends_is_one_sentence(hurried: Person, model: Host, how: str):
    model.first, model.again = ENDLESS[how]
    ran = await hurried.run("agent", "-m", "hi")
    said, _, sentence = ran.err.rpartition("everloop: ")
    assert is_one_plain_sentence(f"everloop: {sentence}")
    assert re.sub(r" \(error \S+\)\n$", "", sentence) == TOO_LONG
    assert len(said) < 11_000  # of what had been said by then
    assert (ran.status, ran.out, model.asked) == (1, "", 1)


async def test_a_line_that_never_ends_is_refused_long_before_the_limit(person: Person, model: Host):
    model.first, model.again, model.pause = HEAD + chunk(b"data: "), chunk(b"x" * 2**16), 0
    ran = await person.run("agent", "-m", "hi")
    assert re.sub(r" \(error \S+\)\n$", "", ran.err) == f"everloop: {TOO_LARGE}"
    assert (ran.status, ran.out, model.asked) == (1, "", 1)


async def test_a_client_that_asks_again_by_itself_after_failures_pays_once(hurried: Person, model: Host):
    gateway = await start(hurried, 0)
    client = openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=await new_token(hurried, "laptop"), max_retries=2)
    for count, name in enumerate(("everloop", "everloop/bare"), 1):
        with pytest.raises(openai.APIStatusError) as failed:
            await client.chat.completions.create(model=name, messages=[{"role": "user", "content": "hi"}])
        assert (failed.value.status_code, failed.value.code, model.asked) == (424, "answer_too_long", count)
        assert TOO_LONG[1:] in failed.value.message
    await client.close()
    await gateway.stop()


async def test_a_platforms_guest_is_told_that_there_is_no_answer_and_the_owner_why(hurried: Person, model: Host):
    gateway = await start(hurried, 0)
    headers = {"Authorization": f"Bearer {await new_token(hurried, 'laptop', '--platform', 'discord')}"}
    async with aiohttp.ClientSession(gateway.url, headers=headers) as client:
        said = {"platform": "discord", "platform_user_id": "7", "content": "hi"}
        async with client.post("/message", json=said) as answer:
            status, told = answer.status, (await answer.json())["error"]["code"]
        async with client.ws_connect("/ws") as wire:
            await wire.send_json({"type": "message", "id": "m1", "session": "api:mine", "content": "hi"})
            frame = await wire.receive_json(timeout=30)
            while "did not come to the end" not in str(frame):
                frame = await wire.receive_json(timeout=30)
    await gateway.stop()
    assert (status, told, TOO_LONG in str(frame), model.asked) == (424, "answer_too_long", True, 2)
