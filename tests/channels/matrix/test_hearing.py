"""What people do with a client of theirs, and what the channel hears of it: on a real homeserver."""

import nio
import pytest

from everloop.channels.matrix.encrypted import ELSEWHERE, UNREADABLE
from everloop.errors import StoreError
from everloop.ports.channel import Incoming
from tests.channels.matrix.listener import Bot, Listener
from tests.channels.matrix.somebody import Somebody


async def group_of(bot: Bot, anna: Somebody, *others: Somebody) -> str:
    room = await anna.make_room(bot.user, *(each.user for each in others))
    for each in others:
        await each.client.join(room)
    return room


async def test_what_is_said_in_a_room_of_two_is_its_persons(bot: Bot, anna: Somebody):
    async with bot.listening() as listener:
        room = await anna.make_room(bot.user, direct=True)
        event = await anna.say(room, "hello")  # which is said before we have joined
        (heard,) = await listener.hears(1)
    assert heard == Incoming(
        event=event,
        chat=f"@{room}",
        account=anna.user,
        text="hello",
        direct=True,
        reply_to=heard.reply_to,
        name=anna.user.partition(":")[0][1:],
    )


async def test_what_we_say_ourselves_is_not_heard_and_what_bots_say_is_marked(bot: Bot, anna: Somebody):
    channel = bot.channel()
    async with bot.listening(anna.user, channel=channel) as listener:
        room = await anna.make_room(bot.user)
        await anna.say(room, "one")
        (first,) = await listener.hears(1)
        await channel._events.put(room, "x", {"msgtype": "m.text", "body": "from another device of ours"})
        await anna.send(room, {"msgtype": "m.notice", "body": "beep"})
        await anna.send(room, {"msgtype": "m.emote", "body": "waves"})
        heard = await listener.hears(3)
    assert first.direct  # nobody else was ever invited
    assert [(each.text, each.bot) for each in heard] == [("one", False), ("beep", True), ("* waves", False)]


async def test_a_mention_is_what_the_client_says_or_else_our_name(bot: Bot, anna: Somebody, ben: Somebody):
    name = bot.user.partition(":")[0][1:]
    link = f'<a href="https://matrix.to/#/{bot.user.replace("@", "%40")}">it</a>: look'
    said = [
        ({"body": f"{name}: look", "m.mentions": {"user_ids": [bot.user]}}, True, "look"),
        ({"body": f"{name}: look", "m.mentions": {}}, False, "look"),
        ({"body": "look", "m.mentions": {"user_ids": [ben.user], "room": True}}, False, "look"),
        ({"body": "look", "m.mentions": {"user_ids": bot.user}}, False, "look"),
        ({"body": "it: look", "format": "org.matrix.custom.html", "formatted_body": link}, True, "it: look"),
        ({"body": f"what does {name.upper()} think?"}, True, f"what does {name.upper()} think?"),
        ({"body": f"{bot.user} !new"}, True, "/new"),
        ({"body": f"{name}x is another"}, False, f"{name}x is another"),
        ({"body": "!important, not a command"}, False, "!important, not a command"),
    ]
    async with bot.listening(anna.user) as listener:
        room = await group_of(bot, anna, ben)
        for content, _, _ in said:
            await anna.send(room, {"msgtype": "m.text", **content})
        heard = await listener.hears(len(said))
    assert [(each.mentioned, each.text, each.direct) for each in heard] == [(m, t, False) for _, m, t in said]


async def test_replies_and_threads_say_what_they_belong_to(bot: Bot, anna: Somebody, ben: Somebody):
    channel = bot.channel()
    async with bot.listening(anna.user, channel=channel) as listener:
        room = await group_of(bot, anna, ben)
        first = await anna.say(room, "first")
        await listener.hears(1)
        ours = await channel._events.put(room, "ours", {"msgtype": "m.text", "body": "an answer"})
        relation = {"m.in_reply_to": {"event_id": ours}}
        fallback = f"> <{bot.user}> an answer\n> more of it\n\nthanks"
        await ben.say(room, fallback, **{"m.relates_to": relation})
        await ben.say(room, "> a quote of my own", **{"m.relates_to": {"m.in_reply_to": {"event_id": first}}})
        thread = {"rel_type": "m.thread", "event_id": first, "is_falling_back": True}
        await ben.say(room, "aside", **{"m.relates_to": {**thread, "m.in_reply_to": {"event_id": ours}}})
        below_ours = {"rel_type": "m.thread", "event_id": ours}
        await ben.say(room, "below yours", **{"m.relates_to": below_ours})
        heard = (await listener.hears(5))[1:]
    found = [(each.text, each.replies, each.quoted, each.thread) for each in heard]
    assert found == [
        ("thanks", True, "an answer", ""),
        ("> a quote of my own", False, "first", ""),
        ("aside", False, "", first),
        ("below yours", True, "", ours),
    ]


async def test_an_edit_is_its_authors_and_what_is_taken_back_is_gone(bot: Bot, anna: Somebody, ben: Somebody):
    async with bot.listening(anna.user) as listener:
        room = await group_of(bot, anna, ben)
        first = await anna.say(room, "teh first")
        second = await anna.say(room, "the second")
        edit = {"m.new_content": {"msgtype": "m.text", "body": "the first"}}
        relation = {"m.relates_to": {"rel_type": "m.replace", "event_id": first}}
        await ben.say(room, "* forged", **edit, **relation)
        edited = await anna.say(room, "* the first", **edit, **relation)
        redaction = await anna.client.room_redact(room, second)
        heard = await listener.hears(4)
    told = [(each.event, each.account, each.text, each.replaces, each.withdrawn) for each in heard]
    assert told == [
        (first, anna.user, "teh first", "", False),
        (second, anna.user, "the second", "", False),
        (edited, anna.user, "the first", first, False),
        (redaction.event_id, anna.user, "", second, True),
    ]


async def test_nothing_that_was_said_while_we_were_away_is_lost(bot: Bot, anna: Somebody):
    async with bot.listening() as listener:
        room = await anna.make_room(bot.user, direct=True)
        await anna.say(room, "0")
        await listener.hears(1)
        resume = listener.resume
    for number in range(1, 91):
        await anna.say(room, str(number))
    async with bot.listening(resume=resume) as later:
        heard = await later.texts(90)
        assert heard == [str(number) for number in range(1, 91)]
        await anna.say(room, "last")
        assert (await later.texts(91))[90:] == ["last"]


async def test_all_that_was_said_since_the_invitation_is_heard(bot: Bot, anna: Somebody):
    room = await anna.make_room()
    await anna.say(room, "to nobody")
    await anna.client.room_invite(room, bot.user)
    for number in range(25):  # more than come with a sync
        await anna.say(room, str(number))
    async with bot.listening(anna.user) as listener:
        assert await listener.texts(25) == [str(number) for number in range(25)]


async def test_what_was_said_before_we_were_there_is_not_for_us(bot: Bot, anna: Somebody, ben: Somebody):
    room = await anna.make_room(ben.user)
    await anna.say(room, "before")
    async with bot.listening(anna.user) as listener:
        await anna.client.room_invite(room, bot.user)
        await anna.say(room, "after the invitation")
        await listener.hears(1)
        await anna.say(room, "more")
        assert await listener.texts(2) == ["after the invitation", "more"]
    async with bot.listening(anna.user) as anew:  # as with a new home: what was said there is answered already
        await anna.say(room, "now")
        assert await anew.texts(1) == ["now"]


async def test_a_message_that_was_not_committed_comes_again(bot: Bot, anna: Somebody):
    class Full(Listener):
        async def __call__(self, incoming: Incoming, resume: str = ""):
            raise StoreError("the disk is full")

    async with bot.listening() as listener:
        room = await anna.make_room(bot.user, direct=True)
        await anna.say(room, "one")
        await listener.hears(1)
        resume = listener.resume
    event = await anna.say(room, "two")
    with pytest.raises(StoreError):
        await bot.channel().run(Full(set()), resume)
    async with bot.listening(resume=resume) as later:
        assert [each.event for each in await later.hears(1)] == [event]
        await anna.until(lambda me: (event, bot.user) in me.receipts)


async def test_a_third_person_makes_it_a_group_for_good(bot: Bot, anna: Somebody, ben: Somebody):
    async with bot.listening() as listener:
        room = await anna.make_room(bot.user, direct=True)
        await anna.say(room, "between us")
        await listener.hears(1)
        await anna.client.room_invite(room, ben.user)  # who need not even come
        await anna.say(room, "with ben")
        await listener.hears(2)
        await anna.client.room_kick(room, ben.user)
        await anna.say(room, "alone again")
        heard = await listener.hears(3)
        resume = listener.resume
    async with bot.listening(resume=resume) as later:
        await anna.say(room, "after a restart")
        (last,) = await later.hears(1)
    assert [(each.direct, each.chat) for each in (*heard, last)] == [
        (True, f"@{room}"),
        (False, room),
        (False, room),
        (False, room),
    ]


@pytest.mark.parametrize(
    "state",
    [
        {"type": "m.room.join_rules", "content": {"join_rule": "public"}},
        {"type": "m.room.history_visibility", "content": {"history_visibility": "world_readable"}},
        {"type": "m.room.guest_access", "content": {"guest_access": "forbidden"}},
    ],
)
async def test_a_room_that_others_may_read_is_nobodys_own(bot: Bot, anna: Somebody, state: dict):
    async with bot.listening() as listener:
        room = await anna.make_room(bot.user, direct=True, initial_state=[{**state, "state_key": ""}])
        await anna.say(room, "hello")
        (heard,) = await listener.hears(1)
    assert heard.direct == (state["type"] == "m.room.guest_access")


async def test_a_known_person_brings_us_anywhere_and_a_stranger_to_a_place_of_two(
    bot: Bot, anna: Somebody, ben: Somebody
):
    async with bot.listening(anna.user) as listener:
        await ben.make_room(bot.user, anna.user)  # which is not followed
        lie = await ben.make_room(anna.user, direct=True)
        await ben.client.room_put_state(
            lie, "m.room.member", {"membership": "invite", "is_direct": True}, state_key=bot.user
        )
        group = await anna.make_room(bot.user, ben.user)
        alone = await ben.make_room(bot.user, direct=True)
        await anna.say(group, "to all")
        await listener.hears(1)
        await ben.say(alone, "let me in")
        heard = await listener.hears(2)
        await ben.until(lambda me: _left(me, lie, bot.user))
        assert {each.text for each in heard} == {"to all", "let me in"}
        assert {*await _rooms(bot)} == {group, alone}


async def test_nobody_brings_us_anywhere_if_the_settings_say_so(bot: Bot, anna: Somebody, ben: Somebody):
    async with bot.listening(anna.user, join="never"):
        await anna.make_room(bot.user, direct=True)
    async with bot.listening(join="always") as listener:  # which sees the one that still waits, too
        room = await ben.make_room(bot.user, anna.user)
        await ben.say(room, "hi")
        assert await listener.texts(1) == ["hi"]
        assert len(await _rooms(bot)) == 2


async def test_an_invitation_is_followed_after_a_restart_too(bot: Bot, anna: Somebody):
    await anna.make_room(bot.user)
    listener = Listener({anna.user})

    class Killed(Exception):
        pass

    async def skip_to(resume: str) -> None:
        listener.resume = resume
        raise Killed

    listener.skip_to = skip_to  # type: ignore[method-assign]
    with pytest.raises(Killed):
        await bot.channel().run(listener, "")
    assert await _rooms(bot) == []
    async with bot.listening(anna.user, resume=listener.resume):
        await anna.until(lambda me: any(e.get("state_key") == bot.user and _is_in(e) for _, e in me.events))


def _is_in(event: dict) -> bool:
    return event["content"].get("membership") == "join"


def _left(me: Somebody, room: str, user: str) -> bool:
    ours = [event for where, event in me.events if where == room and event.get("state_key") == user]
    return bool(ours) and ours[-1]["content"]["membership"] == "leave"


async def _rooms(bot: Bot) -> list[str]:
    client = nio.AsyncClient(bot._url, bot.user)
    client.restore_login(bot.user, bot.account.device, bot.account.token)
    try:
        return (await client.joined_rooms()).rooms
    finally:
        await client.close()


ENCRYPTED = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "AwgA"}


async def test_who_writes_encrypted_is_told_once_and_invited_where_it_can_be_read(bot: Bot, anna: Somebody):
    async with bot.listening() as listener:
        room = await anna.make_room(bot.user, direct=True, encrypted=True)
        for _ in range(2):
            await anna.send(room, ENCRYPTED, "m.room.encrypted")
        await anna.answers(room, bot.user, 1)
        (invited,) = anna.client.invited_rooms
        await anna.client.join(invited)
        await anna.say(invited, "here?")
        assert [(each.text, each.direct) for each in await listener.hears(1)] == [("here?", True)]
        resume = listener.resume
    async with bot.listening(resume=resume) as later:
        await anna.send(room, ENCRYPTED, "m.room.encrypted")
        await anna.say(room, "in clear")
        assert await later.texts(1) == ["in clear"]
        another = await anna.make_room(bot.user, direct=True, encrypted=True)
        await anna.send(another, ENCRYPTED, "m.room.encrypted")
        await anna.answers(another, bot.user, 1)  # which is told there, too, after whatever is told here
    assert [said[:66] for said in anna.shown(room, bot.user)] == [ELSEWHERE[:66]]
    assert anna.shown(another, bot.user) == [ELSEWHERE]
    assert {*anna.client.invited_rooms} <= {invited}
    assert await bot.channel().chat_with(anna.user) == f"@{invited}"


async def test_in_a_group_or_where_we_go_nowhere_by_ourselves_nobody_is_invited(
    bot: Bot, anna: Somebody, ben: Somebody
):
    async with bot.listening(anna.user) as listener:
        group = await anna.make_room(bot.user, ben.user, encrypted=True)
        await anna.send(group, ENCRYPTED, "m.room.encrypted")
        assert await anna.answers(group, bot.user, 1) == [UNREADABLE]
        alone = await anna.make_room(bot.user, direct=True, encrypted=True)
        await anna.say(alone, "in clear")
        await listener.hears(1)
    async with bot.listening(join="never", resume=listener.resume):
        await anna.send(alone, ENCRYPTED, "m.room.encrypted")
        assert await anna.answers(alone, bot.user, 1) == [UNREADABLE]
    assert {*await _rooms(bot)} == {group, alone}
