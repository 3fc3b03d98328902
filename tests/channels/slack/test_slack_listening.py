"""What comes in: over sockets that come and go, and by posts; buttons, commands; and who we are."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from everloop.channels.slack import check_settings
from everloop.channels.slack.wire import SlackChannel
from everloop.errors import ChannelDown, ChannelRefused, StoreError
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import (
    HookRequest,
)
from everloop.testing.slack_server import SlackFault, SlackServer
from tests.channels.slack.open import Heard, open_slack, part
from tests.channels.slack.platform import settings_of

GENERAL = "C0GENERAL"


@asynccontextmanager
async def listening(channel: SlackChannel, heard: Heard) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(channel.run(heard, ""))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_what_is_said_is_acknowledged_when_it_is_committed():
    async with open_slack() as (slack, channel):
        heard = Heard()
        async with listening(channel, heard):
            await slack.linked()
            first = await slack.say("<@U0BOT> hello", chat=GENERAL)
            await slack.acknowledged(first)
            assert {(each.event, each.text, each.name, each.mentioned) for each in heard.all} == {
                (f"{GENERAL}:{first}", "hello", "Anna", True)
            }
            assert len(heard.all) == 2  # as message and as app_mention: the house knows the second by its event
            edited = await slack.edit(GENERAL, first, "<@U0BOT> hello all")
            await slack.acknowledged(edited)
            deleted = await slack.delete(GENERAL, first)
            await slack.acknowledged(deleted)
            assert [(each.replaces, each.text, each.withdrawn) for each in heard.all[2:]] == [
                (f"{GENERAL}:{first}", "hello all", False), (f"{GENERAL}:{first}", "", True),
            ]  # fmt: skip


async def test_what_is_not_for_us_is_acknowledged_too():
    async with open_slack() as (slack, channel):
        heard = Heard()
        async with listening(channel, heard):
            await slack.linked()
            await slack.tell({"type": "assistant_thread_started", "assistant_thread": {"channel_id": "D1"}}, name="a")
            await slack.tell({"type": "reaction_added", "user": "U0ANNA"}, name="b")
            await slack.say("x", user="U0BOT", stamp="7.7")
            for name in ("a", "b", "7.7"):
                await slack.acknowledged(name)
        assert heard.all == []


async def test_what_is_not_acknowledged_in_time_comes_again_and_is_known():
    async with open_slack() as (slack, channel):
        gate = asyncio.Event()

        class Slow(Heard):
            async def __call__(self, incoming, resume=""):
                await gate.wait()
                return await super().__call__(incoming, resume)

        heard = Slow()
        slack.again = 0.05
        async with listening(channel, heard):
            await slack.linked()
            stamp = await slack.say("slow")
            await slack.until(lambda: any(each.get("retry_attempt") for each in slack.waiting.values()))
            gate.set()
            await slack.acknowledged(stamp)
        assert {each.event for each in heard.all} == {f"D0ANNA:{stamp}"}


@pytest.mark.parametrize("reason", ["warning", "refresh_requested", "something_new"])
async def test_the_next_socket_is_open_before_the_last_is_left(reason):
    async with open_slack() as (slack, channel):
        heard = Heard()
        async with listening(channel, heard) as task:
            await slack.linked()
            first = slack.sockets[0]
            await slack.disconnect(reason)
            await slack.linked(2)
            await slack.until(lambda: first not in slack.sockets)
            assert (len(slack.sockets), slack.together, task.done()) == (1, 2, False)
            stamp = await slack.say("after it")
            await slack.acknowledged(stamp)
        assert [each.text for each in heard.all] == ["after it"]


async def test_what_came_over_the_socket_that_is_left_is_acknowledged_there():
    async with open_slack() as (slack, channel):
        gate = asyncio.Event()

        class Slow(Heard):
            async def __call__(self, incoming, resume=""):
                await gate.wait()
                return await super().__call__(incoming, resume)

        async with listening(channel, Slow()):
            await slack.linked()
            stamp = await slack.say("slow")
            await slack.disconnect()
            await slack.linked(2)
            gate.set()
            await slack.acknowledged(stamp)
            attempts = {each.get("retry_attempt") for each in slack.waiting.values()}
            assert attempts == set()


async def test_a_socket_that_breaks_is_replaced_and_nothing_is_lost():
    async with open_slack() as (slack, channel):
        heard = Heard()
        async with listening(channel, heard) as task:
            await slack.linked()
            await slack.cut()
            stamp = await slack.say("while it was away")
            await slack.acknowledged(stamp)
            assert task.done() is False
        assert [each.text for each in heard.all] == ["while it was away"]


async def test_a_slack_that_ends_each_socket_at_once_is_left_to_the_supervisor():
    async with open_slack() as (slack, channel), listening(channel, Heard()) as task:
        for number in range(1, 5):
            await slack.linked(number)
            await slack.disconnect()
        with pytest.raises(ChannelDown, match="as soon as it is open"):
            await task


@pytest.mark.parametrize(
    "reason, error, words",
    [("link_disabled", ChannelRefused, "switch it on"), ("too_many_websockets", ChannelDown, "another program")],
)
async def test_a_socket_that_is_not_wanted_says_why(reason, error, words):
    async with open_slack() as (slack, channel), listening(channel, Heard()) as task:
        await slack.linked()
        await slack.disconnect(reason)
        with pytest.raises(error, match=words):
            await task


async def test_a_chat_that_waits_for_a_file_keeps_no_other_waiting_and_keeps_its_order():
    async with open_slack() as (slack, channel):
        gate, heard = asyncio.Event(), Heard()

        class Fetching(Heard):
            async def __call__(self, incoming, resume=""):
                if incoming.files:
                    await gate.wait()
                return await heard(incoming, resume)

        async with listening(channel, Fetching()):
            await slack.linked()
            file = slack.workspace.keep("a.png", b"x", "image/png")
            stamps = [await slack.say("1", files=[file]), await slack.say("2")]
            await slack.acknowledged(await slack.say("elsewhere", chat=GENERAL))
            assert [each.text for each in heard.all] == ["elsewhere"]
            gate.set()
            for stamp in stamps:
                await slack.acknowledged(stamp)
        assert [each.text for each in heard.all] == ["elsewhere", "1", "2"]


async def test_what_cannot_be_committed_ends_listening_and_comes_again():
    async with open_slack() as (slack, channel):
        heard = Heard(StoreError("the disk is full"))
        async with listening(channel, heard) as task:
            await slack.linked()
            stamp = await slack.say("hello")
            with pytest.raises(StoreError):
                await task
        assert slack.told[stamp] & slack.acked == set()
        async with listening(channel, heard):
            await slack.acknowledged(stamp)
        assert [each.text for each in heard.all] == ["hello"]


async def test_a_button_is_pressed_and_the_question_says_so():
    async with open_slack() as (slack, channel):
        heard = Heard()
        async with listening(channel, heard):
            await slack.linked()
            sent = [await channel.send(part("May I?", chat, approval="kiwi")) for chat in ("D0ANNA", GENERAL)]
            for receipt, action in zip(sent, ("everloop_approve", "everloop_deny"), strict=True):
                await slack.acknowledged(await slack.press(*receipt.split(":"), action))
            heard.refused = "nobody lets you in"
            again = await channel.send(part("May I?", approval="plum"))
            await slack.acknowledged(await slack.press(*again.split(":"), "everloop_approve"))
        direct, group, refused = (
            slack.workspace.chats[each.split(":")[0]][each.split(":")[1]] for each in (*sent, again)
        )
        assert [each.text for each in heard.all] == ["/approve kiwi", "/deny kiwi", "/approve plum"]
        kinds = [[block["type"] for block in message["blocks"]] for message in (direct, group, refused)]
        assert kinds == [["section", "context"], ["section", "actions", "context"], ["section", "actions"]]
        assert direct["blocks"][1]["elements"][0]["text"] == "Anna pressed Approve."


async def test_a_button_whose_question_cannot_be_changed_counts_all_the_same():
    async with open_slack() as (slack, channel):
        heard = Heard()
        async with listening(channel, heard) as task:
            await slack.linked()
            receipt = await channel.send(part("May I?", approval="kiwi"))
            slack.fail("chat.update", SlackFault(500))
            await slack.acknowledged(await slack.press(*receipt.split(":"), "everloop_approve"))
            assert task.done() is False
        assert [each.text for each in heard.all] == ["/approve kiwi"]


async def test_a_command_that_is_typed_among_others_is_for_our_own_chat():
    async with open_slack() as (slack, channel):
        slack.workspace.chats["D0OTHERS"] = {}
        heard = Heard()
        async with listening(channel, heard):
            await slack.linked()
            for text, chat in (("new", "D0ANNA"), ("stop", "D0OTHERS"), ("model", GENERAL)):
                await slack.acknowledged(await slack.command(text, chat=chat))
        assert [(each.text, each.chat, each.direct) for each in heard.all] == [
            ("/new", "D0ANNA", True), ("/stop", "D0ANNA", True), ("/model", GENERAL, False),
        ]  # fmt: skip


async def test_a_name_that_slack_does_not_tell_keeps_nobody_waiting():
    async with open_slack() as (slack, channel):
        slack.fail("users.info", SlackFault(error="missing_scope"))
        heard = Heard()
        async with listening(channel, heard):
            await slack.linked()
            for text in ("one", "two"):
                await slack.acknowledged(await slack.say(text))
        assert [(each.text, each.name) for each in heard.all] == [("one", ""), ("two", "")]
        assert [method for method, _ in slack.calls].count("users.info") == 1


async def test_a_thread_in_which_we_take_part_needs_no_mention():
    async with open_slack() as (slack, channel):
        heard = Heard()

        async def is_reply(thread: str, text: str = "go on") -> bool:
            await slack.acknowledged(await slack.say(text, chat=GENERAL, thread_ts=thread))
            return heard.all[-1].replies

        async with listening(channel, heard):
            await slack.linked()
            first = await slack.say("who knows?", chat=GENERAL)
            await slack.acknowledged(first)
            before = await is_reply(first)
            await channel.send(part("I do", GENERAL, first))
            after = await is_reply(first)
            await is_reply("1890000000.5", "<@U0BOT> what about this?")
            mentioned = await is_reply("1890000000.5")
            heard.refused = "nobody lets you in"
            await is_reply("1890000000.7", "<@U0BOT> and this?")
            refused = await is_reply("1890000000.7")
        assert (before, after, mentioned, refused) == (False, True, True, False)


async def test_a_thread_from_before_a_restart_is_known_when_slack_was_asked_once():
    async with open_slack() as (slack, before):
        first, other = [await slack.say(text, chat=GENERAL) for text in ("who knows?", "and who knows this?")]
        await before.send(part("I do", GENERAL, first))
        heard, http = Heard(), TrustedHttp()
        channel = SlackChannel(check_settings(settings_of(slack)), http, lambda: 1_890_000_000.0)
        async with listening(channel, heard):
            await slack.linked()
            for thread in (first, first, other, other, "1789999999.1", "1890000000.5"):
                await slack.acknowledged(await slack.say("go on", chat=GENERAL, thread_ts=thread))
            slack.fail("conversations.replies", SlackFault(429, retry_after=9))
            await slack.acknowledged(await slack.say("go on", chat=GENERAL, thread_ts="1789999999.2"))
        await http.close()
        ours = [each.replies for each in heard.all if each.text == "go on"]
        assert ours == [True, True, False, False, False, False, False]
        asked = [given["ts"] for method, given in slack.calls if method == "conversations.replies"]
        assert asked == [first, other, "1789999999.1", "1789999999.2"]


async def test_slack_is_told_its_challenge_when_it_has_signed_it():
    async with open_slack(mode="events") as (slack, channel):
        (hook,) = channel.hooks(Heard())
        body = json.dumps({"type": "url_verification", "challenge": "3eZbrw1a"}).encode()
        answer = await hook.answer(HookRequest("POST", slack.signed(body), body))
        assert (answer.status, json.loads(answer.body)) == (200, {"challenge": "3eZbrw1a"})
        assert (await hook.answer(HookRequest("POST", {}, body))).status == 401


@pytest.mark.parametrize(
    "body, form, status",
    [
        (b"", "application/json", 400),
        (b"\xff", "application/json", 400),
        (b"[1]", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"payload=%7B", "application/x-www-form-urlencoded", 400),
        (b"payload=[]", "application/x-www-form-urlencoded", 400),
        (b"\xff", "application/x-www-form-urlencoded", 400),
        (b"a=1&" * 1000, "application/x-www-form-urlencoded", 400),
        (b"a=1", "application/x-www-form-urlencoded", 200),
        (b'{"type": "app_rate_limited"}', "application/json", 200),
        (b'{"event": {"type": "message", "channel": ["x"]}}', "application/json; charset=utf-8", 200),
    ],
)  # fmt: skip
async def test_what_is_signed_and_makes_no_sense_ends_nothing(body, form, status):
    async with open_slack(mode="events") as (slack, channel):
        heard = Heard()
        (hook,) = channel.hooks(heard)
        answer = await hook.answer(HookRequest("POST", {"content-type": form, **slack.signed(body)}, body))
        assert (answer.status, heard.all) == (status, [])


async def test_buttons_and_commands_come_by_post_as_well():
    heard = Heard()

    async def post(headers, body) -> int:
        return (await hook.answer(HookRequest("POST", headers, body))).status

    http = TrustedHttp()
    async with SlackServer(post=post) as slack:
        slack.echoes = False
        channel = SlackChannel(check_settings(settings_of(slack, mode="events")), http)
        await channel.run(heard, "")
        (hook,) = channel.hooks(heard)
        receipt = await channel.send(part("May I?", approval="kiwi"))
        await slack.press(*receipt.split(":"), "everloop_deny")
        await slack.command("new")
        await slack.say("hello")
    await http.close()
    assert [each.text for each in heard.all] == ["/deny kiwi", "/new", "hello"]
