"""Who may be believed, and what a kill leaves: devices of both sides are ours, on a real homeserver."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest
from vodozemac import GroupSession, MegolmMessage

from everloop.channels.matrix.codec import RoomEvent, read_event
from everloop.channels.matrix.deciphering import Deciphering
from everloop.channels.matrix.device import OurDevice
from everloop.channels.matrix.e2ee import OTHER_KEYS, UNSIGNED
from everloop.channels.matrix.e2ee.account import MEGOLM, OlmAccount
from everloop.channels.matrix.e2ee.devices import Device, Devices
from everloop.channels.matrix.e2ee.encrypted_rooms import EncryptedRooms, read_encryption
from everloop.channels.matrix.e2ee.encryption import Encryption, NeverReadable, NoKeyYet
from everloop.channels.matrix.e2ee.olm import OlmDevice
from everloop.channels.matrix.e2ee.records import PICKLE, KeyRecords, OutboundKey, RoomRecord
from everloop.channels.matrix.e2ee.signing import is_signed
from everloop.channels.matrix.e2ee.waiting import TOO_LATE, WaitingMessages
from everloop.channels.matrix.homeserver import Homeserver, path_of
from everloop.channels.matrix.sending import EventSender
from everloop.channels.matrix.sync import Happened
from everloop.errors import ChannelDown
from everloop.net.trusted import TrustedHttp
from tests.channels.matrix.remembering import Memory
from tests.channels.matrix.secretive import further_device
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

    async def encrypt(self, room: str, content: Mapping[str, Any] = SAID, **rules: Any) -> dict[str, Any]:
        return await self.encryption.encrypt(room, RoomRecord(encrypted=True, **rules), "m.room.message", dict(content))

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
    state = [{"type": "m.room.encryption", "state_key": "", "content": {"algorithm": MEGOLM}}]
    asked = {"preset": "private_chat", "invite": [each.user for each in others], "initial_state": state}
    room = str((await first.server.post(path_of("createRoom"), asked))["room_id"])
    for each in others:
        await each.server.post(path_of("rooms", room, "join"), {})
    return room


def said_by(user: str, content: Mapping[str, Any], event: str = "$1") -> RoomEvent:
    return RoomEvent("m.room.encrypted", user, event, dict(content))


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
@pytest.mark.parametrize("kill", [1, 2, 3, 4])
async def test_a_key_survives_a_kill_while_it_is_taken(party: Any, kill: int, after: bool):
    ours, anna = Mortal(), await party("anna")
    bot = await party("bot", ours)
    room = await room_of(anna, bot)
    first = await anna.encrypt(room)
    mail, ours.last, ours.after = await bot.mail(), kill, after
    try:
        await bot.take(mail)
    except Killed:
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


async def test_of_two_homes_with_one_token_only_the_first_encrypts(party: Any, synapse: Synapse):
    bot, http = await party("bot"), TrustedHttp()
    server = Homeserver(synapse.url, bot.account.token, http)
    here, there = OurDevice(server, bot.memory), OurDevice(server, Memory())
    assert [await each.hindrance() for each in (here, there)] == ["", OTHER_KEYS]
    with pytest.raises(ChannelDown, match="another client"):
        await Encryption(server, Memory(), bot.user, bot.account.device).start()
    await http.close()


async def test_our_device_is_signed_with_our_accounts_keys_unless_another_client_has_made_them(
    party: Any, synapse: Synapse
):
    bot, http = await party("bot"), TrustedHttp()
    await bot.encryption.start()  # again
    body: dict[str, Any] = {"device_keys": {bot.user: []}}
    said = await bot.server.post(path_of("keys", "query"), body)
    master, signing = (
        next(iter(said[kind][bot.user]["keys"].values())) for kind in ("master_keys", "self_signing_keys")
    )
    device = said["device_keys"][bot.user][bot.account.device]
    assert is_signed(said["self_signing_keys"][bot.user], bot.user, master, master)
    assert is_signed(device, bot.user, signing, signing)
    assert not is_signed({**device, "algorithms": []}, bot.user, signing, signing)

    other = further_device(synapse, bot.user)
    for memory, hindrance in ((bot.memory, ""), (Memory(), UNSIGNED)):  # the same home with a new login; another home
        server = Homeserver(synapse.url, other.token, http)
        our_device = OurDevice(server, memory)
        encryption = await our_device.encryption()
        assert encryption
        await encryption.start()
        assert await our_device.hindrance() == hindrance
        other = further_device(synapse, bot.user)
    await http.close()


async def test_who_has_lost_what_they_spoke_with_understands_us_again(party: Any):
    anna, bot = await party("anna"), await party("bot")
    room = await room_of(anna, bot)
    await anna.encrypt(room)
    await bot.take(await bot.mail())
    await bot.encrypt(room)
    await anna.take(await anna.mail())
    before = {key: kept for key, kept in bot.memory.kept.items() if " OlmSessions " not in key}
    bot.memory.kept = before  # as an old backup
    bot.begin()
    await anna.encrypt(room, messages=1)
    await bot.take((await bot.mail())[-1:])  # which cannot be read
    await anna.take((await anna.mail())[-1:])  # we have begun anew
    after = await anna.encrypt(room, messages=1)
    await bot.take((await bot.mail())[-1:])
    assert (await bot.encryption.read(room, said_by(anna.user, after))).content == SAID
