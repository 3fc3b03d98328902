"""What is spoken into the page, as text: by whoever is set to transcribe, at the expense of who speaks, and bounded."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientSession

from everloop.app import serve
from everloop.gateway.api.speech import LARGEST
from everloop.testing.model_server import ModelServer
from tests.gateway.conftest import Door
from tests.providers.speech_server import SpeechServer

SOUND = b"\x1a\x45\xdf\xa3 and some sound"
TOLD = {"text": "Buy milk", "usage": {"type": "duration", "seconds": 12}}


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
    assert (standing, first) == ({"seconds": 600}, (200, {"text": "Buy milk"}))
    assert (again, len(server.asked)) == (first, 1)  # the same sounds are not paid twice
    assert server.asked[0]["file"] == ("voice.webm", SOUND)
    assert "voice" in str(spent)


async def test_where_nobody_transcribes_that_is_said(tmp_path):
    async with speaking(tmp_path, None) as (_, client):
        standing = await (await client.get("/api/speech")).json()
        status, told = await post(client, SOUND)
    assert (standing, status) == ({"seconds": 0}, 409)
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
