"""What was said while nobody listened is found, and answered once."""

import asyncio
from itertools import count

import pytest

from everloop.channels.slack import check_settings
from everloop.channels.slack.wire import SlackChannel
from everloop.errors import ChannelDown
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import Delivered, Incoming
from everloop.testing.slack_server import SlackFault, SlackServer
from tests.channels.slack.platform import settings_of

GENERAL = "C0GENERAL"
FIRST = "1790000001.000001"  # of the fake's own time
NOW = 1_790_000_001.0


class Kept:
    """A Deliver that keeps what it is given, and where to go on."""

    def __init__(self) -> None:
        self.all: list[Incoming] = []
        self.resumes: list[str] = []

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        self.all.append(incoming)
        self.resumes.append(resume)
        return Delivered()

    async def skip_to(self, resume: str) -> None:
        raise AssertionError("nothing is skipped")


async def listen(slack: SlackServer, kept: Kept, resume: str, now: float, mode: str = "events") -> None:
    """In the mode of events `run` ends when it has caught up."""
    http = TrustedHttp()
    try:
        await SlackChannel(check_settings(settings_of(slack, mode=mode)), http, lambda: now).run(kept, resume)
    finally:
        await http.close()


def all_said(slack: SlackServer) -> None:
    slack.workspace.stamp()  # the message that was the last to be taken in
    slack.miss("one")
    slack.workspace.chats["D0ANNA"]["9.9"] = {"type": "message", "ts": "9.9", "user": "U0ANNA", "text": "long ago"}
    first = slack.miss("<@U0BOT> two", chat=GENERAL)
    slack.miss("three", chat=GENERAL, thread_ts=first)
    slack.miss("ours", user="U0BOT", chat=GENERAL, bot_id="B0BOT", thread_ts=first)
    slack.miss("four", user="U0BEN", chat="G0PRIVATE")


async def test_after_a_while_away_what_was_missed_is_found():
    async with SlackServer() as slack:
        all_said(slack)
        kept = Kept()
        await listen(slack, kept, FIRST, NOW + 3600)
        assert [(each.chat, each.text, each.direct, each.name) for each in kept.all] == [
            ("D0ANNA", "one", True, "Anna"), (GENERAL, "two", False, "Anna"), (GENERAL, "three", False, "Anna"),
            ("G0PRIVATE", "four", False, "Ben"),
        ]  # fmt: skip
        assert [(each.mentioned, each.server) for each in kept.all[:2]] == [(False, "T0TEAM"), (True, "T0TEAM")]
        assert kept.resumes == [""] * 4


@pytest.mark.parametrize("resume, now", [("", NOW + 3600), (FIRST, NOW + 60), (FIRST, NOW + 200_000), ("x", NOW)])
async def test_at_first_after_a_moment_or_after_days_nobody_looks_for_it(resume, now):
    async with SlackServer() as slack:
        all_said(slack)
        kept = Kept()
        await listen(slack, kept, resume, now)
        assert kept.all == []


async def test_slack_says_how_long_to_wait_and_what_it_does_not_show_is_left():
    async with SlackServer() as slack:
        all_said(slack)
        kept = Kept()
        slack.fail("conversations.history", SlackFault(429, retry_after=0.01), SlackFault(429, retry_after=0.01))
        await listen(slack, kept, FIRST, NOW + 3600)
        assert len(kept.all) == 4
        slack.fail("users.conversations", SlackFault(error="missing_scope"))
        await listen(slack, Kept(), FIRST, NOW + 3600)


async def test_a_search_that_breaks_off_is_begun_again_where_it_was():
    async with SlackServer() as slack:
        all_said(slack)
        slack.fail("conversations.history", SlackFault(503))
        with pytest.raises(ChannelDown):
            await listen(slack, Kept(), FIRST, NOW + 3600)


async def test_where_to_go_on_is_told_now_and_then_and_not_before_all_was_found():
    async with SlackServer() as slack:
        slack.echoes = False
        kept, gate = Kept(), asyncio.Event()
        slack.miss("missed")

        class Slow(Kept):
            async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
                if incoming.text == "missed":
                    await gate.wait()
                return await kept(incoming, resume)

        task = asyncio.ensure_future(listen(slack, Slow(), "1790000000.5", NOW + 3600, "socket"))
        await slack.linked()
        await slack.until(lambda: any(method == "conversations.history" for method, _ in slack.calls))
        await slack.acknowledged(await slack.say("early"))
        gate.set()
        await slack.until(lambda: [method for method, _ in slack.calls].count("conversations.history") == 3)
        numbers = count(1_790_000_100, 100)
        while not kept.resumes[-1]:  # the search ends a moment after its last question
            await slack.acknowledged(await slack.say("when?", stamp=f"{next(numbers)}.000001"))
        at = float(kept.resumes[-1])
        for later in (30, 61):
            await slack.acknowledged(await slack.say("later", stamp=f"{at + later:.6f}"))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        told = [(each.text, resume) for each, resume in zip(kept.all, kept.resumes, strict=True)]
        assert {("early", ""), ("missed", "")} <= {*told}
        assert told[-2:] == [("later", ""), ("later", f"{at + 61:.6f}")]
