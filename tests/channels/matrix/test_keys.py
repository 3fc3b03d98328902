"""Who may be believed, and what a kill leaves: devices of both sides are ours, on a real homeserver."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest
from vodozemac import GroupSession, MegolmMessage

from everloop.channels.matrix.codec import RoomEvent
from everloop.channels.matrix.deciphering import Deciphering
from everloop.channels.matrix.e2ee.devices import Device, Devices
from everloop.channels.matrix.e2ee.encryption import Encryption, NeverReadable, NoKeyYet
from everloop.channels.matrix.e2ee.olm import OlmDevice
from everloop.channels.matrix.e2ee.records import PICKLE, OutboundKey, Records
from everloop.channels.matrix.e2ee.waiting import TOO_LATE, WaitingMessages
from everloop.channels.matrix.homeserver import Homeserver, path_of
from everloop.channels.matrix.sync import Happened
from everloop.net.trusted import TrustedHttp
from tests.channels.matrix.remembering import Memory
from tests.channels.matrix.synapse import Account, Synapse

SAID = {"msgtype": "m.text", "body": "hello"}


class Killed(BaseException):
    pass


class Mortal(Memory):
    """Dies before its `last` put, or right after it."""

    def __init__(self) -> None:
        super().__init__()
        self.last = -1
        self.after = False
        self.kills = 0

    async def put(self, key: str, value: str, version: int) -> bool:
        self.last -= 1
        self.kills += self.last == 0
        if self.last == 0 and not self.after:
            raise Killed
        done = await super().put(key, value, version)
        if self.last == 0:
            raise Killed
        return done


class Party:
    """An account with a device of ours. `mail` is what its device was sent and nobody has taken yet."""

    def __init__(self, synapse: Synapse, http: TrustedHttp, name: str, memory: Memory) -> None:
        self.account: Account = synapse.register(name)
        self.user = self.account.user
        self.server = Homeserver(synapse.url, self.account.token, http)
        self.memory = memory
        self.begin()

    def begin(self) -> None:
        """As after a restart."""
        self.encryption = Encryption(self.server, self.memory, self.user, self.account.device)

    async def mail(self) -> list[dict[str, Any]]:
        said = await self.server.get(path_of("sync"), {"timeout": "0"})
        events: list[dict[str, Any]] = said.get("to_device", {}).get("events", [])
        return events

    async def take(self, events: list[dict[str, Any]]) -> None:
        await self.encryption.take(events, None, fallback=False)


async def made_party(synapse: Synapse, http: TrustedHttp, name: str, memory: Memory | None = None) -> Party:
    party = Party(synapse, http, name, memory or Memory())
    await party.encryption.start()
    return party


@pytest.fixture
async def party(synapse: Synapse) -> AsyncIterator[Callable[..., Any]]:
    http = TrustedHttp()
    yield lambda name, memory=None: made_party(synapse, http, name, memory)
    await http.close()


async def room_of(first: Party, *others: Party) -> str:
    asked = {"preset": "private_chat", "invite": [each.user for each in others]}
    room = str((await first.server.post(path_of("createRoom"), asked))["room_id"])
    for each in others:
        await each.server.post(path_of("rooms", room, "join"), {})
    return room


def said_by(user: str, content: Mapping[str, Any], event: str = "$1") -> RoomEvent:
    return RoomEvent("m.room.encrypted", user, event, dict(content))


async def test_a_key_reads_its_senders_messages_in_its_room_once(party: Any):
    anna, bot, mallory = await party("anna"), await party("bot"), await party("mallory")
    room = await room_of(anna, bot, mallory)
    content = await anna.encryption.encrypt(room, "m.room.message", SAID)
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
    content = await mallory.encryption.encrypt(room, "m.room.message", SAID)
    record = await mallory.encryption._records.get(OutboundKey, room)
    group = _group(record.pickle)
    key = {"algorithm": content["algorithm"], "room_id": room, "session_id": content["session_id"]}
    key["session_key"] = group.session_key.to_base64()
    later = await mallory.encryption.encrypt(room, "m.room.message", SAID)
    lies = OlmDevice(mallory.server, Records(mallory.memory, mallory.user, mallory.account.device), anna.user, "X")
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
    content = await anna.encryption.encrypt(elsewhere, "m.room.message", SAID)
    group = _group((await anna.encryption._records.get(OutboundKey, elsewhere)).pickle)
    key = {"algorithm": content["algorithm"], "room_id": here, "session_id": content["session_id"]}
    key["session_key"] = group.session_key.to_base64()
    later = await anna.encryption.encrypt(elsewhere, "m.room.message", SAID)
    await bot.take([*await bot.mail(), await whisper_as(anna.encryption._olm, bot, key, anna.user)])
    with pytest.raises(NeverReadable, match="another room"):
        await bot.encryption.read(here, said_by(anna.user, later))
    assert (await bot.encryption.read(elsewhere, said_by(anna.user, later))).content == SAID


def _group(pickle: str) -> GroupSession:
    return GroupSession.from_pickle(pickle, PICKLE)


async def test_a_device_keeps_the_key_with_which_it_was_first_seen(party: Any):
    anna, bot = await party("anna"), await party("bot")
    (device,) = await bot.encryption._devices.of([anna.user])
    pinned: Devices = bot.encryption._devices
    other = Device(device.user, device.id, device.identity, "another key")
    assert await pinned._pinned(anna.user, [other]) == []
    assert await pinned._pinned(anna.user, [device]) == [device]


@pytest.mark.parametrize("after", [False, True])
async def test_no_kill_makes_two_texts_of_one_index_or_loses_a_message(party: Any, after: bool):
    ours, anna = Mortal(), await party("anna")
    bot, sent, ours.after = await party("bot", ours), [], after
    for kill in range(1, 6):
        room, ours.last = await room_of(anna, bot), kill
        for text in ("one", "two", "three"):
            try:
                said = await bot.encryption.encrypt(room, "m.room.message", {**SAID, "body": f"{text} {kill}"})
                sent.append((room, said))
            except Killed:
                bot.begin()
        ours.last = -1
        sent.append((room, await bot.encryption.encrypt(room, "m.room.message", {**SAID, "body": f"last {kill}"})))
    assert ours.kills == 5
    places = [(said["session_id"], MegolmMessage.from_base64(said["ciphertext"]).message_index()) for _, said in sent]
    assert len({*places}) == len(places)
    await anna.take(await anna.mail())
    read = [await anna.encryption.read(room, said_by(bot.user, said, f"${n}")) for n, (room, said) in enumerate(sent)]
    assert len({each.content["body"] for each in read}) == len(sent) == 15


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kill", [1, 2, 3, 4])
async def test_a_key_survives_a_kill_while_it_is_taken(party: Any, kill: int, after: bool):
    ours, anna = Mortal(), await party("anna")
    bot = await party("bot", ours)
    room = await room_of(anna, bot)
    first = await anna.encryption.encrypt(room, "m.room.message", SAID)
    mail, ours.last, ours.after = await bot.mail(), kill, after
    try:
        await bot.take(mail)
    except Killed:
        bot.begin()
    ours.last = -1
    await bot.take(mail)  # the homeserver brings it again until a sync has gone on
    assert (await bot.encryption.read(room, said_by(anna.user, first))).content == SAID
    back = await bot.encryption.encrypt(room, "m.room.message", SAID)
    await anna.take(await anna.mail())
    assert (await anna.encryption.read(room, said_by(bot.user, back))).content == SAID


async def test_a_message_waits_for_its_key_over_a_restart_and_its_lateness_is_told_once(party: Any):
    anna, bot = await party("anna"), await party("bot")
    room, told = await room_of(anna, bot), []
    said = said_by(anna.user, await anna.encryption.encrypt(room, "m.room.message", SAID))
    mail = await bot.mail()

    async def put(room: str, transaction: str, content: dict[str, Any]) -> str:
        told.append(content["body"])
        return "$told"

    async def restarted() -> Deciphering:
        bot.begin()
        waiting = WaitingMessages(bot.memory, bot.user, bot.account.device, late=-1.0)
        deciphering = Deciphering(bot.encryption, waiting, put)
        await deciphering.start()
        return deciphering

    deciphering = await restarted()
    assert (await deciphering.read(room, Happened((), (said,)))).said == ()
    await deciphering.keep()
    await deciphering.done([])
    deciphering = await restarted()
    assert await deciphering.come() == []
    await deciphering.done([])
    assert told == [TOO_LATE]
    deciphering = await restarted()
    await bot.take(mail)
    (come,) = await deciphering.come()
    assert (come[1].sender, come[1].content) == (anna.user, SAID)
    again = await restarted()  # before it was delivered
    assert [event for _, event in await again.come()] == [come[1]]
    await again.done([come])
    assert await (await restarted()).come() == []
    assert told == [TOO_LATE]
