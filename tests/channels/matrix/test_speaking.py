"""What the channel sends, as a client of somebody's sees it: on a real homeserver."""

import io
import json
import secrets

import pytest
from msgspec import structs

from everloop.channels.matrix import check_settings, log_in
from everloop.channels.matrix.listening import read_resume
from everloop.channels.matrix.wire import Matrix
from everloop.core.mail import Address, ReplyTo
from everloop.errors import ChannelDown, ChannelRefused, SettingsError, Undeliverable
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import FileRef, Incoming, OutgoingFile, Probed, Rendered
from everloop.readings.keys import escaped
from tests.channels.matrix.listener import Bot, part_for, place_of
from tests.channels.matrix.somebody import Somebody
from tests.channels.matrix.synapse import PASSWORD, Synapse


async def in_group(
    bot: Bot, anna: Somebody, ben: Somebody, channel, text: str = "hello", **more
) -> tuple[str, Incoming]:
    async with bot.listening(anna.user, channel=channel) as listener:
        room = await anna.make_room(bot.user, ben.user)
        await anna.say(room, text, **more)
        (heard,) = await listener.hears(1)
    return room, heard


async def in_two(bot: Bot, anna: Somebody, channel: Matrix) -> tuple[str, Incoming]:
    async with bot.listening(channel=channel) as listener:
        room = await anna.make_room(bot.user, direct=True)
        await anna.say(room, "hello")
        (heard,) = await listener.hears(1)
    return room, heard


async def test_an_answer_in_a_group_is_a_reply_that_calls_nobody_else(bot: Bot, anna: Somebody, ben: Somebody):
    channel = bot.channel()
    room, heard = await in_group(bot, anna, ben, channel)
    part = part_for(heard, f"<strong>{ben.user}</strong>", plain=ben.user)
    receipts = [await channel.send(part) for _ in range(2)]
    await anna.answers(room, bot.user, 1)
    assert receipts[0] == receipts[1]
    assert anna.said(room, bot.user) == [
        {
            "msgtype": "m.text",
            "body": ben.user,
            "format": "org.matrix.custom.html",
            "formatted_body": f"<strong>{ben.user}</strong>",
            "m.mentions": {"user_ids": [anna.user]},
            "m.relates_to": {"m.in_reply_to": {"event_id": heard.event}},
            "com.beeper.linkpreviews": [],
        }
    ]


async def test_what_is_for_one_person_is_not_said_where_others_have_come_in(bot: Bot, anna: Somebody, ben: Somebody):
    channel = bot.channel()
    room, heard = await in_two(bot, anna, channel)
    sent = await channel.send(part_for(heard, "for anna", "k1"))
    await anna.client.room_invite(room, ben.user)
    elsewhere = bot.channel()  # another process, which does not listen
    for speaking in (channel, elsewhere):
        with pytest.raises(Undeliverable, match="others have come into this room"):
            await speaking.send(part_for(heard, "a secret", "k2"))
        with pytest.raises(Undeliverable, match="others have come into this room"):
            await speaking.preview(place_of(heard), "", "a sec", heard.reply_to)
        with pytest.raises(Undeliverable, match="others have come into this room"):
            await speaking.replace(place_of(heard), sent, Rendered("a secret", "a secret"))
    await channel.send(structs.replace(part_for(heard, "hello all", "k3"), address=Address("matrix", escaped(room))))
    await anna.answers(room, bot.user, 2)
    assert [each.get("body") for each in anna.said(room, bot.user)] == ["for anna", "hello all"]
    await channel.withdraw(place_of(heard), sent)  # what was said before may still be taken back


async def test_so_it_is_while_it_listens(bot: Bot, anna: Somebody, ben: Somebody):
    channel = bot.channel()
    async with bot.listening(anna.user, channel=channel) as listener:
        room = await anna.make_room(bot.user, direct=True)
        await anna.say(room, "hello")
        (heard,) = await listener.hears(1)
        await channel.send(part_for(heard, "for anna", "k1"))
        await anna.client.room_invite(room, ben.user)
        await anna.say(room, "and now?")
        await listener.hears(2)  # by now it knows
        with pytest.raises(Undeliverable, match="others have come into this room"):
            await channel.send(part_for(heard, "a secret", "k2"))


async def test_an_answer_in_a_thread_stays_in_it(bot: Bot, anna: Somebody, ben: Somebody):
    channel = bot.channel(notices=True)
    async with bot.listening(anna.user, channel=channel) as listener:
        room = await anna.make_room(bot.user, ben.user)
        root = await anna.say(room, "root")
        aside = await anna.say(room, "aside", **{"m.relates_to": {"rel_type": "m.thread", "event_id": root}})
        _, heard = await listener.hears(2)
    await channel.send(part_for(heard, "here", plain="here"))
    await channel.send(part_for(heard, "there", key="k2", plain="there", reply_to=ReplyTo("")))
    await anna.answers(room, bot.user, 2)
    thread = {"rel_type": "m.thread", "event_id": root, "is_falling_back": True}
    assert [(said["msgtype"], said["m.relates_to"]) for said in anna.said(room, bot.user)] == [
        ("m.notice", {**thread, "m.in_reply_to": {"event_id": aside}}),
        ("m.notice", {**thread, "m.in_reply_to": {"event_id": root}}),
    ]


async def test_a_draft_that_a_killed_process_has_left_becomes_the_answer(bot: Bot, anna: Somebody):
    channel = bot.channel()
    room, heard = await in_two(bot, anna, channel)
    left = await channel.preview(place_of(heard), "", "An ans", heard.reply_to)
    later = bot.channel()
    assert await later.preview(place_of(heard), "", "An answ", heard.reply_to) == left
    last = bot.channel()
    assert await last.send(part_for(heard, "<p>An answer</p>", plain="An answer")) == left
    again = bot.channel()  # whose process has not heard that it was sent
    await again.send(part_for(heard, "<p>An answer</p>", plain="An answer"))
    await again.send(part_for(heard, "<p>Another</p>", key="k2", plain="Another"))
    assert await anna.answers(room, bot.user, 2) == ["An answer", "Another"]


async def test_what_was_sent_in_place_of_a_draft_can_still_be_changed(bot: Bot, anna: Somebody):
    channel = bot.channel()
    room, heard = await in_two(bot, anna, channel)
    draft = await channel.preview(place_of(heard), "", "dra", heard.reply_to)
    part = part_for(heard, "<p>done</p>", plain="done", draft=draft)
    await channel.send(part)
    edit = await bot.channel().send(part_for(heard, "<p>done</p>", plain="done"))  # after a crash: that of the edit
    assert edit != draft
    await channel.replace(place_of(heard), edit, Rendered("<p>changed</p>", "changed"))
    await anna.until(lambda me: me.shown(room, bot.user) == ["changed"])
    await channel.withdraw(place_of(heard), edit)
    await anna.until(lambda me: me.shown(room, bot.user) == [])


async def test_files_come_and_go(bot: Bot, anna: Somebody):
    channel, sound = bot.channel(), secrets.token_bytes(3000)
    async with bot.listening(channel=channel) as listener:
        room = await anna.make_room(bot.user, direct=True)
        sent, _ = await anna.client.upload(io.BytesIO(sound), "audio/ogg", "voice.ogg", filesize=len(sound))
        voice = {"msgtype": "m.audio", "body": "../voice.ogg", "url": sent.content_uri}
        await anna.send(room, {**voice, "org.matrix.msc3245.voice": {}})
        elsewhere = {"msgtype": "m.file", "body": "x", "url": "https://evil.example/x"}
        await anna.send(room, elsewhere)
        gone = {"msgtype": "m.file", "body": "gone.txt", "url": "mxc://test.local/nothing"}
        await anna.send(room, gone)
        heard, missing = await listener.hears(2)
    assert (heard.text, heard.voice) == ("", heard.files)
    assert await channel.fetch(heard.files[0], 3000) == ("voice.ogg", sound)
    with pytest.raises(Undeliverable, match="more than 2999 bytes"):
        await channel.fetch(heard.files[0], 2999)
    with pytest.raises(Undeliverable, match="404 M_NOT_FOUND"):
        await channel.fetch(missing.files[0], 1000)
    picture = OutgoingFile("a plot.png", "image/png", b"\x89PNG")
    event = await channel.send(part_for(heard, "", files=(picture,)))
    await anna.answers(room, bot.user, 1)
    (content,) = anna.said(room, bot.user)
    url = content.pop("url")
    assert content == {
        "msgtype": "m.image",
        "body": "a plot.png",
        "filename": "a plot.png",
        "info": {"mimetype": "image/png", "size": 4},
        "m.mentions": {},
    }
    assert (await anna.client.download(url)).body == b"\x89PNG"
    assert event == await channel.send(part_for(heard, "", files=(picture,)))
    with pytest.raises(Undeliverable, match="413 M_TOO_LARGE"):  # this server takes one megabyte
        await channel.send(part_for(heard, "", key="k2", files=(OutgoingFile("x", "a/b", bytes(2_000_000)),)))


async def test_a_question_is_answered_by_a_reaction_to_it_and_to_no_other(bot: Bot, anna: Somebody, ben: Somebody):
    channel = bot.channel()
    async with bot.listening(anna.user, channel=channel) as listener:
        room = await anna.make_room(bot.user, ben.user)
        await ben.client.join(room)
        await anna.say(room, "do it")
        (heard,) = await listener.hears(1)
        question = await channel.send(part_for(heard, "May I?", plain="May I?", approval="a1", kind="question"))
        forged = await ben.say(room, "May I?", **{"org.everloop.approval": "a2"})
        await anna.until(lambda me: len(_reactions(me, bot.user)) == 2)
        for event, key in ((forged, "✅"), (question, "🎉"), (question, "👎"), (question, "✅️")):
            relation = {"rel_type": "m.annotation", "event_id": event, "key": key}
            await anna.send(room, {"m.relates_to": relation}, "m.reaction")
        answers = (await listener.hears(4))[2:]
    assert _reactions(anna, bot.user) == [(question, "✅"), (question, "❌")]
    assert [(each.account, each.text, each.mentioned) for each in answers] == [
        (anna.user, "/deny a1", True),
        (anna.user, "/approve a1", True),
    ]


def _reactions(me: Somebody, by: str) -> list[tuple[str, str]]:
    given = [e["content"]["m.relates_to"] for _, e in me.events if e["type"] == "m.reaction" and e["sender"] == by]
    return [(each["event_id"], each["key"]) for each in given]


async def test_it_reacts_and_types(bot: Bot, anna: Somebody):
    channel = bot.channel()
    room, heard = await in_two(bot, anna, channel)
    await channel.signal(place_of(heard), "typing", heard.reply_to)
    await anna.until(lambda me: [bot.user] in me.typed)
    await channel.signal(place_of(heard), "done", heard.reply_to)
    await anna.until(lambda me: me.typed[-1] == [])
    for _ in range(2):
        await channel.react(place_of(heard), heard.reply_to, "🎉")
    await anna.until(lambda me: _reactions(me, bot.user) == [(heard.event, "🎉")])
    assert room


async def test_we_may_speak_first_and_go_on_in_the_same_room(bot: Bot, anna: Somebody, ben: Somebody):
    channel = bot.channel()
    first = await channel.chat_with(anna.user)
    assert await channel.chat_with(anna.user) == first
    room = first.removeprefix("@")
    await anna.client.join(room)
    async with bot.listening(channel=channel) as listener:
        await anna.say(room, "who are you?")
        (heard,) = await listener.hears(1)
        assert (heard.chat, heard.direct) == (first, True)
        theirs = await ben.make_room(bot.user, direct=True)
        await ben.say(theirs, "hi")
        heard = 1
        while read_resume(listener.resume).invitations or heard == 1:  # until it is joined, and noted
            heard += 1
            await listener.hears(heard)
            await ben.say(theirs, "and?")
    assert await channel.chat_with(ben.user) == f"@{theirs}"  # which they have begun
    await anna.client.room_invite(room, ben.user)
    assert await channel.chat_with(anna.user) not in (first, room)
    for nobody in (bot.user, "anna", "@anna", "!room:test.local"):
        with pytest.raises(Undeliverable, match="no user id"):
            await channel.chat_with(nobody)


async def test_where_we_may_not_speak_nothing_is_tried_again(bot: Bot, anna: Somebody):
    channel = bot.channel()
    async with bot.listening(anna.user, channel=channel) as listener:
        room = await anna.make_room(bot.user)
        await anna.say(room, "hello")
        (heard,) = await listener.hears(1)
    await anna.client.room_kick(room, bot.user)
    with pytest.raises(Undeliverable, match="403 M_FORBIDDEN"):
        await channel.send(part_for(heard, "x"))
    for chat in ("room", escaped("#alias:test.local"), escaped("!" + "x" * 300)):
        with pytest.raises(Undeliverable):
            await channel.send(part_for(heard, "x", address=Address("matrix", chat), reply_to=ReplyTo("")))


async def test_a_room_with_a_long_name_is_known_by_the_letter(bot: Bot, anna: Somebody):
    _, heard = await in_two(bot, anna, bot.channel())
    long = "!" + "é" * 100
    told = json.loads(heard.reply_to) | {"chat": long}
    part = part_for(heard, "x", address=Address("matrix", escaped(long)), reply_to=ReplyTo(json.dumps(told)))
    with pytest.raises(Undeliverable, match="403 M_FORBIDDEN"):  # it has asked for that room
        await bot.channel().send(part)


async def test_a_token_that_is_not_accepted_is_told_and_nothing_is_lost(bot: Bot, anna: Somebody):
    _, heard = await in_two(bot, anna, bot.channel())
    wrong = bot.channel(access_token="sk-canary-of-nobody")
    for call in (wrong.probe, lambda: wrong.run(None, "")):  # type: ignore[arg-type]
        with pytest.raises(ChannelRefused, match="does not accept the access token") as refused:
            await call()
        assert "canary" not in str(refused.value)
    with pytest.raises(ChannelDown, match="does not accept the access token"):
        await wrong.send(part_for(heard, "x"))
    other = bot.channel(user_id="@somebody:test.local")
    with pytest.raises(ChannelRefused, match=f"that of {bot.user}, and channels.matrix.user_id says @somebody"):
        await other.probe()
    await anna.client.logout()
    assert (await bot.channel(user_id=bot.user).probe()).missing == ()


async def test_a_trial_call_says_who_we_are(bot: Bot):
    assert await bot.channel().probe() == Probed(account=bot.user, link=f"https://matrix.to/#/{bot.user}")


async def test_a_password_is_changed_into_a_token_once(synapse: Synapse, bot: Bot):
    http = TrustedHttp()
    asked = {"homeserver": f"{synapse.url}/", "user_id": bot.user, "password": PASSWORD}
    kept = await log_in(asked, http)
    again = await log_in({**asked, "device_id": kept["device_id"]}, http)
    probed = await bot.channel(access_token=again["access_token"]).probe()
    assert (kept["homeserver"], kept["user_id"], probed.account) == (synapse.url, bot.user, bot.user)
    assert again["device_id"] == kept["device_id"]
    assert check_settings(kept).access_token == kept["access_token"]
    with pytest.raises(ChannelRefused, match="does not accept this user id with this password"):
        await log_in({**asked, "password": "sk-canary-wrong"}, http)
    with pytest.raises(SettingsError, match="must begin with https://"):
        await log_in({**asked, "homeserver": "matrix.example"}, http)
    await http.close()


async def test_a_homeserver_that_is_not_there_is_told_without_the_token(synapse: Synapse, bot: Bot, anna: Somebody):
    _, heard = await in_two(bot, anna, bot.channel())
    away = bot.channel(homeserver="http://127.0.0.1:1", access_token="sk-canary-away")
    file = FileRef(json.dumps(["mxc://test.local/b", "x"]))
    for call in (away.probe, lambda: away.send(part_for(heard, "x")), lambda: away.fetch(file, 9)):
        with pytest.raises(ChannelDown, match=r"127\.0\.0\.1:1 cannot be reached") as down:
            await call()
        assert "canary" not in str(down.value)
