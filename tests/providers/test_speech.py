"""Text as speech over real connections: asked as the vendor's own client asks, and without a word of a key."""

import openai
import pytest
from tests.providers.speech_server import SpeechServer

from everloop.core.prompt import Usage
from everloop.errors import BadRequest, HostFailed, KeyRefused, ModelMissing
from everloop.net.trusted import TrustedHttp
from everloop.ports.voice import Sound
from everloop.providers.catalog import HOSTS
from everloop.providers.choose import Choice
from everloop.providers.speech import HostSpeechMaker

KEY = "sk-canary-speech"
MP3 = b"ID3 and some sound"


@pytest.fixture
async def http():
    http = TrustedHttp()
    yield http
    await http.close()


def maker(server: SpeechServer, http, **more) -> HostSpeechMaker:
    choice = Choice(HOSTS["openai"], "gpt-4o-mini-tts", server.url, KEY)
    return HostSpeechMaker(choice, http, **{"voice": "alloy", "format": "mp3", "longest": 5000, **more})


async def test_a_host_is_asked_as_the_vendors_own_client_asks_it(http):
    async with SpeechServer(MP3).open() as server, openai.AsyncOpenAI(base_url=server.url, api_key=KEY) as vendor:
        theirs = await vendor.audio.speech.create(
            input="Grüß dich.", model="gpt-4o-mini-tts", voice="alloy", response_format="mp3"
        )
        ours = await maker(server, http).speak("Grüß dich.")
    assert (ours, theirs.content) == (Sound(MP3, "audio/mpeg"), MP3)
    assert server.asked[1] == server.asked[0]
    assert server.keys == [f"Bearer {KEY}"] * 2


@pytest.mark.parametrize(("status", "kind"), [(401, KeyRefused), (400, BadRequest), (500, HostFailed)])
async def test_a_refusal_is_told_without_the_key(http, status, kind):
    async with SpeechServer(status).open() as server:
        with pytest.raises(kind) as raised:
            await maker(server, http).speak("Hello.")
    assert KEY not in f"{raised.value!r} {raised.value.__cause__!r}"


async def test_what_passes_is_tried_once_more_and_what_is_no_sound_is_told(http):
    async with SpeechServer(503, MP3, {"ok": True}, b"").open() as server:
        host = maker(server, http, format="wav")
        assert await host.speak("Hello.") == Sound(MP3, "audio/wav")
        for _ in range(2):
            with pytest.raises(HostFailed, match="no sound"):
                await host.speak("Hello.")
    assert len(server.asked) == 4


def test_a_host_that_does_not_speak_is_refused(http):
    with pytest.raises(ModelMissing, match="anthropic reads nothing aloud"):
        HostSpeechMaker(Choice(HOSTS["anthropic"], "m"), http, voice="v", format="mp3", longest=1)


async def test_what_it_costs_is_told_by_the_million_characters_or_by_tokens_or_not_at_all(http):
    server, used = SpeechServer(MP3), Usage(30, 4)
    makers = [maker(server, http, **more) for more in ({}, {"cost": lambda usage: 0.03}, {"million": 15.0})]
    assert [each.price(used, 2000) for each in makers] == [None, 0.03, 0.03]
