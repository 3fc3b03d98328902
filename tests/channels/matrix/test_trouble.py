"""A homeserver that is away, fails, or breaks off: nothing is lost, and no room keeps the others from being heard."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from everloop.channels.matrix.listening import read_resume
from everloop.channels.matrix.rooms import TRIES
from everloop.channels.matrix.sync import LARGEST
from everloop.errors import ChannelDown, ChannelRefused, ProviderError
from tests.channels.matrix.listener import PATIENCE, Bot, Listener, part_for
from tests.channels.matrix.somebody import Somebody
from tests.channels.matrix.synapse import Synapse
from tests.channels.matrix.troubled import Between


@pytest.fixture
async def between(synapse: Synapse) -> AsyncIterator[Between]:
    async with Between(synapse.url).open() as between:
        yield between


def failing(what: str, status: int, body: str = "{}"):
    def judge(method: str, path: str, asked: bytes) -> web.Response | None:
        return web.Response(status=status, text=body) if what in path else None

    return judge


FAILURES: list[tuple[int, str, type[Exception]]] = [
    (502, "<html>", ChannelDown),
    (500, '{"errcode": "M_UNKNOWN"}', ChannelDown),
    (429, '{"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 2500}', ChannelDown),
    (200, '{"next_batch": "s1", "rooms": {"join": {"!r": {"timel', ChannelDown),
    (200, "[]", ChannelDown),
    (200, "[" * 100_000, ChannelDown),
    (401, '{"errcode": "M_UNKNOWN_TOKEN", "soft_logout": true, "error": "sk-canary"}', ChannelRefused),
]


async def test_what_fails_is_told_and_heard_later(bot: Bot, anna: Somebody, between: Between):
    channel = bot.channel(homeserver=between.url)
    async with bot.listening(channel=channel) as listener:
        room = await anna.make_room(bot.user, direct=True)
        await anna.say(room, "one")
        await listener.hears(1)
    await anna.say(room, "two")
    for status, body, kind in FAILURES:
        between.before = failing("/sync?", status, body)
        with pytest.raises(kind) as told:
            await channel.run(listener, listener.resume)
        assert "canary" not in str(told.value)
        assert getattr(told.value, "retry_after", None) == (2.5 if status == 429 else None)
    between.before = lambda method, path, asked: None
    async with bot.listening(channel=channel, resume=listener.resume) as later:
        assert await later.texts(1) == ["two"]


async def test_a_homeserver_that_is_away_for_a_while_loses_nothing(bot: Bot, anna: Somebody, between: Between):
    channel = bot.channel(homeserver=between.url)
    async with bot.listening(channel=channel) as listener:
        room = await anna.make_room(bot.user, direct=True)
        await anna.say(room, "one")
        (heard,) = await listener.hears(1)
    away = bot.channel(homeserver="http://127.0.0.1:1")
    for _ in range(3):
        with pytest.raises(ProviderError):
            await away.run(listener, listener.resume)
        with pytest.raises(ChannelDown):
            await away.send(part_for(heard, "x"))
    await anna.say(room, "two")
    async with bot.listening(channel=channel, resume=listener.resume) as later:
        assert await later.texts(1) == ["two"]


async def test_a_room_that_its_homeserver_cannot_tell_of_is_a_group_in_the_end(
    bot: Bot, anna: Somebody, between: Between
):
    channel = bot.channel(homeserver=between.url)
    async with bot.listening(channel=channel) as listener:
        room = await anna.make_room(bot.user, direct=True)
        await anna.say(room, "one")
        await listener.hears(1)
    channel, listener.known = bot.channel(homeserver=between.url), set()
    await anna.say(room, "two")
    between.before = failing("/members", 500, '{"errcode": "M_UNKNOWN"}')
    for _ in range(TRIES - 1):
        with pytest.raises(ChannelDown):
            await channel.run(listener, listener.resume)
    async with bot.listening(channel=channel, resume=listener.resume) as later:
        (heard,) = await later.hears(1)
    assert (heard.text, heard.direct, heard.chat) == ("two", False, room)


async def test_a_room_is_not_left_because_its_homeserver_cannot_tell_of_it_yet(
    bot: Bot, anna: Somebody, between: Between
):
    asked_again = asyncio.Event()

    def once(method: str, path: str, asked: bytes) -> web.Response | None:
        if "/members" not in path:
            return None
        if sum("/members" in each for _, each in between.asked) == 1:
            return web.Response(status=500, text='{"errcode": "M_UNKNOWN"}')
        asked_again.set()
        return None

    between.before = once
    async with bot.listening(homeserver=between.url) as listener:
        room = await anna.make_room(bot.user, direct=True)
        async with asyncio.timeout(PATIENCE):
            await asked_again.wait()
        await anna.say(room, "one")
        (heard,) = await listener.hears(1)
    assert (heard.text, heard.direct) == ("one", True)
    assert [path for _, path in between.asked if path.endswith("/leave")] == []


async def test_a_sync_that_is_too_large_is_asked_for_in_less(bot: Bot, anna: Somebody, between: Between):
    channel = bot.channel(homeserver=between.url)
    async with bot.listening(channel=channel) as listener:
        room = await anna.make_room(bot.user, direct=True)
        await anna.say(room, "0")
        await listener.hears(1)
    for number in range(1, 6):
        await anna.say(room, str(number))
    between.before = lambda method, path, asked: (
        web.Response(body=b" " * (LARGEST + 1)) if "%22limit%22:+20" in path else None
    )
    async with bot.listening(channel=channel, resume=listener.resume) as later:
        assert await later.texts(5) == ["1", "2", "3", "4", "5"]


async def test_where_we_were_is_not_known_any_more(bot: Bot, anna: Somebody):
    async with bot.listening() as listener:
        room = await anna.make_room(bot.user, direct=True)
        await anna.say(room, "one")
        await listener.hears(1)
    for user, since in ((bot.user, "s-of-another-time"), (anna.user, read_resume(listener.resume).since)):
        async with bot.listening(resume=json.dumps({"user": user, "since": since})) as later:
            await later._until(lambda later=later: later.resume)
            await anna.say(room, "two")
            assert await later.texts(1) == ["two"]


async def test_many_rooms_are_heard_at_once_and_each_in_its_order(bot: Bot, anna: Somebody, ben: Somebody):
    async with bot.listening(anna.user, ben.user) as listener:
        rooms = [await each.make_room(bot.user) for each in (anna, ben) for _ in range(4)]
        for room, each in zip(rooms, [anna] * 4 + [ben] * 4, strict=True):
            await each.say(room, "begin")
        await listener.hears(8)

    async def talk(each: Somebody, room: str) -> None:
        for number in range(5):
            await each.say(room, str(number))

    owners = [anna] * 4 + [ben] * 4
    await asyncio.gather(*(talk(each, room) for each, room in zip(owners, rooms, strict=True)))
    async with bot.listening(resume=listener.resume) as later:
        heard = await later.hears(40)
    by_room = {room: [each.text for each in heard if each.chat.removeprefix("@") == room] for room in rooms}
    assert by_room == {room: [str(number) for number in range(5)] for room in rooms}


async def test_the_token_is_in_no_log(bot: Bot, between: Between, caplog: pytest.LogCaptureFixture):
    token = bot.account.token
    between.before = failing("/", 500, json.dumps({"errcode": f"Bearer {token}", "error": token}))
    with pytest.raises(ChannelDown) as told:
        await bot.channel(homeserver=between.url).run(Listener(set()), "")
    assert token not in caplog.text + str(told.value)
