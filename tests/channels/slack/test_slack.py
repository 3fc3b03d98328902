"""Slack is a channel like any other, over a socket and by events that are posted."""

import pytest

import everloop
from everloop.testing.abilities import ABILITIES
from everloop.testing.conformance import CHECKS, Trial
from everloop.testing.slack_server import SlackServer
from tests.channels.slack.platform import SlackPlatform

# What is sent is sent in the same way, however it was heard.
HEARD = [
    "each message is answered once",
    "the same event is one message",
    "it goes on where it was",
    "what is not committed is not acknowledged",
    "what is forged is refused",
    "files are fetched",
]


@pytest.mark.parametrize("name, mode", [*((name, "socket") for name in CHECKS), *((name, "events") for name in HEARD)])
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
