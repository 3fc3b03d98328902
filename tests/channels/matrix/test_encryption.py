"""Encrypted rooms of a real homeserver, with people whose clients are matrix-nio's."""

import io
from pathlib import Path
from typing import Any

from nio.crypto import decrypt_attachment

from everloop.ports.channel import OutgoingFile
from tests.channels.matrix.listener import Bot, part_for, place_of
from tests.channels.matrix.remembering import Memory
from tests.channels.matrix.secretive import Secretive, further_device, secretive
from tests.channels.matrix.synapse import Synapse


async def test_people_and_we_write_to_each_other_also_after_a_restart(bot: Bot, synapse: Synapse, tmp_path: Path):
    memory = Memory()
    async with secretive(synapse, tmp_path) as anna:
        channel = bot.channel(memory)
        async with bot.listening(anna.user, channel=channel) as listener:
            room = await anna.make_room(bot.user, direct=True, encrypted=True)
            await anna.sees(bot.user)
            await anna.say(room, "hello")
            (heard,) = await listener.hears(1)
            await channel.send(part_for(heard, "good day"))
            await anna.answers(room, bot.user, 1)
        channel = bot.channel(memory)
        async with bot.listening(anna.user, channel=channel, resume=listener.resume) as again:
            await anna.say(room, "and now?")
            (second,) = await again.hears(1)
            await channel.send(part_for(second, "still here", key="k2"))
            shown = await anna.answers(room, bot.user, 2)
    assert [(each.text, each.account, each.direct) for each in (heard, second)] == [
        ("hello", anna.user, True),
        ("and now?", anna.user, True),
    ]
    assert shown == ["good day", "still here"]
    assert all(event["decrypted"] for event in sent_by(anna, bot.user))


async def test_in_a_group_all_devices_of_all_read_us_also_those_that_come_later(
    bot: Bot, synapse: Synapse, tmp_path: Path
):
    channel = bot.channel(Memory())
    async with (
        secretive(synapse, tmp_path) as anna,
        secretive(synapse, tmp_path) as ben,
        bot.listening(anna.user, ben.user, channel=channel) as listener,
    ):
        room = await anna.make_room(bot.user, ben.user, encrypted=True)
        await ben.client.join(room)
        await anna.sees(bot.user, ben.user)
        await ben.sees(bot.user, anna.user)
        await anna.say(room, "one")
        await listener.hears(1)
        await ben.say(room, "two")
        first, second = await listener.hears(2)
        await channel.send(part_for(second, "for both"))
        assert [await each.answers(room, bot.user, 1) for each in (anna, ben)] == [["for both"]] * 2
        async with secretive(synapse, tmp_path, further_device(synapse, anna.user)) as phone:
            await phone.until(lambda _: room in phone.client.rooms)
            await channel.send(part_for(first, "for the phone, too", key="k2"))
            await phone.until(lambda me: "for the phone, too" in me.shown(room, bot.user))
            await phone.say(room, "from the phone")
            await listener.hears(3)
        await ben.client.room_leave(room)
        await channel.send(part_for(first, "without ben", key="k3"))
        await anna.until(lambda me: "without ben" in me.shown(room, bot.user))
    assert [(each.text, each.account) for each in listener.heard] == [
        ("one", anna.user),
        ("two", ben.user),
        ("from the phone", anna.user),
    ]
    ids = [e["session_id"] for e in sent_by(anna, bot.user)]
    assert ids[0] == ids[1] != ids[2]  # who has left has no key to what is said afterwards


def sent_by(person: Secretive, user: str) -> list[dict[str, Any]]:
    """As they lie on the homeserver, of what could be read."""
    return [e for _, e in person.events if e["sender"] == user and e["type"] == "m.room.message"]


async def test_files_edits_and_drafts_are_encrypted_both_ways(bot: Bot, synapse: Synapse, tmp_path: Path):
    channel, data = bot.channel(Memory()), b"what nobody else reads" * 100
    async with secretive(synapse, tmp_path) as anna, bot.listening(anna.user, channel=channel) as listener:
        room = await anna.make_room(bot.user, direct=True, encrypted=True)
        await anna.sees(bot.user)
        said = await anna.say(room, "helo")
        await anna.say(
            room,
            "* hello",
            **{
                "m.new_content": {"msgtype": "m.text", "body": "hello"},
                "m.relates_to": {"rel_type": "m.replace", "event_id": said},
            },
        )
        up, keys = await anna.client.upload(io.BytesIO(data), "text/plain", "a.txt", encrypt=True, filesize=len(data))
        file = {**keys, "url": up.content_uri, "mimetype": "text/plain"}
        await anna.send(room, {"msgtype": "m.file", "body": "a.txt", "file": file})
        first, edit, sent = await listener.hears(3)
        assert await channel.fetch(sent.files[0], 10_000) == ("a.txt", data)
        draft = await channel.preview(place_of(first), "", "thin", first.reply_to)
        await channel.preview(place_of(first), draft, "think", first.reply_to)
        answer = await channel.send(part_for(first, "I think so", draft=draft))
        await channel.send(part_for(first, "", key="k2", files=(OutgoingFile("b.txt", "text/plain", data),)))
        shown = await anna.answers(room, bot.user, 2)
        got = next(each for each in anna.said(room, bot.user) if each.get("msgtype") == "m.file")
        down = await anna.client.download(got["file"]["url"])
        secret = got["file"]
        opened = decrypt_attachment(down.body, secret["key"]["k"], secret["hashes"]["sha256"], secret["iv"])
    assert (first.text, edit.text, edit.replaces) == ("helo", "hello", said)
    assert (answer, shown, opened) == (draft, ["I think so", "b.txt"], data)
    assert "url" not in got
    assert data not in down.body


async def test_what_is_in_clear_in_an_encrypted_room_is_not_heard(bot: Bot, synapse: Synapse, tmp_path: Path):
    channel = bot.channel(Memory())
    async with secretive(synapse, tmp_path) as anna, bot.listening(anna.user, channel=channel) as listener:
        room = await anna.make_room(bot.user, direct=True, encrypted=True)
        await anna.sees(bot.user)
        await anna.say(room, "read me")
        await listener.hears(1)
        await anna.say_in_clear(room, "forged by whoever runs the homeserver")
        plain = await anna.make_room(bot.user, direct=True)
        await anna.say_in_clear(plain, "where all is in clear")
        assert await listener.texts(2) == ["read me", "where all is in clear"]
