"""A channel in front of a Slack on loopback, for tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from everloop.channels.slack import check_settings
from everloop.channels.slack.codec import SlackPlace, written
from everloop.channels.slack.wire import SlackChannel
from everloop.core.mail import Address
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import Delivered, Incoming, OutgoingPart
from everloop.testing.slack_server import SlackServer
from everloop.testing.slack_workspace import TEAM
from tests.channels.slack.platform import CHAT, settings_of


@asynccontextmanager
async def open_slack(**settings: object) -> AsyncIterator[tuple[SlackServer, SlackChannel]]:
    http = TrustedHttp()
    async with SlackServer(again=30.0) as slack:
        slack.echoes = False
        try:
            yield slack, SlackChannel(check_settings(settings_of(slack, **settings)), http)
        finally:
            await http.close()


def part(text: str = "hello", chat: str = CHAT, thread: str = "", **more: object) -> OutgoingPart:
    return OutgoingPart(**{"key": "reply:t:3", "address": Address("slack", chat, thread), "text": text, **more})


def reply_to(chat: str, thread: str = "", ts: str = "1.0", user: str = "U0ANNA"):
    return written(SlackPlace(chat, ts, thread, user, TEAM))


class Heard:
    """A Deliver that keeps what it is given."""

    def __init__(self, *errors: Exception) -> None:
        self.all: list[Incoming] = []
        self.refused = ""
        self._errors = [*errors]

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        if self._errors:
            raise self._errors.pop(0)
        fresh = incoming.event not in {each.event for each in self.all}
        self.all.append(incoming)
        return Delivered(fresh, self.refused)

    async def skip_to(self, resume: str) -> None:
        raise AssertionError("nothing is skipped")
