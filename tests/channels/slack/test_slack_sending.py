"""What goes out to Slack: messages, files, drafts, reactions; and what becomes of it when Slack will not."""

import pytest
from msgspec import json

from everloop.channels.slack.drafts import harmless
from everloop.channels.slack.files import is_slacks
from everloop.core.mail import Address, Outbound
from everloop.errors import ChannelDown, HostFailed, HostHungUp, StreamCut, Undeliverable
from everloop.ports.channel import FileRef, OutgoingFile, Rendered
from everloop.testing.slack_server import SlackFault
from tests.channels.slack.open import open_slack, part, reply_to

GENERAL = "C0GENERAL"
THREAD = Address("slack", GENERAL, "1.0")
CHANNEL_THREAD = reply_to(GENERAL, "1.0")


async def test_a_message_is_sent_where_it_belongs_and_unfolds_nothing():
    async with open_slack() as (slack, channel):
        receipts = [await channel.send(part()), await channel.send(part("in a thread", GENERAL, "1.0"))]
        [direct], [threaded] = (slack.workspace.chats[chat].values() for chat in ("D0ANNA", GENERAL))
        assert receipts == [f"D0ANNA:{direct['ts']}", f"{GENERAL}:{threaded['ts']}"]
        assert (direct["text"], threaded["text"], threaded["thread_ts"]) == ("hello", "in a thread", "1.0")
        unfolds = {given[name] for _, given in slack.calls for name in ("unfurl_links", "unfurl_media", "link_names")}
        assert ("thread_ts" in direct, unfolds) == (False, {"false"})


@pytest.mark.parametrize(
    "fault, error, after",
    [
        (SlackFault(429, retry_after=7), ChannelDown, 7.0),
        (SlackFault(error="ratelimited", retry_after=3), ChannelDown, 3.0),
        (SlackFault(503), ChannelDown, None),
        (SlackFault(403), ChannelDown, None),
        (SlackFault(error="service_unavailable"), ChannelDown, None),
        (SlackFault(error="invalid_auth"), ChannelDown, None),
        (SlackFault(error="token_revoked"), ChannelDown, None),
        (SlackFault(error="missing_scope"), ChannelDown, None),
        (SlackFault(error="channel_not_found"), Undeliverable, None),
        (SlackFault(error="not_in_channel"), Undeliverable, None),
        (SlackFault(error="is_archived"), Undeliverable, None),
        (SlackFault(error="msg_too_long"), Undeliverable, None),
        (SlackFault(error="something_new"), Undeliverable, None),
        (SlackFault(error="Not A Word xoxb-fake-bot"), Undeliverable, None),
        (SlackFault(500), HostFailed, None),
        (SlackFault(502), HostFailed, None),
        (SlackFault(error="internal_error"), HostFailed, None),
        (SlackFault(error="fatal_error"), HostFailed, None),
        (SlackFault(cut=True), HostHungUp, None),
        (SlackFault(half=True), StreamCut, None),
    ],
)
async def test_what_goes_wrong_is_told_apart(fault, error, after):
    """Down: surely nothing arrived. Undeliverable: it never will. Anything else: it may have."""
    async with open_slack() as (slack, channel):
        slack.fail("chat.postMessage", fault)
        with pytest.raises(error) as raised:
            await channel.send(part())
        assert type(raised.value) is error
        assert getattr(raised.value, "retry_after", None) == after
        assert "xoxb" not in str(raised.value)


async def test_what_never_arrives_says_what_to_do():
    async with open_slack() as (slack, channel):
        slack.workspace.left.add(GENERAL)
        with pytest.raises(Undeliverable, match="invite it there with /invite"):
            await channel.send(part(chat=GENERAL))


async def test_a_slack_that_fails_is_asked_something_harmless_before_a_message_is_sent_again():
    """Else an answer would be given up after a few sends of which each may have arrived."""
    async with open_slack() as (slack, channel):
        slack.fail("chat.postMessage", SlackFault(500))
        slack.fail("auth.test", SlackFault(500), SlackFault(error="invalid_auth"), SlackFault(half=True))
        with pytest.raises(HostFailed):
            await channel.send(part())
        for _ in range(3):
            with pytest.raises(ChannelDown):
                await channel.send(part())
        for _ in range(2):
            await channel.send(part())
        methods = [method for method, _ in slack.calls]
        assert (methods.count("chat.postMessage"), methods.count("auth.test")) == (3, 4)


async def test_a_slack_that_is_away_is_down():
    async with open_slack() as (slack, channel):
        await slack.__aexit__(None, None, None)
        with pytest.raises(ChannelDown):
            await channel.send(part())


MENTIONS = (
    "<!channel> <!here> <!everyone> <@U0ANNA> <!subteam^S1|team> &lt;!channel&gt; [x](<!channel>) `<!here>`"
    "\n```\n<@U0BEN>\n```"
)


async def test_nobody_is_notified_by_what_a_model_writes():
    async with open_slack() as (slack, channel):
        address = Address("slack", GENERAL, "1.0")
        for rendered in channel.render(Outbound("k", address, MENTIONS)):
            await channel.send(part(rendered.text, GENERAL, plain=rendered.plain))
            await channel.send(part(rendered.plain, GENERAL))
            await channel.send(part(rendered.text, GENERAL, approval="kiwi"))
        shown = ""
        for end in range(1, len(MENTIONS) + 1):
            shown = await channel.preview(address, shown, MENTIONS[:end], CHANNEL_THREAD)
        direct = await channel.preview(Address("slack", "D0ANNA"), "", MENTIONS, reply_to("D0ANNA"))
        assert (shown.split()[0], direct.split()[0]) == ("stream", "message")
        await channel.send(part("report", GENERAL, files=(OutgoingFile("<!channel>", "text/plain", link="<!here>"),)))
        assert slack.workspace.notified == []
        await channel.send(part("<!channel>", GENERAL))  # which no renderer writes: the fake would have seen it
        assert slack.workspace.notified == ["channel"]


def test_what_may_become_a_mention_is_kept_back():
    texts = ["a <", "a <!", "a &lt", "a &lt;", "a &lt;!", "a < b", "&#60;!", "<&#64;", "<\\@", "a & b", "a &amp; b"]
    assert [harmless(text) for text in texts] == [
        "a ", "a <\u200b!", "a ", "a ", "a &lt;\u200b!", "a < b", "&#60;\u200b!", "", "<\u200b\\@", "a & b",
        "a &amp; b",
    ]  # fmt: skip


async def test_a_question_has_buttons_and_goes_without_them_where_slack_refuses_them():
    async with open_slack() as (slack, channel):
        question = part("May I?", approval="kiwi")
        await channel.send(question)
        slack.fail("chat.postMessage", SlackFault(error="invalid_blocks"))
        await channel.send(question)
        first, second = slack.workspace.chats["D0ANNA"].values()
        [section, actions] = first["blocks"]
        assert section["text"] == {"type": "mrkdwn", "text": "May I?"}
        assert [(each["action_id"], each["value"]) for each in actions["elements"]] == [
            ("everloop_approve", "kiwi"), ("everloop_deny", "kiwi"),
        ]  # fmt: skip
        assert (second["text"], second["blocks"]) == ("May I?", [])


async def test_a_long_question_has_its_buttons_under_its_last_part():
    async with open_slack() as (slack, channel):
        parts = channel.render(Outbound("k", THREAD, "word " * 1000, "question", approval="kiwi"))
        assert [len(each.text) <= 3000 for each in parts] == [True] * len(parts)
        for number, each in enumerate(parts):
            await channel.send(part(each.text, approval="kiwi", number=number, of=len(parts)))
        buttons = [len(each["blocks"]) for each in slack.workspace.chats["D0ANNA"].values()]
        assert buttons == [0] * (len(parts) - 1) + [2]


async def test_a_file_is_sent_into_its_thread_and_can_be_taken_back():
    async with open_slack() as (slack, channel):
        file = OutgoingFile("a b.txt", "text/plain", b"some text")
        receipt = await channel.send(part("", GENERAL, "1.0", files=(file,)))
        [message] = slack.workspace.chats[GENERAL].values()
        assert ([each["name"] for each in message["files"]], message["thread_ts"]) == (["a b.txt"], "1.0")
        [kept] = slack.workspace.files.values()
        assert (kept.data, receipt) == (b"some text", f"file:{kept.id}")
        await channel.withdraw(THREAD, receipt)
        await channel.withdraw(THREAD, receipt)
        assert slack.workspace.files == {}
        with pytest.raises(Undeliverable, match="not a file"):
            await channel.replace(THREAD, receipt, Rendered("x"))


@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "files.completeUploadExternal"])
@pytest.mark.parametrize("fault", [SlackFault(500), SlackFault(cut=True), SlackFault(429, retry_after=2)])
async def test_a_file_that_nobody_has_seen_is_sent_again(method, fault):
    async with open_slack() as (slack, channel):
        slack.fail(method, fault)
        may_have_arrived = method == "files.completeUploadExternal" and fault.status != 429
        with pytest.raises(Exception) as raised:
            await channel.send(part("", files=(OutgoingFile("a.txt", "text/plain", b"x"),)))
        assert isinstance(raised.value, ChannelDown) != may_have_arrived
        assert slack.workspace.chats["D0ANNA"] == {}


async def test_a_file_that_is_too_large_is_named_with_its_link():
    async with open_slack() as (slack, channel):
        files = (
            OutgoingFile("a.zip", "application/zip", link="https://x.example/a?b=1&c=2"),
            OutgoingFile("b.zip", ""),
        )
        await channel.send(part("Here:", files=files))
        assert slack.workspace.shown("D0ANNA") == [
            "Here:\na.zip: https://x.example/a?b=1&amp;c=2\nb.zip (not sent here; the page has its files under Files)"
        ]


async def test_a_file_is_fetched_with_the_token_from_slack_alone():
    async with open_slack() as (slack, channel):
        kept = slack.workspace.keep("a.png", b"picture", "image/png")
        url = slack.workspace.file_fields(kept, slack.url)["url_private"]

        def ref(url: str, **more: object) -> FileRef:
            return FileRef(json.encode({"name": "a.png", "url": url, "mime": "image/png", **more}).decode())

        assert await channel.fetch(ref(url), 100) == ("a.png", b"picture")
        for bad in (ref(url), ref(url, size=9)):
            with pytest.raises(Undeliverable, match="more than 6 bytes"):
                await channel.fetch(bad, 6)
        elsewhere = [
            url.replace("127.0.0.1", "localhost"), "https://files.slack.com.evil.example/a", "", "file:///etc/passwd",
            url.replace("http://", "http://x@"), "https://evil.example\\@files.slack.com/a", "http://[::1",
            slack.url.replace("127.0.0.1", "127.0.0.1@evil.example"), "http://files.slack.com/a",
        ]  # fmt: skip
        for each in elsewhere:
            with pytest.raises(Undeliverable, match="not kept by Slack"):
                await channel.fetch(ref(each), 100)
        with pytest.raises(ChannelDown):
            await channel.fetch(ref(f"{slack.url}/files-pri/T-F404/a.png"), 100)


async def test_a_page_to_sign_in_is_no_picture():
    async with open_slack() as (slack, channel):
        ref = FileRef(json.encode({"name": "a.png", "url": f"{slack.url}/login", "mime": "image/png"}).decode())
        with pytest.raises(Undeliverable, match="files:read"):
            await channel.fetch(ref, 100)


@pytest.mark.parametrize(
    "url, is_theirs",
    [
        ("https://files.slack.com/a", True),
        ("https://team.enterprise.slack.com/files/a", True),
        ("https://slack-files.com/a", True),
        ("https://notslack.com/a", False),
        ("http://files.slack.com/a", False),
        ("https://files.slack.com:8443/a", False),
        ("https://user:pw@files.slack.com/a", False),
    ],
)
def test_slacks_own_hosts_are_known(url, is_theirs):
    assert is_slacks(url, ("https://files.slack.com/", "https://slack.com/api/")) is is_theirs
    assert is_slacks(url, ("http://127.0.0.1:7/", "http://127.0.0.1:7/api/")) is False


async def test_a_thread_shows_that_somebody_works_and_slack_is_not_asked_where_it_cannot():
    async with open_slack() as (slack, channel):
        await channel.signal(THREAD, "typing", CHANNEL_THREAD)
        await channel.signal(THREAD, "done", CHANNEL_THREAD)
        await channel.signal(Address("slack", "D0ANNA"), "typing", reply_to("D0ANNA"))
        assert slack.workspace.statuses == [(GENERAL, "1.0", "is working on it…"), (GENERAL, "1.0", "")]
        slack.fail("assistant.threads.setStatus", SlackFault(error="channel_type_not_supported"))
        for _ in range(2):
            await channel.signal(THREAD, "typing", CHANNEL_THREAD)
        assert len(slack.workspace.statuses) == 2


async def test_one_reacts_by_a_name_or_by_an_emoji():
    async with open_slack() as (slack, channel):
        stamp = await slack.say("hello")
        to = reply_to("D0ANNA", ts=stamp)
        for emoji in ("👀", ":tada:", "white_check_mark", "❤️", "👀"):
            await channel.react(Address("slack", "D0ANNA"), to, emoji)
        reactions = slack.workspace.chats["D0ANNA"][stamp]["reactions"]
        assert reactions == ["eyes", "tada", "white_check_mark", "heart"]
        for emoji, why in (("🪿", "such as :eyes:"), ("no such!", "no emoji of this name")):
            with pytest.raises(Undeliverable, match=why):
                await channel.react(Address("slack", "D0ANNA"), to, emoji)


async def test_what_was_sent_is_replaced_and_withdrawn():
    async with open_slack() as (slack, channel):
        address = Address("slack", "D0ANNA")
        sent = await channel.send(part("May I?", approval="kiwi"))
        for _ in range(2):
            await channel.replace(address, sent, Rendered("*never mind*"))
        [message] = slack.workspace.chats["D0ANNA"].values()
        assert (message["text"], message["blocks"]) == ("*never mind*", [])
        for _ in range(2):
            await channel.withdraw(address, sent)
        assert slack.workspace.shown("D0ANNA") == []
        with pytest.raises(Undeliverable, match="not there any more"):
            await channel.replace(address, sent, Rendered("x"))


async def test_we_may_speak_first():
    async with open_slack() as (_, channel):
        assert [await channel.chat_with(account) for account in ("U0BEN", "U0BEN@T2")] == ["D0BEN"] * 2
        with pytest.raises(Undeliverable, match="no such person"):
            await channel.chat_with("U0NOBODY")
