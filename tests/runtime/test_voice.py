"""Voice messages are read before their letter is committed; whatever becomes of that, the letter is taken, once."""

import asyncio
from contextlib import asynccontextmanager

import pytest

import everloop
from everloop.core.log import UserSaid
from everloop.core.prompt import Usage
from everloop.errors import ChannelDown
from everloop.ports import Deliver
from everloop.ports.budgets import Limit
from everloop.ports.channel import Delivered
from everloop.readings.spoken import spoken
from everloop.runtime.incoming_files import MOST_FILES, TRIES
from everloop.runtime.voice import opus_seconds
from everloop.testing import RecordingChannel, Say
from everloop.testing.model_server import ModelServer
from tests.providers.speech_server import SpeechServer
from tests.runtime.drafting import incoming

OGG = b"OggS\0\2" + bytes(8) + b"........\0OpusHead" + b"OggS\0\4" + (48_000 * 12).to_bytes(8, "little") + b"sound"
TOLD = {"text": "Buy milk", "usage": {"type": "duration", "seconds": 12}}


class Spoken(RecordingChannel):
    """A channel with voice messages."""

    def __init__(self, data: bytes = OGG) -> None:
        super().__init__("fake")
        self.listens: asyncio.Queue[Deliver] = asyncio.Queue()
        self.fetched = self.away = 0
        self._data = data

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.listens.put_nowait(deliver)

    async def fetch(self, ref: str, limit: int) -> tuple[str, bytes]:
        self.fetched += 1
        if self.fetched <= self.away:
            raise ChannelDown("the platform has no file for us")
        return "voice/file_1.oga", self._data


def voice(event: str = "e1", **more):
    return incoming(event, **{"text": "", "files": ("v",), "voice": ("v",), **more})


@asynccontextmanager
async def opened(tmp_path, channel: Spoken, server: SpeechServer | None = None, gather: float = 0, **voice: object):
    """An agent, its model, and how to hand in a message."""
    async with ModelServer(lambda shown: Say("ok"), models=("m",)) as model:
        settings = {
            "agents": {"defaults": {"model": "custom/m"}},
            "providers": {"custom": {"api_base": model.url, "api_key": "sk-canary"}},
            "voice": {"model": "whisper", "api_base": server.url, **voice} if server else {},
            "channels": {"fake": {"gather": gather}},
        }
        async with everloop.open(tmp_path / "home", settings, channels=[channel]) as agent:
            yield agent, model, await channel.listens.get()


async def said_in(agent) -> str:
    row = await agent.store.session("fake:room")
    entries = [written.entry for written in await agent.store.history(row.id, 0, 10)]
    return "".join(spoken(entry).text for entry in entries if isinstance(entry, UserSaid))


async def heard(tmp_path, server: SpeechServer | None = None, **voice_settings: object) -> str:
    """What the model is shown of a voice message."""
    channel = Spoken()
    async with opened(tmp_path, channel, server, **voice_settings) as (_, model, deliver):
        assert await deliver(voice()) == Delivered(fresh=True)
        await channel.sent(1)
        return model.prompts[0].asked


async def test_what_is_spoken_is_read_marked_and_counted(tmp_path):
    channel = Spoken()
    async with (
        SpeechServer(TOLD).open() as server,
        opened(tmp_path, channel, server, language="en", minute_price=0.6) as (agent, model, deliver),
    ):
        assert await deliver(voice()) == Delivered(fresh=True)
        await channel.sent(1)
        shown = model.prompts[0].asked
        spent = [row for row in await agent.store.spent() if row.purpose == "voice"]
    assert shown.startswith("[voice message, transcribed: Buy milk]")
    assert "file_1.oga, kept as file:" in shown
    assert [(row.model, row.calls, row.usage, row.cost) for row in spent] == [
        ("custom/whisper", 1, Usage(121), pytest.approx(0.12))
    ]
    fields = {"model": "whisper", "response_format": "json", "language": "en", "file": ("voice.ogg", OGG)}
    assert (server.asked, server.keys) == ([fields], [""])


async def test_a_message_that_is_handed_in_again_meanwhile_is_fetched_and_read_once(tmp_path):
    channel = Spoken()
    async with SpeechServer(TOLD).open() as server, opened(tmp_path, channel, server) as (_, _, deliver):
        came = await asyncio.gather(*(deliver(voice()) for _ in range(3)))
    assert sorted(each.fresh for each in came) == [False, False, True]
    assert (channel.fetched, len(server.asked)) == (1, 1)


async def test_a_voice_message_whose_caption_is_changed_is_paid_once_and_another_persons_again(tmp_path):
    channel = Spoken()
    async with SpeechServer(TOLD).open() as server, opened(tmp_path, channel, server, 5) as (_, _, deliver):
        came = [await deliver(voice(text="a"))]
        came += [await deliver(voice(f"e1/{n}", text=f"a{n}", replaces="e1")) for n in range(5)]
        once = len(server.asked)
        await deliver(voice("e2", account="bob", chat="bobs"))
    assert came == [Delivered()] * 6
    assert (once, len(server.asked)) == (1, 2)


async def test_a_message_that_nobody_can_read_is_taken_and_says_so(tmp_path):
    async with SpeechServer(400).open() as server:
        shown = await heard(tmp_path, server)
    assert shown.startswith("[a voice message came that could not be read (custom")
    assert "it is attached]" in shown
    assert "file_1.oga, kept as file:" in shown


async def test_without_a_model_for_it_a_message_is_taken_and_says_so(tmp_path):
    why = "nothing is set to transcribe it: voice.model"
    shown = await heard(tmp_path)
    assert shown.startswith(f"[a voice message came that could not be read ({why}); it is attached]")


@pytest.mark.parametrize("seconds", [11, 12])
async def test_what_is_longer_than_wanted_is_not_sent_to_anybody(tmp_path, seconds):
    async with SpeechServer(TOLD).open() as server:
        shown = await heard(tmp_path, server, max_seconds=seconds)
    assert (len(server.asked), "transcribed" in shown) == ((1, True) if seconds == 12 else (0, False))


@pytest.mark.parametrize(("limit", "asked"), [(Limit(tokens=100), 0), (Limit(tokens=1_000_000), 1)])
async def test_whoever_has_spent_their_budget_is_told_that_it_was_not_read(tmp_path, limit, asked):
    channel = Spoken()
    async with SpeechServer(TOLD).open() as server, opened(tmp_path, channel, server) as (agent, _, deliver):
        await agent.store.set_limit("fake:anna", "month", limit)
        await deliver(voice())
        await channel.sent(1)
        said = await said_in(agent)
        held = await agent.store.spending(("fake:anna",), ("",))
    assert (len(server.asked), "transcribed: Buy milk" in said) == (asked, bool(asked))
    assert ("could not be read (You have spent 0 of 100 tokens" in said) == (not asked)
    assert [(row.tokens > 120, row.held_tokens) for row in held] == [(True, 0)] * asked


async def test_a_file_that_is_never_to_be_had_does_not_hold_up_its_message_for_ever(tmp_path):
    channel = Spoken()
    channel.away = 99
    async with opened(tmp_path, channel) as (_, model, deliver):
        came = []
        for _ in range(TRIES):
            came += await asyncio.gather(deliver(voice(text="hear")), return_exceptions=True)
        await channel.sent(1)
        shown = model.prompts[0].asked
    assert [type(each) for each in came] == [ChannelDown] * (TRIES - 1) + [Delivered]
    assert "[files came along that cannot be had: the platform has no file for us]" in shown


async def test_more_files_than_are_taken_are_told_of(tmp_path):
    channel = Spoken(b"text")
    async with opened(tmp_path, channel) as (_, model, deliver):
        await deliver(incoming("e1", files=tuple(f"f{n}" for n in range(MOST_FILES + 2))))
        await channel.sent(1)
        shown = model.prompts[0].asked
    assert channel.fetched == MOST_FILES
    assert "[2 more files came along; at most 20 are taken]" in shown


def test_how_long_a_voice_message_is_stands_in_its_last_page():
    assert [opus_seconds(data) for data in (OGG, OGG[:-15], b"OggS", b"", b"RIFF", OGG.replace(b"Opus", b"Vorb"))] == [
        12.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
    ]
