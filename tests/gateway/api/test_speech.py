"""What is spoken into the page, as text, and answers, read aloud: by whoever is set for it, at the expense of who asks,
and bounded."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

import everloop
from everloop.app import serve
from everloop.gateway.api.speech import LARGEST
from everloop.testing import Say
from everloop.testing.model_server import ModelServer
from tests.gateway.conftest import Door
from tests.providers.speech_server import SpeechServer

SOUND = b"\x1a\x45\xdf\xa3 and some sound"
TOLD = {"text": "Buy milk", "usage": {"type": "duration", "seconds": 12}}
MP3 = b"ID3 and some sound"
LONG = "# A story\n\n" + "Once there was a cow of many words. " * 30


@asynccontextmanager
async def speaking(folder: Path, server: SpeechServer | None, **more: Any) -> AsyncIterator[tuple[Door, ClientSession]]:
    async with ModelServer([]) as model:
        settings = {
            "agents": {"defaults": {"model": "custom/scripted"}},
            "providers": {"custom": {"api_base": model.url, "api_key": "any"}},
            "gateway": {"port": 0},
            "voice": {"model": "whisper", "api_base": server.url, **more} if server else {},
        }
        async with serve(folder / "home", settings) as gateway:
            door = Door(folder / "home", gateway.url, gateway.link)
            async with door.client(await door.token("read", "chat")) as client:
                yield door, client


async def post(client, data: bytes) -> tuple[int, dict[str, Any]]:
    async with client.post("/api/speech/transcribe", data=data) as answer:
        return answer.status, await answer.json()


async def test_what_is_spoken_comes_back_as_text_and_is_counted(tmp_path):
    async with SpeechServer(TOLD).open() as server, speaking(tmp_path, server, minute_price=0.6) as (_, client):
        standing = await (await client.get("/api/speech")).json()
        first, again = await post(client, SOUND), await post(client, SOUND)
        spent = await (await client.get("/api/usage")).json()
    assert (standing, first) == ({"seconds": 600, "characters": 0}, (200, {"text": "Buy milk"}))
    assert (again, len(server.asked)) == (first, 1)  # the same sounds are not paid twice
    assert server.asked[0]["file"] == ("voice.webm", SOUND)
    assert "voice" in str(spent)


async def test_where_nobody_transcribes_that_is_said(tmp_path):
    async with speaking(tmp_path, None) as (_, client):
        standing = await (await client.get("/api/speech")).json()
        status, told = await post(client, SOUND)
    assert (standing, status) == ({"seconds": 0, "characters": 0}, 409)
    why = "What was spoken could not be transcribed: nothing is set to transcribe it: voice.model."
    assert told["error"] == {"code": "refused", "message": why}


async def test_a_host_that_fails_and_a_recording_that_is_too_long_are_told(tmp_path):
    async with SpeechServer(401).open() as server, speaking(tmp_path, server, max_seconds=5) as (_, client):
        failed, long = await post(client, SOUND), await post(client, bytes(4000 * 6))
    assert (failed[0], long[0]) == (409, 409)
    assert "5 seconds" in long[1]["error"]["message"]


async def test_a_recording_has_an_end_and_a_beginning(tmp_path):
    async with SpeechServer(TOLD).open() as server, speaking(tmp_path, server) as (_, client):
        large, empty = await post(client, bytes(LARGEST + 1)), await post(client, b"")
    assert (large[0], empty[0], server.asked) == (413, 400, [])


async def test_a_token_that_may_only_read_hears_nothing(tmp_path):
    async with (
        SpeechServer(TOLD).open() as server,
        speaking(tmp_path, server) as (door, _),
        door.client(await door.token("read")) as client,
    ):
        status, _ = await post(client, SOUND)
    assert (status, server.asked) == (403, [])


@asynccontextmanager
async def answered(folder: Path, server: SpeechServer | None, answer: str = "It is **two** euros.", **more: Any):
    """The gateway, a client, and where the one answer of a conversation stands."""
    async with ModelServer(lambda shown: Say(answer)) as model:
        settings = {
            "agents": {"defaults": {"model": "custom/scripted"}},
            "providers": {"custom": {"api_base": model.url, "api_key": "any"}},
            "gateway": {"port": 0},
            "speech": {"model": "tts", "api_base": server.url, **more} if server else {},
        }
        async with everloop.open(folder / "home", settings) as agent:
            await agent.ask("How much?")
        async with serve(folder / "home", settings) as gateway:
            door = Door(folder / "home", gateway.url, gateway.link)
            async with door.client(await door.token("read", "chat")) as client:
                thread = (await (await client.get("/api/sessions")).json())["sessions"][0]["id"]
                entries = (await (await client.get(f"/api/sessions/{thread}/entries")).json())["entries"]
                yield door, client, thread, {each["kind"]: each["seq"] for each in entries}


async def listen(client, thread: str, seq: int, part: int = 0) -> tuple[int, str, bytes]:
    async with client.post(f"/api/sessions/{thread}/speech", json={"seq": seq, "part": part}) as answer:
        return answer.status, answer.headers.get("Everloop-Parts", ""), await answer.read()


async def test_an_answer_is_read_aloud_paid_once_and_counted(tmp_path):
    async with (
        SpeechServer(MP3).open() as server,
        answered(tmp_path, server, voice="nova", million_price=15) as (_, client, thread, seq),
    ):
        standing = await (await client.get("/api/speech")).json()
        both = await asyncio.gather(*(listen(client, thread, seq["model_said"]) for _ in range(2)))
        again = await listen(client, thread, seq["model_said"])
        spent = await (await client.get("/api/usage")).json()
    assert standing == {"seconds": 0, "characters": 5000}
    assert [*both, again] == [(200, "1", MP3)] * 3
    asked = {"input": "It is two euros.", "model": "tts", "voice": "nova", "response_format": "mp3"}
    assert (server.asked, server.keys) == ([asked], [""])
    spoken = next(row for row in spent["rows"] if row["purpose"] == "speech")
    assert (spoken["model"], spoken["calls"], spoken["cost"]) == ("custom/tts", 1, pytest.approx(16 * 15 / 1_000_000))


async def test_a_long_answer_is_read_in_parts_that_are_paid_as_they_are_heard_up_to_a_limit(tmp_path):
    async with (
        SpeechServer(MP3).open() as server,
        answered(tmp_path, server, LONG, max_characters=500) as (_, client, thread, seq),
    ):
        first = await listen(client, thread, seq["model_said"])
        heard = len(server.asked)
        rest = [await listen(client, thread, seq["model_said"], part) for part in (1, 2)]
    assert (first, heard) == ((200, "2", MP3), 1)
    assert [status for status, _, _ in rest] == [200, 404]
    texts = [each["input"] for each in server.asked]
    assert (texts[0].startswith("A story."), texts[1].endswith("words.\nThe rest is not read aloud.")) == (True, True)
    assert (len(texts[0]) <= 300, len(texts[0] + texts[1]) < 540) == (True, True)


async def test_only_an_answer_is_read_and_only_to_who_may_read_it(tmp_path):
    async with (
        SpeechServer(MP3).open() as server,
        answered(tmp_path, server) as (door, client, thread, seq),
        door.client(await door.token("chat")) as blind,
    ):
        refused = [
            await listen(client, thread, seq["user_said"]),
            await listen(client, thread, 999),
            await listen(client, "0" * 32, seq["model_said"]),
            await listen(blind, thread, seq["model_said"]),
        ]
    assert ([status for status, _, _ in refused], server.asked) == ([404, 404, 404, 403], [])


async def test_whoever_has_spent_their_budget_hears_nothing_and_is_told_why(tmp_path):
    async with (
        SpeechServer(MP3).open() as server,
        answered(tmp_path, server) as (door, client, thread, seq),
    ):
        async with door.client(await door.token("read", "chat", "admin")) as admin:
            limit = {"per": "month", "tokens": 5}
            assert (await admin.put("/api/users/owner/budget", json=limit)).status == 200
        status, _, told = await listen(client, thread, seq["model_said"])
    assert (status, b"tokens" in told, server.asked) == (409, True, [])


async def test_where_nobody_reads_aloud_or_the_host_refuses_that_is_said(tmp_path):
    async with answered(tmp_path / "a", None) as (_, client, thread, seq):
        nobody = await listen(client, thread, seq["model_said"])
    async with SpeechServer(401).open() as server, answered(tmp_path / "b", server) as (_, client, thread, seq):
        failed = await listen(client, thread, seq["model_said"])
    assert (nobody[0], failed[0]) == (409, 409)
    assert (b"speech.model" in nobody[2], b"could not be read aloud" in failed[2]) == (True, True)
