"""Speech as text over real connections: asked as the vendor's own client asks, and without a word of a key."""

import openai
import pytest
from tests.providers.speech_server import SpeechServer

from everloop.core.prompt import Usage
from everloop.errors import BadRequest, HostFailed, KeyRefused, ModelMissing
from everloop.net.trusted import TrustedHttp
from everloop.ports.voice import Speech
from everloop.providers.catalog import HOSTS
from everloop.providers.choose import Choice
from everloop.providers.transcription import HostTranscriber, SpeechPrice, file_name

KEY = "sk-canary-speech"
OGG = b"OggS and some sound"
TOLD = {"text": " Hello there. ", "usage": {"type": "tokens", "input_tokens": 30, "output_tokens": 4}}


@pytest.fixture
async def http():
    http = TrustedHttp()
    yield http
    await http.close()


def transcriber(server: SpeechServer, http, **more) -> HostTranscriber:
    choice = Choice(HOSTS["openai"], "whisper-1", server.url, KEY)
    return HostTranscriber(choice, http, **{"longest": 60, "price": SpeechPrice(), **more})


async def test_a_host_is_asked_as_the_vendors_own_client_asks_it(http):
    async with SpeechServer(TOLD).open() as server, openai.AsyncOpenAI(base_url=server.url, api_key=KEY) as vendor:
        await vendor.audio.transcriptions.create(
            file=("voice.ogg", OGG), model="whisper-1", response_format="json", language="en"
        )
        found = await transcriber(server, http, language="en").transcribe(OGG, "a name.oga")
    assert found == Speech("Hello there.", Usage(30, 4))
    assert server.asked[1] == server.asked[0]
    assert server.keys == [f"Bearer {KEY}"] * 2


async def test_how_long_it_was_is_read_from_either_place(http):
    answers = [{"text": "a", "usage": {"type": "duration", "seconds": 7}}, {"text": "b", "duration": 3.5}]
    async with SpeechServer(*answers).open() as server:
        host = transcriber(server, http)
        found = [await host.transcribe(OGG, "") for _ in range(2)]
    assert found == [Speech("a", seconds=7), Speech("b", seconds=3.5)]


@pytest.mark.parametrize(("status", "kind"), [(401, KeyRefused), (400, BadRequest), (500, HostFailed)])
async def test_a_refusal_is_told_without_the_key(http, status, kind):
    async with SpeechServer(status).open() as server:
        with pytest.raises(kind) as raised:
            await transcriber(server, http).transcribe(OGG, "")
    assert KEY not in f"{raised.value!r} {raised.value.__cause__!r}"


async def test_what_passes_is_tried_once_more_and_what_is_no_transcript_is_told(http):
    async with SpeechServer(503, TOLD, {"texts": []}).open() as server:
        host = transcriber(server, http)
        assert (await host.transcribe(OGG, "")).text == "Hello there."
        with pytest.raises(HostFailed, match="no transcript"):
            await host.transcribe(OGG, "")
    assert len(server.asked) == 3


def test_a_host_that_does_not_transcribe_is_refused(http):
    with pytest.raises(ModelMissing, match="anthropic transcribes nothing"):
        HostTranscriber(Choice(HOSTS["anthropic"], "m"), http, longest=1, price=SpeechPrice())


def test_a_file_is_named_by_what_it_is_and_by_nothing_of_its_senders_own():
    names = [
        (OGG, "x.mp3"),
        (b"RIFF....", 'a"\r\nb'),
        (b"\0\0\0\x20ftypM4A", ""),
        (b"?", "x.AMR"),
        (b"?", 'x.m"p3'),
    ]
    assert [file_name(*each) for each in names] == [
        "voice.ogg",
        "voice.wav",
        "voice.m4a",
        "voice.amr",
        "voice.mp3",
    ]


def test_what_it_costs_is_told_by_the_minute_or_by_tokens_or_not_at_all():
    by_tokens = SpeechPrice(lambda usage: usage.input / 1000)
    prices = [SpeechPrice(), by_tokens, SpeechPrice(by_tokens.of_tokens, minute=0.6)]
    assert [price.of(Usage(30, 4), 20.0) for price in prices] == [None, 0.03, pytest.approx(0.2)]
    assert by_tokens.of(Usage(), 20.0) is None
