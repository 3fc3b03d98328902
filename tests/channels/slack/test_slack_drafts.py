"""Drafts in Slack: streams in threads, messages elsewhere, and how each becomes the answer."""

import pytest

from everloop.core.mail import Address
from everloop.errors import ChannelDown
from everloop.testing.slack_server import SlackFault
from tests.channels.slack.open import open_slack, part, reply_to

GENERAL = "C0GENERAL"
THREAD = Address("slack", GENERAL, "1.0")
CHANNEL_THREAD = reply_to(GENERAL, "1.0")


async def test_in_a_thread_a_draft_is_a_stream_and_becomes_the_answer():
    async with open_slack() as (slack, channel):
        shown = await channel.preview(THREAD, "", "**Hel", CHANNEL_THREAD)
        again = await channel.preview(THREAD, shown, "**Hello** you", CHANNEL_THREAD)
        assert (again, slack.workspace.shown(GENERAL)) == (shown, ["**Hello** you"])
        receipt = await channel.send(part("*Hello* you.", GENERAL, "1.0", draft=shown))
        [message] = slack.workspace.chats[GENERAL].values()
        assert (message["text"], message["streaming"], receipt) == (
            "*Hello* you.", False, f"{GENERAL}:{message['ts']}",
        )  # fmt: skip
        [started] = [given for method, given in slack.calls if method == "chat.startStream"]
        assert (started["recipient_user_id"], started["recipient_team_id"]) == ("U0ANNA", "T0TEAM")


@pytest.mark.parametrize(
    "draft, answer, updates",
    [
        ("It is done", "It is done.", 0),
        ("It is done", "It is done", 0),
        ("It is", "It *is* done", 1),
        ("It", "It is &lt;done&gt;", 1),
        ("It was", "It is done", 1),
        ("It is", "It is\nhttps://x.example", 1),
    ],
)
async def test_a_stream_ends_as_it_began_where_markup_makes_no_difference(draft, answer, updates):
    async with open_slack() as (slack, channel):
        for address, to in ((THREAD, CHANNEL_THREAD), (Address("slack", "D0ANNA"), reply_to("D0ANNA"))):
            shown = await channel.preview(address, "", draft, to)
            await channel.send(part(answer, address.chat, address.thread, draft=shown))
            assert slack.workspace.shown(address.chat) == [answer]
        changes = [given["channel"] for method, given in slack.calls if method == "chat.update"]
        assert (changes.count(GENERAL), changes.count("D0ANNA")) == (updates, int(draft != answer))


async def test_a_stream_whose_end_is_lost_is_the_answer_all_the_same():
    async with open_slack() as (slack, channel):
        shown = await channel.preview(THREAD, "", "It is", CHANNEL_THREAD)
        slack.fail("chat.stopStream", SlackFault(arrives=True, cut=True))
        with pytest.raises(ChannelDown):
            await channel.send(part("It is done", GENERAL, "1.0", draft=shown))
        await channel.send(part("It is done", GENERAL, "1.0", draft=shown))
        assert slack.workspace.shown(GENERAL) == ["It is done"]


@pytest.mark.parametrize("gone", ["message_not_in_streaming_state", "stopped_by_user", "something_new"])
async def test_a_stream_that_slack_has_ended_goes_on_as_a_message(gone):
    async with open_slack() as (slack, channel):
        shown = await channel.preview(THREAD, "", "one", CHANNEL_THREAD)
        slack.fail("chat.appendStream", SlackFault(error=gone))
        shown = await channel.preview(THREAD, shown, "one two", CHANNEL_THREAD)
        assert (shown.split()[0], slack.workspace.shown(GENERAL)) == ("message", ["one two"])
        await channel.send(part("one two three", GENERAL, "1.0", draft=shown))
        assert slack.workspace.shown(GENERAL) == ["one two three"]


async def test_a_draft_that_begins_anew_is_changed():
    async with open_slack() as (slack, channel):
        shown = await channel.preview(THREAD, "", "one", CHANNEL_THREAD)
        shown = await channel.preview(THREAD, shown, "another *thing*", CHANNEL_THREAD)
        assert slack.workspace.shown(GENERAL) == ["another _thing_"]


async def test_where_slack_does_not_stream_a_draft_is_a_message_and_it_is_not_asked_again():
    async with open_slack() as (slack, channel):
        slack.fail("chat.startStream", SlackFault(error="channel_type_not_supported"))
        for text in ("one", "two"):
            await channel.preview(THREAD, "", text, CHANNEL_THREAD)
        direct = await channel.preview(Address("slack", "D0ANNA"), "", "**three", reply_to("D0ANNA"))
        direct = await channel.preview(Address("slack", "D0ANNA"), direct, "**three** four", reply_to("D0ANNA"))
        streams = [given for method, given in slack.calls if method == "chat.startStream"]
        shown = (slack.workspace.shown(GENERAL), slack.workspace.shown("D0ANNA"))
        assert (shown, len(streams)) == ((["one", "two"], ["*three* four"]), 1)


async def test_a_draft_is_taken_away():
    async with open_slack() as (slack, channel):
        for address, to in ((THREAD, CHANNEL_THREAD), (Address("slack", "D0ANNA"), reply_to("D0ANNA"))):
            shown = await channel.preview(address, "", "one", to)
            assert await channel.preview(address, shown, "", to) == ""
            assert await channel.preview(address, shown, "", to) == ""
        assert (slack.workspace.shown(GENERAL), slack.workspace.shown("D0ANNA")) == ([], [])


@pytest.mark.parametrize("word", ["message_not_found", "edit_window_closed", "cant_update_message"])
async def test_a_draft_that_cannot_be_changed_gives_way_to_a_new_message(word):
    async with open_slack() as (slack, channel):
        shown = await channel.preview(THREAD, "", "one", CHANNEL_THREAD)
        slack.fail("chat.update", SlackFault(error=word))
        receipt = await channel.send(part("all done", GENERAL, "1.0", draft=shown))
        assert slack.workspace.shown(GENERAL) == ["all done"]
        assert receipt == f"{GENERAL}:{next(iter(slack.workspace.chats[GENERAL]))}"


async def test_a_change_whose_answer_is_lost_is_made_once_more():
    async with open_slack() as (slack, channel):
        shown = await channel.preview(THREAD, "", "one", CHANNEL_THREAD)
        slack.fail("chat.update", SlackFault(arrives=True, cut=True))
        await channel.send(part("all done", GENERAL, "1.0", draft=shown))
        assert slack.workspace.shown(GENERAL) == ["all done"]


async def test_a_draft_waits_as_long_as_slack_says():
    async with open_slack() as (slack, channel):
        shown = await channel.preview(THREAD, "", "one", CHANNEL_THREAD)
        slack.fail("chat.update", SlackFault(429, retry_after=4))
        with pytest.raises(ChannelDown) as raised:
            await channel.send(part("all done", GENERAL, "1.0", draft=shown))
        assert raised.value.retry_after == 4.0
        await channel.send(part("all done", GENERAL, "1.0", draft=shown))
        assert slack.workspace.shown(GENERAL) == ["all done"]


async def test_a_long_draft_goes_on_as_the_end_of_it():
    async with open_slack() as (slack, channel):
        shown = await channel.preview(THREAD, "", "word " * 100, CHANNEL_THREAD)
        shown = await channel.preview(THREAD, shown, "word " * 4000 + "end", CHANNEL_THREAD)
        [text] = slack.workspace.shown(GENERAL)
        assert (text.endswith("end"), len(text) <= 4000, shown.split()[0]) == (True, True, "message")
