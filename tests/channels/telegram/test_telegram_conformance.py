"""Telegram is a channel like any other, whether we fetch what is said or are called with it."""

from pathlib import Path

import pytest

import everloop
from everloop.testing.abilities import ABILITIES
from everloop.testing.conformance import CHECKS, Trial
from tests.channels.telegram.stand import TelegramCalls, TelegramInGroup, stand
from tests.effort import in_full


@pytest.mark.parametrize("name", CHECKS)
async def test_it_is_a_channel(name: str, tmp_path: Path):
    async with stand() as platform:
        await CHECKS[name](Trial(platform, tmp_path / "home", everloop.open))


CALLED = (  # what is heard in another way; what is sent is the same
    "each message is answered once",
    "the same event is one message",
    "it goes on where it was",
    "what is not committed is not acknowledged",
    "what is forged is refused",
    "files are fetched",
)


@pytest.mark.shortened
@pytest.mark.parametrize("name", in_full((*CHECKS,), CALLED))
async def test_it_is_a_channel_when_it_is_called(name: str, tmp_path: Path):
    async with stand(TelegramCalls) as platform:
        await CHECKS[name](Trial(platform, tmp_path / "home", everloop.open))


@pytest.mark.parametrize("name", ["a draft becomes the answer", "what was sent can be changed", "files arrive whole"])
async def test_it_can_do_in_a_group_what_it_says(name: str, tmp_path: Path):
    async with stand(TelegramInGroup) as platform:
        await ABILITIES[name](Trial(platform, tmp_path / "home", everloop.open))
