"""Slack is a channel like any other, over a socket and by events that are posted."""

import pytest

import everloop
from everloop.testing.abilities import ABILITIES
from everloop.testing.conformance import CHECKS, Trial
from everloop.testing.slack_server import SlackServer
from tests.channels.slack.platform import SlackPlatform


@pytest.mark.parametrize("mode", ["socket", "events"])
@pytest.mark.parametrize("name", CHECKS)
async def test_it_is_a_channel(name, mode, tmp_path):
    async def post(headers, body) -> int:
        return await platform.post(headers, body)

    async with SlackServer(post=post if mode == "events" else None, again=0.2) as slack:
        slack.echoes = mode == "socket"
        platform = SlackPlatform(slack, mode, drafts=name in ABILITIES)
        try:
            await CHECKS[name](Trial(platform, tmp_path / "home", everloop.open))
        finally:
            await platform.close()
