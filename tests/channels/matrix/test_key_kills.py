"""What is left of keys when a process is killed, or two use them at once."""

import asyncio
from typing import Any

import pytest
from vodozemac import GroupSession, MegolmMessage

from everloop.channels.matrix.codec import read_event
from everloop.channels.matrix.deciphering import Deciphering
from everloop.channels.matrix.device import OurDevice
from everloop.channels.matrix.e2ee.account import MEGOLM
from everloop.channels.matrix.e2ee.encrypted_rooms import EncryptedRooms
from everloop.channels.matrix.e2ee.encryption import NeverReadable, NoKeyYet
from everloop.channels.matrix.e2ee.waiting import TOO_LATE, WaitingMessages
from everloop.channels.matrix.homeserver import path_of
from everloop.channels.matrix.sending import EventSender
from everloop.channels.matrix.sync import Happened
from everloop.errors import ChannelDown
from everloop.ports.channel_state import KeptState
from tests.channels.matrix.party import SAID, Killed, Mortal, Party, room_of, said_by
from tests.channels.matrix.remembering import Memory


@pytest.mark.parametrize("after", [False, True])
async def test_no_kill_makes_two_texts_of_one_index_or_loses_a_message(party: Any, after: bool):
    ours, anna = Mortal(), await party("anna")
    bot, sent, ours.after = await party("bot", ours), [], after
    for kill in range(1, 6):
        room, ours.last = await room_of(anna, bot), kill
        for text in ("one", "two", "three"):
            try:
                said = await bot.encrypt(room, {**SAID, "body": f"{text} {kill}"})
                sent.append((room, said))
            except Killed:
                bot.begin()
        ours.last = -1
        sent.append((room, await bot.encrypt(room, {**SAID, "body": f"last {kill}"})))
    assert ours.kills == 5
    places = [(said["session_id"], MegolmMessage.from_base64(said["ciphertext"]).message_index()) for _, said in sent]
    assert len({*places}) == len(places)
    await anna.take(await anna.mail())
    read = [await anna.encryption.read(room, said_by(bot.user, said, f"${n}")) for n, (room, said) in enumerate(sent)]
    assert len({each.content["body"] for each in read}) == len(sent) == 15


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kill", [1, 2, 3])
async def test_a_key_survives_a_kill_while_it_is_taken(party: Any, kill: int, after: bool):
    ours, anna = Mortal(), await party("anna")
    bot = await party("bot", ours)
    room = await room_of(anna, bot)
    first = await anna.encrypt(room)
    mail, ours.last, ours.after = await bot.mail(), kill, after
    with pytest.raises(Killed):
        await bot.take(mail)
    bot.begin()
    ours.last = -1
    await bot.take(mail)  # the homeserver brings it again until a sync has gone on
    assert (await bot.encryption.read(room, said_by(anna.user, first))).content == SAID
    back = await bot.encrypt(room)
    await anna.take(await anna.mail())
    assert (await anna.encryption.read(room, said_by(bot.user, back))).content == SAID


async def test_a_message_waits_for_its_key_over_a_restart_and_its_lateness_is_told_once(party: Any):
    anna, bot = await party("anna"), await party("bot")
    room = await room_of(anna, bot)
    said = said_by(anna.user, await anna.encrypt(room))
    mail = await bot.mail()

    async def restarted() -> Deciphering:
        bot.begin()
        rooms = EncryptedRooms(bot.server, bot.memory)
        events = EventSender(bot.server, OurDevice(bot.server, bot.memory), rooms)
        waiting = WaitingMessages(bot.memory, bot.user, bot.account.device, late=-1.0)
        deciphering = Deciphering(bot.encryption, rooms, waiting, events)
        await deciphering.start()
        return deciphering

    deciphering = await restarted()
    assert (await deciphering.read(room, Happened((), (said,)))).said == ()
    await deciphering.keep()
    await deciphering.done([])
    deciphering = await restarted()
    assert await deciphering.come() == []
    await deciphering.done([])
    assert await told_in(room, anna, bot) == [TOO_LATE]
    deciphering = await restarted()
    await bot.take(mail)
    (come,) = await deciphering.come()
    assert (come[1].sender, come[1].content) == (anna.user, SAID)
    again = await restarted()  # before it was delivered
    assert [event for _, event in await again.come()] == [come[1]]
    await again.done([come])
    assert await (await restarted()).come() == []
    assert await told_in(room, anna, bot) == [TOO_LATE]


async def told_in(room: str, to: Party, by: Party) -> list[str]:
    """What somebody reads there; nothing of it is in clear."""
    await to.take(await to.mail())
    page = await to.server.get(path_of("rooms", room, "messages"), {"dir": "f"})
    events = [read_event(each) for each in page["chunk"] if each["sender"] == by.user and "state_key" not in each]
    assert {event.type for event in events if event} == {"m.room.encrypted"}
    return [(await to.encryption.read(room, event)).content["body"] for event in events if event]


async def test_who_does_not_listen_any_more_says_of_nothing_that_it_was_heard(party: Any):
    anna, bot = await party("anna"), await party("bot")
    room = await room_of(anna, bot)
    here, there = (WaitingMessages(bot.memory, bot.user, bot.account.device) for _ in range(2))
    for each in (here, there):
        each.add(room, said_by(anna.user, {}, "$of one"))
    await here.keep()
    with pytest.raises(ChannelDown, match="another process has begun to listen"):
        await there.keep()


class Meeting(Memory):
    """Two who read the key of a room have both read it before either writes. With `blind` it takes what is put by
    whoever has not seen what is there."""

    def __init__(self, *, blind: bool) -> None:
        super().__init__()
        self._blind = blind
        self._both = asyncio.Barrier(2)
        self.left = 0

    async def get(self, key: str) -> KeptState:
        kept = await super().get(key)
        if " OutboundKey " in key and self.left > 0:
            self.left -= 1
            await self._both.wait()
        return kept

    async def put(self, key: str, value: str, version: int) -> bool:
        return await super().put(key, value, (await super().get(key)).version if self._blind else version)


@pytest.mark.parametrize("blind", [False, True])
async def test_two_processes_never_use_one_index_for_two_texts(party: Any, blind: bool):
    memory = Meeting(blind=blind)
    anna, bot = await party("anna"), await party("bot", memory)
    room, here = await room_of(anna, bot), bot.encryption
    bot.begin()
    there = bot.encryption
    session = (await bot.encrypt(room))["session_id"]
    memory.left = 2
    both = [each._speaker._said(room, session, "m.room.message", SAID) for each in (here, there)]
    said = [each["ciphertext"] for each in await asyncio.gather(*both) if each]
    assert sorted(MegolmMessage.from_base64(each).message_index() for each in said) == ([1, 1] if blind else [1, 2])


async def test_what_a_stranger_sends_that_nobody_can_write_down_stops_nothing(party: Any):
    anna, bot = await party("anna"), await party("bot")
    room, odd = await room_of(anna, bot), "!\ud800\0 \N{SNOWMAN}"
    (device,) = await anna.encryption._devices.of([bot.user])
    session = GroupSession()
    key = {"algorithm": MEGOLM, "room_id": odd, "session_id": session.session_id}
    key["session_key"] = session.session_key.to_base64()
    for content in (key, {**key, "room_id": 5}, {**key, "session_key": odd}, {odd: [odd]}):
        for kind in ("m.room_key", odd):
            said = (await anna.encryption._olm.whisper([device], kind, content))[bot.user][device.id]
            await bot.take([{"type": "m.room.encrypted", "sender": anna.user, "content": said}])
    sealed = {"algorithm": MEGOLM, "session_id": odd, "ciphertext": odd, odd: odd, "m.relates_to": {odd: {odd: odd}}}
    waiting = WaitingMessages(bot.memory, bot.user, bot.account.device)
    with pytest.raises(NoKeyYet):
        await bot.encryption.read(room, said_by(anna.user, sealed))
    for bad in ({}, {odd: odd}, {**sealed, "session_id": 5}, {**sealed, "algorithm": odd}):
        with pytest.raises(NeverReadable):
            await bot.encryption.read(room, said_by(anna.user, bad))
    waiting.add(room, said_by(anna.user, {**sealed, "deep": _nested(100_000)}))
    await waiting.keep()
    again = WaitingMessages(bot.memory, bot.user, bot.account.device)
    await again.load()
    assert again.all == waiting.all
    assert all(each.isprintable() and each.isascii() for each in bot.memory.kept)
    content = await anna.encrypt(room)
    await bot.take((await bot.mail())[-1:])
    assert (await bot.encryption.read(room, said_by(anna.user, content))).content == SAID


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value
