"""Whom a key of a room is believed to be from, and who has it."""

from typing import Any

import pytest
from vodozemac import GroupSession

from everloop.channels.matrix.e2ee.account import MEGOLM, OlmAccount
from everloop.channels.matrix.e2ee.devices import Devices
from everloop.channels.matrix.e2ee.encrypted_rooms import read_encryption
from everloop.channels.matrix.e2ee.encryption import NeverReadable, NoKeyYet
from everloop.channels.matrix.e2ee.olm import OlmDevice
from everloop.channels.matrix.e2ee.records import PICKLE, KeyRecords, OutboundKey, RoomRecord
from everloop.channels.matrix.homeserver import path_of
from tests.channels.matrix.party import SAID, Party, room_of, said_by


async def test_a_key_reads_its_senders_messages_in_its_room_once(party: Any):
    anna, bot, mallory = await party("anna"), await party("bot"), await party("mallory")
    room = await room_of(anna, bot, mallory)
    content = await anna.encrypt(room)
    with pytest.raises(NoKeyYet):  # which has not been taken
        await bot.encryption.read(room, said_by(anna.user, content))
    await bot.take(await bot.mail())
    read = await bot.encryption.read(room, said_by(anna.user, content))
    assert (read.type, read.sender, read.content) == ("m.room.message", anna.user, SAID)
    assert await bot.encryption.read(room, said_by(anna.user, content)) == read
    with pytest.raises(NeverReadable, match="repeats"):
        await bot.encryption.read(room, said_by(anna.user, content, "$2"))
    with pytest.raises(NoKeyYet):
        await bot.encryption.read(room, said_by(mallory.user, content, "$3"))
    with pytest.raises(NoKeyYet):
        await bot.encryption.read("!other:test.local", said_by(anna.user, content, "$4"))
    damaged = {**content, "ciphertext": content["ciphertext"][:-8] + "AAAAAAAA"}
    with pytest.raises(NeverReadable, match="damaged"):
        await bot.encryption.read(room, said_by(anna.user, damaged, "$5"))


async def whisper_as(liar: OlmDevice, to: Party, key: dict[str, Any], sender: str) -> dict[str, Any]:
    """What a homeserver would bring that is in league with them."""
    (device,) = await to.encryption._devices.of([to.user])
    said = await liar.whisper([device], "m.room_key", key)
    return {"type": "m.room.encrypted", "sender": sender, "content": said[to.user][device.id]}


async def test_nobody_speaks_in_anothers_name_with_a_device_of_their_own(party: Any):
    anna, bot, mallory = await party("anna"), await party("bot"), await party("mallory")
    room = await room_of(mallory, bot, anna)
    content = await mallory.encrypt(room)
    record = await mallory.encryption._records.get(OutboundKey, room)
    group = _group(record.pickle)
    key = {"algorithm": content["algorithm"], "room_id": room, "session_id": content["session_id"]}
    key["session_key"] = group.session_key.to_base64()
    later = await mallory.encrypt(room)
    records = KeyRecords(mallory.memory, mallory.user, mallory.account.device)
    account = OlmAccount(mallory.server, records, anna.user, "X")
    lies = OlmDevice(mallory.server, records, account, Devices(mallory.server, records))
    await bot.take([await whisper_as(lies, bot, key, anna.user)])
    with pytest.raises(NoKeyYet, match="not theirs"):
        await bot.encryption.read(room, said_by(anna.user, later))
    await bot.take([await whisper_as(lies, bot, key, mallory.user)])  # the sender outside is another than inside
    with pytest.raises(NoKeyYet, match="has not come"):
        await bot.encryption.read(room, said_by(mallory.user, later))
    await bot.take(await bot.mail())  # the control: what she has sent in her own name
    assert (await bot.encryption.read(room, said_by(mallory.user, later))).content == SAID


async def test_what_was_said_elsewhere_is_not_said_here(party: Any):
    anna, bot = await party("anna"), await party("bot")
    here, elsewhere = await room_of(anna, bot), await room_of(anna, bot)
    content = await anna.encrypt(elsewhere)
    group = _group((await anna.encryption._records.get(OutboundKey, elsewhere)).pickle)
    key = {"algorithm": content["algorithm"], "room_id": here, "session_id": content["session_id"]}
    key["session_key"] = group.session_key.to_base64()
    later = await anna.encrypt(elsewhere)
    await bot.take([*await bot.mail(), await whisper_as(anna.encryption._olm, bot, key, anna.user)])
    with pytest.raises(NeverReadable, match="another room"):
        await bot.encryption.read(here, said_by(anna.user, later))
    assert (await bot.encryption.read(elsewhere, said_by(anna.user, later))).content == SAID


def _group(pickle: str) -> GroupSession:
    return GroupSession.from_pickle(pickle, PICKLE)


async def test_a_key_is_changed_as_often_as_its_room_wants_and_when_somebody_has_left(party: Any):
    anna, bot, ben = await party("anna"), await party("bot"), await party("ben")
    room = await room_of(anna, bot, ben)
    sessions = [(await bot.encrypt(room, messages=2))["session_id"] for _ in range(5)]
    assert [sessions.index(each) for each in sessions] == [0, 0, 2, 2, 4]
    assert (await bot.encrypt(room, messages=1, seconds=0.0))["session_id"] not in sessions
    last = (await bot.encrypt(room))["session_id"]
    assert (await bot.encrypt(room))["session_id"] == last
    await ben.server.post(path_of("rooms", room, "leave"), {})
    after = await bot.encrypt(room)
    assert after["session_id"] != last
    for each in (anna, ben):
        await each.take(await each.mail())
    assert (await anna.encryption.read(room, said_by(bot.user, after))).content == SAID
    with pytest.raises(NoKeyYet):
        await ben.encryption.read(room, said_by(bot.user, after))


def test_a_room_says_how_often_within_what_is_sane():
    usual = RoomRecord(encrypted=True, messages=100, seconds=604800.0)
    assert read_encryption({"algorithm": MEGOLM}) == read_encryption({"rotation_period_ms": "never"}) == usual
    assert read_encryption({"rotation_period_msgs": 7, "rotation_period_ms": 7_200_000}) == RoomRecord(True, 7, 7200.0)
    assert read_encryption({"rotation_period_msgs": -7, "rotation_period_ms": 1}) == RoomRecord(True, 1, 3600.0)
    never = {"rotation_period_msgs": 10**30, "rotation_period_ms": 10**30}
    assert read_encryption(never) == RoomRecord(True, 10_000, 365 * 86400.0)
