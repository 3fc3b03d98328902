"""What is said on Discord comes in once and whole, however the connection fares."""

import asyncio

import pytest

from everloop.channels.discord.codec import DiscordPlace
from everloop.channels.discord.places import DiscordPlaces
from everloop.channels.discord.resume import PRIVATE, SHARED, ResumePoint, ResumeProgress
from everloop.errors import ChannelDown, ChannelRefused, StoreError
from everloop.ports.channel import Delivered, Incoming
from everloop.testing.discord_server import DiscordFault
from tests.channels.discord.heard import Heard, listening
from tests.channels.discord.platform import channel_to, discord


class Terse:
    """An API that tells of a room no more than its id."""

    async def call(self, method: str, path: str) -> dict[str, str]:
        return {"id": path.rpartition("/")[2]}


async def test_what_was_said_in_a_server_is_never_a_chat_of_two_whatever_the_room_says_of_itself():
    places = DiscordPlaces(Terse())
    assert [await places.of("9", server) for server in ("7", "7", None)] == [
        DiscordPlace("9", server="7"),
        DiscordPlace("9", server="7"),
        DiscordPlace("9"),
    ]


async def test_what_people_write_comes_in_as_they_meant_it():
    async with discord() as (server, http):
        world, heard = server.world, Heard()
        me, anna, robot = world.bot["id"], world.user("anna"), world.user("robot", bot=True)
        dm, home = world.dm(anna), world.guild("Home")
        room = world.channel(home, "general")
        thread = world.thread(room, "topic")
        (_, ours) = world.guilds[home]["roles"]
        async with listening(channel_to(server, http), heard):
            await server.gateway.until_listening()
            first = await server.say(dm, anna, "hello")
            named = await server.say(room, anna, f"<@{me}> /new", member={"nick": "Ann"})
            role = await server.say(room, anna, f"hey <@&{ours['id']}>")
            all = await server.say(room, robot, "@everyone listen")
            inside = await server.say(thread, anna, f"what says <@{anna['id']}> <:wave:123>?")
            said = world.message(room, world.bot, "I said so")
            await server.gateway.emit("MESSAGE_CREATE", world.event(said))
            answer = await server.say(room, anna, "really?", message_reference={"message_id": said["id"]})
            hook = await server.say(room, {**robot, "bot": False}, "built", webhook_id="77")
            await server.say(room, anna, "", type=7)  # somebody has come: nobody has said that
            await server.say(room, anna, "")
            await server.say(room, anna, f"<@!{me}>", mentions=[world.bot])
            await server.say(dm, anna, "bye")
            got = sorted(await heard.until(9), key=lambda each: each.event)  # chats are taken in side by side
        shared = {"account": anna["id"], "name": "Anna", "chat": room, "server": home, "direct": False}
        assert got[:7] == [
            Incoming(
                event=first["id"],
                chat=dm,
                account=anna["id"],
                name="Anna",
                text="hello",
                reply_to=f"{dm}/{first['id']}/direct",
            ),
            Incoming(
                event=named["id"],
                **{**shared, "name": "Ann"},
                text="/new",
                mentioned=True,
                reply_to=f"{room}/{named['id']}",
            ),
            Incoming(
                event=role["id"],
                **shared,
                text=f"hey <@&{ours['id']}>",
                mentioned=True,
                reply_to=f"{room}/{role['id']}",
            ),
            Incoming(
                event=all["id"],
                **{**shared, "account": robot["id"], "name": "Robot"},
                text="@everyone listen",
                bot=True,
                reply_to=f"{room}/{all['id']}",
            ),
            Incoming(
                event=inside["id"],
                **shared,
                thread=thread,
                text="what says @Anna :wave:?",
                reply_to=f"{thread}/{inside['id']}",
            ),
            Incoming(
                event=answer["id"],
                **shared,
                text="really?",
                replies=True,
                quoted="I said so",
                reply_to=f"{room}/{answer['id']}",
            ),
            Incoming(
                event=hook["id"],
                **{**shared, "account": robot["id"], "name": "Robot"},
                text="built",
                bot=True,
                reply_to=f"{room}/{hook['id']}",
            ),
        ]
        assert [(each.text, each.mentioned) for each in got[7:]] == [("@Everbot", True), ("bye", False)]


async def test_edits_and_deletions_name_what_they_are_about():
    async with discord() as (server, http):
        heard, anna = Heard(), server.world.user("anna")
        dm = server.world.dm(anna)
        async with listening(channel_to(server, http), heard):
            await server.gateway.until_listening()
            first, second, third = [await server.say(dm, anna, text) for text in ("one", "two", "three")]
            await server.gateway.emit("MESSAGE_UPDATE", {**first, "embeds": [{"url": "https://x.example"}]})  # no edit
            await server.gateway.emit("MESSAGE_UPDATE", {"id": first["id"], "channel_id": dm, "flags": 4})
            await server.edit(first, "one!")
            await server.gateway.emit("MESSAGE_UPDATE", first)  # told again
            await server.delete(first)
            await server.delete(second, third)
            await server.say(dm, anna, "four")
            got = (await heard.until(8))[3:]
        told = [(each.replaces, each.text, each.withdrawn, each.account) for each in got]
        assert told == [
            (first["id"], "one!", False, anna["id"]),
            (first["id"], "", True, anna["id"]),
            (second["id"], "", True, anna["id"]),
            (third["id"], "", True, anna["id"]),
            ("", "four", False, anna["id"]),
        ]
        assert len({each.event for each in heard.all}) == len(heard.all)


async def test_files_voice_and_what_was_forwarded_come_along_without_our_token():
    async with discord() as (server, http):
        heard, anna = Heard(), server.world.user("anna")
        dm, channel = server.world.dm(anna), channel_to(server, http)
        async with listening(channel, heard):
            await server.gateway.until_listening()
            await server.say(dm, anna, "", attachments=[server.attach("voice.ogg", b"la la")], flags=1 << 13)
            forwarded = {"content": "the news", "attachments": [server.attach("news.txt", b"news")]}
            await server.say(dm, anna, "", message_snapshots=[{"message": forwarded}])
            await server.say(dm, anna, "", sticker_items=[{"name": "Wave"}])
            voice, news, sticker = await heard.until(3)
            assert (voice.text, voice.voice, len(voice.files)) == ("", voice.files, 1)
            assert await channel.fetch(voice.files[0], 100) == ("voice.ogg", b"la la")
            assert (news.text, news.voice) == ("[forwarded] the news", ())
            assert await channel.fetch(news.files[0], 100) == ("news.txt", b"news")
            assert sticker.text == "[sticker: Wave]"


async def test_through_cuts_and_requests_to_reconnect_nothing_is_lost_or_doubled():
    async with discord() as (server, http):
        heard, anna = Heard(), server.world.user("anna")
        dm = server.world.dm(anna)
        async with listening(channel_to(server, http), heard):
            await server.gateway.until_listening()
            for number in range(12):
                await server.say(dm, anna, f"{number}")
                match number % 6:
                    case 0:
                        server.gateway.cut()
                    case 1:
                        await server.gateway.ask_to_reconnect()
                    case 2:
                        await server.gateway.invalidate(resumable=True)
                    case 3:
                        await server.gateway.close(4008, "slow down")
            await heard.until(12)
        assert heard.texts == [f"{number}" for number in range(12)]
        assert server.gateway.identified == 1


async def test_what_is_being_committed_is_not_broken_off_when_the_connection_ends():
    class Slow(Heard):
        began, may_go = asyncio.Event(), asyncio.Event()
        broken_off = calls = 0

        async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
            self.calls += 1
            self.began.set()
            try:
                await self.may_go.wait()
            except asyncio.CancelledError:
                self.broken_off += 1
                raise
            return await super().__call__(incoming, resume)

    async with discord() as (server, http):
        heard, anna = Slow(), server.world.user("anna")
        dm = server.world.dm(anna)
        async with listening(channel_to(server, http), heard):
            await heard.until_saved()
            await server.say(dm, anna, "one")
            await heard.began.wait()
            await server.say(dm, anna, "two")
            await server.gateway.ask_to_reconnect()
            server.gateway.cut()
            await server.gateway.until_left()
            heard.may_go.set()
            await heard.until(2)
            await server.say(dm, anna, "three")
            await heard.until(3)
        assert (heard.texts, heard.calls, heard.broken_off) == (["one", "two", "three"], 3, 0)


async def test_a_gateway_that_answers_no_heartbeats_is_left_and_the_session_goes_on():
    async with discord() as (server, http):
        heard, anna = Heard(), server.world.user("anna")
        async with listening(channel_to(server, http), heard):
            await heard.until_saved()
            server.gateway.is_frozen = True
            await server.say(server.world.dm(anna), anna, "one")  # is not told now
            await server.gateway.until_left()
            server.gateway.is_frozen = False
            server.gateway.cut()
            assert [each.text for each in await heard.until(1)] == ["one"]
        assert (server.gateway.identified, server.gateway.resumed >= 1) == (1, True)


@pytest.mark.parametrize("how", ["while we were away", "op 9", "4009", "4007"])
async def test_what_was_missed_is_fetched_when_the_session_is_forgotten(how: str):
    async with discord() as (server, http):
        world, heard, anna = server.world, Heard(), server.world.user("anna")
        dm, home = world.dm(anna), world.guild("Home")
        room = world.channel(home, "general")
        thread, gone = world.thread(room, "topic"), world.channel(home, "gone")
        missed: list[dict] = []

        async def miss() -> None:
            del world.channels[gone]
            missed.extend(world.message(dm, anna, f"missed {number}") for number in range(230))
            missed.extend(world.message(place, anna, f"missed in {place}") for place in (room, thread))
            world.message(dm, world.bot, "we said this")

        async def go_on() -> None:
            await heard.until(4 + len(missed))
            await server.gateway.until_listening()
            await server.say(dm, anna, "and on")
            await heard.until(5 + len(missed))

        async with listening(channel_to(server, http), heard):
            await server.gateway.until_listening()
            for place in (dm, room, thread, gone):
                await server.say(place, anna, f"in {place}")
            await heard.until_acknowledged(server.gateway)
            if how != "while we were away":
                await miss()
                ended = server.gateway.invalidate(resumable=False) if how == "op 9" else server.gateway.close(int(how))
                await ended
                await go_on()
        if how == "while we were away":
            server.gateway.sessions.clear()
            await miss()
            async with listening(channel_to(server, http), heard):
                await go_on()
        got = heard.all
        assert {each.event for each in got[4:-1]} == {each["id"] for each in missed}
        assert [each.text for each in got if each.chat == dm][1:] == [f"missed {n}" for n in range(230)] + ["and on"]
        shared = {(each.server, each.thread) for each in got[4:-1] if each.chat == room}
        assert shared == {(home, ""), (home, thread)}
        assert gone not in heard.resume
        assert {dm, room, thread} <= {*_channels(heard.resume)}


def _channels(resume: str) -> tuple[str, ...]:
    point = ResumePoint.parse(resume)
    return point.private + point.shared


async def test_the_first_word_is_heard_though_it_was_said_while_we_were_away():
    async with discord() as (server, http):
        heard, anna = Heard(), server.world.user("anna")
        async with listening(channel_to(server, http), heard):
            await heard.until_saved()
        await server.say(server.world.dm(anna), anna, "is anybody there?")
        async with listening(channel_to(server, http), heard):
            assert [each.text for each in await heard.until(1)] == ["is anybody there?"]
        assert (server.gateway.identified, server.gateway.resumed) == (1, 1)


async def test_what_is_not_committed_comes_again():
    async with discord() as (server, http):
        heard, anna = Heard(), server.world.user("anna")
        async with listening(channel_to(server, http), heard) as running:
            await heard.until_saved()
            heard.full = True
            await server.say(server.world.dm(anna), anna, "one")
            with pytest.raises(StoreError, match="the disk is full"):
                await running
        assert heard.all == []
        heard.full = False
        async with listening(channel_to(server, http), heard):
            assert [each.text for each in await heard.until(1)] == ["one"]


@pytest.mark.parametrize(
    "code, sentence",
    [
        (4004, "Discord refuses the bot's token. Make a new one"),
        (4010, "split into shards"),
        (4011, "too many servers for one connection and must be split into shards"),
        (4012, "a newer everloop is needed"),
        (4013, "a newer everloop is needed"),
        (4014, "switch on MESSAGE CONTENT INTENT"),
    ],
)
async def test_what_only_the_owner_can_mend_is_told_in_a_sentence(code: int, sentence: str):
    async with discord() as (server, http), listening(channel_to(server, http), Heard()) as running:
        await server.gateway.until_listening()
        await server.gateway.close(code, "no")
        with pytest.raises(ChannelRefused, match=sentence):
            await running


async def test_an_intent_that_is_not_enabled_and_a_wrong_token_are_told():
    async with discord() as (server, http):
        server.gateway.allowed_intents = ~(1 << 15)
        with pytest.raises(ChannelRefused, match="MESSAGE CONTENT INTENT"):
            await channel_to(server, http).run(Heard(), "")
        with pytest.raises(ChannelRefused, match="refuses the bot's token"):
            await channel_to(server, http, token="another").run(Heard(), "")
        server.starts_left = 0
        with pytest.raises(ChannelDown, match="no more sessions for now") as down:
            await channel_to(server, http).run(Heard(), "")
        assert down.value.retry_after == 7.0


async def test_a_gateway_that_is_away_is_told_after_a_few_tries():
    async with discord() as (server, http):
        channel = channel_to(server, http, gateway_url="ws://127.0.0.1:9/")
        with pytest.raises(ChannelDown, match="Discord's gateway cannot be used"):
            await channel.run(Heard(), "")


async def test_what_fetches_the_missed_waits_for_a_limit_and_fails_without_losing_anything():
    async with discord() as (server, http):
        heard, anna = Heard(), server.world.user("anna")
        dm = server.world.dm(anna)
        async with listening(channel_to(server, http), heard):
            await server.gateway.until_listening()
            await server.say(dm, anna, "one")
            await heard.until(1)
        server.gateway.sessions.clear()
        server.world.message(dm, anna, "two")
        for fault in (DiscordFault(status=500, of="messages"), DiscordFault(half=True, of="messages")):
            server.fail(fault)
            with pytest.raises(ChannelDown):
                await channel_to(server, http).run(heard, heard.resume)
        async with listening(channel_to(server, http), heard):
            await heard.until(2)
        assert heard.texts == ["one", "two"]


def test_what_is_remembered_of_channels_is_bounded_and_prefers_the_latest():
    progress = ResumeProgress(ResumePoint())
    for number in range(2 * PRIVATE):
        progress.see(str(number), str(10**18 + number), direct=True)
        progress.see(f"9{number}", str(number), direct=False)
    point = progress.at("s", 7, "wss://x")
    assert (len(point.private), len(point.shared), point.last) == (PRIVATE, SHARED, str(10**18 + 2 * PRIVATE - 1))
    assert (point.private[-1], ResumePoint.parse(str(point))) == (str(2 * PRIVATE - 1), point)
    assert [ResumePoint.parse(text) for text in ("", "{", "[]", '{"seq": "x"}')] == [ResumePoint()] * 4
