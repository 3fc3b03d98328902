"""Discord is a channel as any other."""

import pytest

import everloop
from everloop.testing.conformance import CHECKS, Trial
from tests.channels.discord.platform import DiscordPlatform, discord


@pytest.mark.parametrize("name", CHECKS)
async def test_it_is_a_channel(name, tmp_path):
    async with discord() as (server, http):
        server.remembers = False
        platform = DiscordPlatform(server, http, drafts=name == "a draft becomes the answer")
        await CHECKS[name](Trial(platform, tmp_path / "home", everloop.open))
