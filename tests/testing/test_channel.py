"""The recording channel: what it is (idempotent or blind) and what happens to it."""

from pathlib import Path

import pytest

from everloop.core.mail import Address
from everloop.errors import ChannelDown
from everloop.ports import Channel
from everloop.ports.channel import Manifest, OutgoingPart, Traits
from everloop.testing import AckLost, Limited, RecordingChannel, Trouble, sends_in


def part(key: str = "k1", text: str = "hello") -> OutgoingPart:
    return OutgoingPart(key=key, address=Address("fake", "chat"), text=text)


def test_it_is_a_channel():
    channel: Channel = RecordingChannel()
    assert channel.manifest == Manifest("fake", Traits(once=True))


async def test_it_remembers_what_was_sent():
    channel = RecordingChannel()
    receipt = await channel.send(part())
    (sent,) = channel.delivered
    assert (sent.key, sent.chat, sent.text, sent.kind, sent.receipt) == ("k1", "fake:chat", "hello", "reply", receipt)


async def test_an_idempotent_platform_shows_a_second_send_of_a_key_to_nobody():
    channel = RecordingChannel()
    assert await channel.send(part()) == await channel.send(part())
    assert (len(channel.delivered), len(channel.repeats), channel.attempts) == (1, 1, 2)


async def test_a_blind_platform_shows_it_twice():
    channel = RecordingChannel(once=False)
    assert await channel.send(part()) != await channel.send(part())
    assert (len(channel.delivered), len(channel.repeats)) == (2, 0)


async def test_a_lost_acknowledgement_is_a_delivery_all_the_same():
    channel = RecordingChannel()
    channel.trouble(Trouble.ACK_LOST, times=1)
    with pytest.raises(AckLost):
        await channel.send(part())
    await channel.send(part())
    assert (len(channel.delivered), len(channel.repeats)) == (1, 1)


@pytest.mark.parametrize("trouble, error", [(Trouble.DOWN, ChannelDown), (Trouble.LIMITED, Limited)])
async def test_a_platform_that_refuses_delivers_nothing_until_the_trouble_ends(
    trouble: Trouble, error: type[Exception]
):
    channel = RecordingChannel()
    channel.trouble(trouble)
    for _ in range(2):
        with pytest.raises(error):
            await channel.send(part())
    channel.trouble(None)
    await channel.send(part())
    assert (len(channel.sends), channel.attempts) == (1, 3)


async def test_the_platform_outlives_the_process(tmp_path: Path):
    path = tmp_path / "sends"
    receipt = await RecordingChannel(path=path).send(part())
    after_restart = RecordingChannel(path=path)
    assert await after_restart.send(part()) == receipt
    assert (len(after_restart.delivered), len(after_restart.repeats)) == (1, 1)
    assert [sent.key for sent in sends_in(path)] == ["k1", "k1"]


async def test_a_test_can_wait_for_sends():
    channel = RecordingChannel()
    await channel.send(part())
    await channel.tried(1)
    await channel.sent(1)
