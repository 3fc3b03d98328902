"""Telegram is a channel like any other, whether we fetch what is said or are called with it."""

from pathlib import Path

import pytest

import everloop
from everloop.testing.abilities import ABILITIES
from everloop.testing.conformance import CHECKS, Trial
from tests.channels.telegram.stand import TelegramCalls, TelegramInGroup, stand


@pytest.mark.parametrize("name", CHECKS)
async def test_it_is_a_channel(name: str, tmp_path: Path):
    async with stand() as platform:
        await CHECKS[name](Trial(platform, tmp_path / "home", everloop.open))


@pytest.mark.parametrize("name", CHECKS)
async def test_it_is_a_channel_when_it_is_called(name: str, tmp_path: Path):
    async with stand(TelegramCalls) as platform:
        await CHECKS[name](Trial(platform, tmp_path / "home", everloop.open))


@pytest.mark.parametrize("name", ["a draft becomes the answer", "what was sent can be changed", "files arrive whole"])
async def test_it_can_do_in_a_group_what_it_says(name: str, tmp_path: Path):
    async with stand(TelegramInGroup) as platform:
        await ABILITIES[name](Trial(platform, tmp_path / "home", everloop.open))
