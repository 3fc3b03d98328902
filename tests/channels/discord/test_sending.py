"""What is sent to Discord: once, to nobody who was not meant, and no faster than it wants."""

import asyncio

import pytest
from msgspec.structs import replace

from everloop.channels.discord.limits import RateLimits
from everloop.channels.discord.outgoing import nonce_of
from everloop.core.mail import Address, Outbound, ReplyTo
from everloop.errors import ChannelDown, ProviderError, Undeliverable
from everloop.ports.channel import OutgoingFile, OutgoingPart, Rendered
from everloop.testing import Trouble
from everloop.testing.discord_server import PLENTY, DiscordFault
from tests.channels.discord.platform import channel_to, discord


def part(channel: str, text: str = "hello", **more: object) -> OutgoingPart:
    chosen = {"key": "reply:t:3", "address": Address("discord", channel), "text": text, **more}
    return OutgoingPart(**chosen)


async def test_a_message_mentions_nobody_shows_no_previews_and_says_what_it_answers():
    async with discord() as (server, http):
        room = server.world.channel(server.world.guild("Home"), "general")
        anna = server.world.user("anna")
        asked = server.world.message(room, anna, "?")
        channel = channel_to(server, http)
        receipt = await channel.send(part(room, "hi @everyone", reply_to=ReplyTo(f"{room}/{asked['id']}")))
        assert server.calls[-1].said == {
            "content": "hi @everyone",
            "allowed_mentions": {"parse": [], "replied_user": False},
            "flags": 4,
            "message_reference": {"message_id": asked["id"], "channel_id": room, "fail_if_not_exists": False},
            "nonce": nonce_of("reply:t:3", 0),
            "enforce_nonce": True,
        }
        assert receipt == server.sent(room)[0]["id"]
        for elsewhere in (f"{room}/{asked['id']}/direct", f"999/{asked['id']}", "", "x"):
            await channel.send(part(room, key=f"k{elsewhere}", reply_to=ReplyTo(elsewhere)))
            assert "message_reference" not in server.calls[-1].said
        thread = server.world.thread(room, "topic")
        await channel.send(part(room, key="k", address=Address("discord", room, thread)))
        assert server.seen(thread) == ["hello"]


@pytest.mark.parametrize("fault", ["receipt lost", "half a body"])
async def test_what_is_sent_again_within_minutes_is_seen_once(fault: str):
    async with discord() as (server, http):
        dm, channel = server.world.dm(server.world.user("anna")), channel_to(server, http)
        troubles = [Trouble.ACK_LOST] if fault == "receipt lost" else [None]
        server.judge = lambda nonce, content: troubles.pop() if troubles else None
        if fault == "half a body":
            server.fail(DiscordFault(half=True, of="POST channels/"))
        with pytest.raises(ProviderError) as unsure:
            await channel.send(part(dm))
        assert not isinstance(unsure.value, ChannelDown)
        await channel.send(part(dm, "(may be repeated) hello"))
        assert server.seen(dm) == (["hello"] if fault == "receipt lost" else ["(may be repeated) hello"])
        await channel.send(part(dm, "another", key="reply:t:4"))
        assert server.seen(dm)[1:] == ["another"]


async def test_files_travel_with_the_text_and_those_that_do_not_are_named():
    async with discord() as (server, http):
        dm, channel = server.world.dm(server.world.user("anna")), channel_to(server, http)
        files = (
            OutgoingFile('a "b"\r\n.txt', "text/plain", b"one\r\n--x"),
            OutgoingFile("ü.bin", "nonsense\r\nX: y", b"\x00"),
            OutgoingFile("large.iso", "application/octet-stream", link="https://files.example/large.iso"),
        )
        await channel.send(part(dm, "see", files=files))
        assert server.calls[-1].files == (("a _b___.txt", b"one\r\n--x"), ("ü.bin", b"\x00"))
        assert server.seen(dm) == ["see\nlarge.iso: https://files.example/large.iso"]
        await channel.send(part(dm, "x" * 1990, key="k2", files=files))
        assert server.seen(dm)[1:] == ["x" * 1990, "large.iso: https://files.example/large.iso"]
        await channel.send(part(dm, "too much", key="k3", files=(OutgoingFile("b.bin", "a/b", b"x" * 11_000_000),)))
        assert "too much\nb.bin (not sent here: Discord takes no file as large" in server.seen(dm)[-1]


async def test_a_draft_becomes_the_answer_and_one_that_is_gone_is_replaced():
    async with discord() as (server, http):
        dm, channel = server.world.dm(server.world.user("anna")), channel_to(server, http)
        address = Address("discord", dm)
        shown = await channel.preview(address, "", "**so", ReplyTo(""))
        assert server.seen(dm) == ["**so**\n-# ✎ …"]
        assert await channel.preview(address, shown, "**so far** @here", ReplyTo("")) == shown
        assert await channel.send(part(dm, "the end", draft=shown, approval="kind-otter")) == shown
        assert server.seen(dm) == ["the end"]
        assert [each["custom_id"] for each in server.sent(dm)[0]["components"][0]["components"]] == [
            "allow:kind-otter",
            "deny:kind-otter",
        ]
        assert await channel.send(part(dm, "anew", key="k2", draft="12345")) != "12345"
        assert server.seen(dm) == ["the end", "anew"]
        allowed = [call.said["allowed_mentions"] for call in server.calls if call.said and "content" in call.said]
        assert allowed == [{"parse": [], "replied_user": False}] * len(allowed)


async def test_what_a_killed_process_has_left_is_taken_away_or_known_as_the_answer():
    async with discord() as (server, http):
        dm, killed = server.world.dm(server.world.user("anna")), channel_to(server, http)
        other = server.world.message(dm, server.world.user("robot", bot=True), "mine\n-# ✎ …")
        shown = await killed.preview(Address("discord", dm), "", "the end", ReplyTo(""))
        again = channel_to(server, http)
        await again.send(part(dm, "the end"))
        assert (server.seen(dm), other["id"] in server.world.messages[dm]) == (["the end"], True)

        shown = await again.preview(Address("discord", dm), "", "another", ReplyTo(""))
        await again.send(part(dm, "beside a draft", key="k2"))  # its own draft stays
        assert server.seen(dm) == ["the end", "another\n-# ✎ …", "beside a draft"]
        await again.send(part(dm, "another", key="k3", draft=shown))
        assert await channel_to(server, http).send(part(dm, "(may be repeated) another", key="k3")) == shown
        assert server.seen(dm) == ["the end", "another", "beside a draft"]

        server.sent(dm)[1]["edited_timestamp"] = "2026-01-01T00:00:00+00:00"  # long ago: it may be another one
        await channel_to(server, http).send(part(dm, "(may be repeated) another", key="k4"))
        await channel_to(server, http).send(part(dm, "another", key="k5"))
        assert server.seen(dm)[3:] == ["(may be repeated) another", "another"]

        server.fail(DiscordFault(status=403, of="users/@me"))
        await channel_to(server, http).send(part(dm, "all the same", key="k6"))
        assert server.seen(dm)[5:] == ["all the same"]


async def test_what_surely_has_not_arrived_is_sent_without_a_mark():
    async with discord() as (server, http):
        anna = server.world.user("anna")
        dm = server.world.dm(anna)
        server.world.message(dm, server.world.bot, "yes")  # which was the answer to something before
        letter = server.world.message(dm, anna, "really?")
        marked = part(
            dm, "(may be repeated) yes", plain="(may be repeated) yes", reply_to=ReplyTo(f"{dm}/{letter['id']}/direct")
        )
        await channel_to(server, http).send(marked)
        assert server.seen(dm) == ["yes", "yes"]
        server.remembers = False
        await channel_to(server, http).send(marked)
        assert server.seen(dm)[2:] == ["(may be repeated) yes"]
        for _ in range(60):  # so much was said since that we do not see all of it
            server.world.message(dm, anna, "hm")
        await channel_to(server, http).send(replace(marked, key="k2", text="(may be repeated) no"))
        assert server.seen(dm)[3:] == ["(may be repeated) no"]


async def test_what_discord_refuses_for_good_is_given_up_and_the_rest_is_tried_again():
    async with discord() as (server, http):
        dm, channel = server.world.dm(server.world.user("anna")), channel_to(server, http)
        for wrong in (part("123"), part(dm, "x" * 2001), part("../users/@me"), part(dm, "")):
            with pytest.raises(Undeliverable):
                await channel.send(wrong)
        await channel.send(part(dm, "x" * 2001, plain="without markup"))
        assert server.seen(dm) == ["without markup"]
        with pytest.raises(Undeliverable, match="theirs are numbers"):
            await channel.chat_with("anna")
        with pytest.raises(Undeliverable, match="Cannot send messages to this user"):
            await channel.chat_with("99")
        for fault, after in [
            (DiscordFault(status=500), None),
            (DiscordFault(status=502), None),
            (DiscordFault(status=403), None),  # without Discord's JSON: something in between
            (DiscordFault(status=429, retry_after=0.25), 0.25),
            (DiscordFault(status=429, retry_after=0.125, is_global=True), 0.125),
        ]:
            server.fail(fault)
            with pytest.raises(ChannelDown) as down:
                await channel.send(part(dm, key=f"{fault}"))
            assert down.value.retry_after == after
        refused = channel_to(server, http, token="another")
        with pytest.raises(ChannelDown, match="refuses the bot's token"):
            await refused.send(part(dm))
        nowhere = channel_to(server, http, api_url="http://127.0.0.1:9/api")
        with pytest.raises(ChannelDown):
            await nowhere.send(part(dm))


async def test_limits_that_discord_tells_of_are_heeded_before_it_refuses():
    async with discord() as (server, http):
        anna, ben = server.world.user("anna"), server.world.user("ben")
        dm, other = server.world.dm(anna), server.world.dm(ben)
        channel = channel_to(server, http)
        server.headers = {**PLENTY, "X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "60"}
        await channel.send(part(dm))
        server.headers = PLENTY
        calls = len(server.calls)
        with pytest.raises(ChannelDown) as down:
            await channel.send(part(dm, key="k2"))
        assert 50 < (down.value.retry_after or 0) <= 60
        with pytest.raises(ChannelDown):
            await channel.preview(Address("discord", dm), "", "a draft", ReplyTo(""))
        assert len(server.calls) == calls
        await channel.send(part(other, key="k3"))
        assert server.seen(other) == ["hello"]


def test_a_limit_is_that_of_its_bucket_and_ends():
    now = 100.0
    limits = RateLimits(lambda: now)
    spent = {"x-ratelimit-bucket": "b", "x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "1.5"}
    limits.heed("POST channels//messages", "1", spent)
    limits.heed("PATCH channels//messages/:", "2", {"x-ratelimit-bucket": "b", "x-ratelimit-remaining": "3"})
    routes = ("POST channels//messages", "PATCH channels//messages/:")
    waits = [limits.wait(route, about) for route in routes for about in "12"]
    assert waits == [1.5, 0.0, 1.5, 0.0]
    limits.refuse("GET gateway/bot", "", 9.0, everywhere=True)
    assert limits.wait("POST channels//messages", "2") == 9.0
    now = 109.0
    assert limits.wait("POST channels//messages", "1") == 0.0
    for odd in ("", "nan", "-1", "x", None):
        limits.heed("r", "1", {"x-ratelimit-remaining": "0", "x-ratelimit-reset-after": odd})
    assert limits.wait("r", "1") == 0.0


async def test_reactions_typing_changes_and_chats_of_two():
    async with discord() as (server, http):
        anna = server.world.user("anna")
        dm, channel = server.world.dm(anna), channel_to(server, http)
        said, address = server.world.message(dm, anna, "?"), Address("discord", dm)
        await channel.react(address, ReplyTo(f"{dm}/{said['id']}/direct"), "👍")
        await channel.react(address, ReplyTo(f"{dm}/{said['id']}"), "a/../b")
        assert server.reactions == [(said["id"], "👍"), (said["id"], "a/../b")]
        with pytest.raises(Undeliverable):
            await channel.react(address, ReplyTo(""), "👍")
        await channel.signal(address, "typing", ReplyTo(""))
        await channel.signal(address, "done", ReplyTo(""))
        assert (server.typed, await channel.chat_with(anna["id"])) == ([dm], dm)
        sent = await channel.send(part(dm))
        await channel.replace(address, sent, Rendered("other"))
        assert server.seen(dm) == ["other"]
        await channel.withdraw(address, sent)
        await channel.withdraw(address, sent)
        with pytest.raises(Undeliverable):
            await channel.replace(address, sent, Rendered("other"))


async def test_long_answers_are_split_so_that_discord_takes_each_part():
    async with discord() as (server, http):
        dm, channel = server.world.dm(server.world.user("anna")), channel_to(server, http)
        text = "😀 word " * 900 + "\n```python\n" + "x = 1\n" * 600 + "```\n@everyone <@123>"
        parts = channel.render(Outbound("k", Address("discord", dm), text))
        await asyncio.gather(*(channel.send(part(dm, each.text, key=f"k/{n}")) for n, each in enumerate(parts)))
        assert len(server.seen(dm)) == len(parts) > 3
        assert all(each.text.count("```") % 2 == 0 for each in parts)
