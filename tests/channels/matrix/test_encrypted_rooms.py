"""What is said in an encrypted room is never sent there in clear, and waits where it cannot be read yet."""

from pathlib import Path

import pytest

from everloop.channels.matrix.codec import RoomEvent
from everloop.channels.matrix.e2ee.encrypted_rooms import EncryptedRooms
from everloop.channels.matrix.encrypted import ELSEWHERE
from everloop.channels.matrix.homeserver import Homeserver
from everloop.errors import ChannelDown, Undeliverable, VaultLocked
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import OutgoingFile, Rendered
from everloop.ports.channel_state import KeptState
from tests.channels.matrix.listener import Bot, part_for, place_of
from tests.channels.matrix.remembering import Memory
from tests.channels.matrix.secretive import further_device, secretive
from tests.channels.matrix.synapse import Synapse

CANARY = "a canary that nobody at the homeserver reads"
APPROVAL = "an approval that nobody there reads"
FILE = OutgoingFile("song.txt", "text/plain", f"{CANARY} in a file".encode())


async def test_nothing_of_an_encrypted_room_lies_readable_on_the_homeserver(bot: Bot, synapse: Synapse, tmp_path: Path):
    channel, said = bot.channel(Memory()), [f"{CANARY} {number}" for number in range(5)]
    async with secretive(synapse, tmp_path) as anna, bot.listening(anna.user, channel=channel) as listener:
        room = await anna.meet(bot.user)
        await anna.say(room, said[0])
        (heard,) = await listener.hears(1)
        assert await channel.chat_with(anna.user) == f"@{room}"
        draft = await channel.preview(place_of(heard), "", said[1], heard.reply_to)
        await channel.send(part_for(heard, said[2], draft=draft))
        asked = await channel.send(part_for(heard, said[3], key="k2", approval=APPROVAL))
        pressed = {"rel_type": "m.annotation", "event_id": asked, "key": "✅"}
        await anna.send(room, {"m.relates_to": pressed}, "m.reaction")
        await anna.say(room, "/approve no")
        assert (await listener.texts(2))[1] == "/approve no"  # the reaction was in clear, and is anybody's
        await channel.replace(place_of(heard), asked, Rendered(said[4], said[4]))
        await channel.send(part_for(heard, "", key="k3", files=(FILE,)))
        shown = await anna.until(lambda me: len(me.said(room, bot.user)) == 5 and me.shown(room, bot.user))
        assert (heard.text, shown) == (said[0], [said[2], said[4], "song.txt"])
        assert [text for text in (CANARY, "song.txt", APPROVAL) if synapse.has_stored(text)] == []

        await anna.say_in_clear(await anna.make_room(bot.user, direct=True), "hello in clear")  # the control
        plain = (await listener.hears(3))[2]
        await channel.send(part_for(plain, f"{CANARY}, which is no secret", key="k4"))
        assert synapse.has_stored(f"{CANARY}, which is no secret")


async def test_a_room_that_becomes_encrypted_is_never_written_to_in_clear_again(
    bot: Bot, synapse: Synapse, tmp_path: Path
):
    memory = Memory()
    sender = bot.channel(memory)  # in another process than the one that listens, and is told
    async with secretive(synapse, tmp_path) as anna, bot.listening(anna.user, channel=bot.channel(memory)) as listener:
        room = await anna.make_room(bot.user, direct=True)
        await anna.say_in_clear(room, "not yet")
        (heard,) = await listener.hears(1)
        await sender.send(part_for(heard, "in clear as yet"))
        file = await sender._events.upload(room, OutgoingFile("a.txt", "text/plain", b"a"))
        await anna.begin_encryption(room)
        with pytest.raises(ChannelDown, match="has become encrypted"):
            await sender._events.put(room, "file", file)
        await sender.send(part_for(heard, "encrypted from now on", key="k2"))
        await anna.answers(room, bot.user, 2)
        ours = [event for _, event in anna.events if event["sender"] == bot.user and event["type"] == "m.room.message"]
        assert [(each["content"]["body"], each["decrypted"]) for each in ours] == [
            ("in clear as yet", False),
            ("encrypted from now on", True),
        ]
        assert synapse.has_stored("in clear as yet")
        assert not synapse.has_stored("encrypted from now on")


async def test_a_room_that_was_encrypted_once_is_so_whatever_the_homeserver_says(bot: Bot, synapse: Synapse):
    http, memory = TrustedHttp(), Memory()
    server = Homeserver(synapse.url, bot.account.token, http)
    room = (await server.post("/_matrix/client/v3/createRoom", {}))["room_id"]  # of which it says that it is not
    assert await EncryptedRooms(server, memory).find(room) is None
    begun = RoomEvent("m.room.encryption", bot.user, "$1", {"rotation_period_msgs": 5}, state_key="")
    assert [await EncryptedRooms(server, memory).note(room, [event]) for event in (begun, begun)] == [False, True]
    found = await EncryptedRooms(server, memory).find(room)
    assert found
    assert (found.encrypted, found.messages) == (True, 5)
    await http.close()


class Locked(Memory):
    """What lies in it was sealed with a key that is lost."""

    def __init__(self, before: Memory) -> None:
        super().__init__()
        self._lost = {*before.kept}

    async def get(self, key: str) -> KeptState:
        if key in self._lost:
            raise VaultLocked("the key is lost")
        return await super().get(key)


async def test_with_a_new_login_it_goes_on_though_the_vaults_key_is_lost(bot: Bot, synapse: Synapse, tmp_path: Path):
    memory = Memory()
    async with secretive(synapse, tmp_path) as anna:
        async with bot.listening(anna.user, channel=bot.channel(memory)) as listener:
            room = await anna.meet(bot.user)
            await anna.say(room, "one")
            (heard,) = await listener.hears(1)
        lost = bot.channel(Locked(memory))
        with pytest.raises(ChannelDown, match="the key is lost"):
            await lost.send(part_for(heard, CANARY * 3))
        assert not synapse.has_stored(CANARY * 3)
        bot.account = further_device(synapse, bot.user)
        channel = bot.channel(Locked(memory))
        async with bot.listening(anna.user, channel=channel) as listener:
            await anna.until(lambda me: bot.account.device in me.client.device_store[bot.user])
            await anna.reaches(room)
            await anna.say(room, "two")
            (heard,) = await listener.hears(1)
            await channel.send(part_for(heard, CANARY * 3))
            assert (heard.text, await anna.answers(room, bot.user, 1)) == ("two", [CANARY * 3])
        assert not synapse.has_stored(CANARY * 3)


async def test_who_has_no_keys_says_nothing_in_clear_and_answers_once_there_are(
    bot: Bot, synapse: Synapse, tmp_path: Path
):
    async with secretive(synapse, tmp_path) as anna:
        async with bot.listening(anna.user) as listener:
            room = await anna.meet(bot.user)
            await anna.say(room, "hello")
            assert await anna.answers(room, bot.user, 1) == [ELSEWHERE]
            await anna.say_in_clear(room, "do you hear me?")
            (heard,) = await listener.hears(1)
            for part in (part_for(heard, CANARY * 2), part_for(heard, "", files=(FILE,))):
                with pytest.raises(Undeliverable, match="this room is encrypted"):
                    await bot.channel().send(part)
        assert not synapse.has_stored(CANARY * 2)
        channel = bot.channel(Memory())  # the extra is installed, and the gateway is begun again
        async with bot.listening(anna.user, channel=channel, resume=listener.resume) as later:
            await anna.until(lambda me: bot.account.device in me.client.device_store[bot.user])
            await anna.reaches(room)
            await anna.say(room, "and now?")
            (second,) = await later.hears(1)
            await channel.send(part_for(second, "I do"))
            assert (await anna.answers(room, bot.user, 2), second.text) == ([ELSEWHERE, "I do"], "and now?")


async def test_a_message_whose_key_is_late_is_heard_when_it_comes_also_after_a_restart(
    bot: Bot, synapse: Synapse, tmp_path: Path
):
    memory = Memory()
    async with secretive(synapse, tmp_path) as anna:
        async with bot.listening(anna.user, channel=bot.channel(memory)) as listener:
            room = await anna.meet(bot.user)
            await anna.say(room, "one")
            held = await anna.withhold_key(room)
            await listener.hears(1)
            await anna.say(room, "two")
            await anna.say_in_clear(await anna.make_room(bot.user), "three")
            assert await listener.texts(2) == ["one", "three"]
        async with bot.listening(anna.user, channel=bot.channel(memory), resume=listener.resume) as later:
            await anna.bring(held)
            assert await later.texts(1) == ["two"]
            await anna.say(room, "four")
            assert await later.texts(2) == ["two", "four"]
