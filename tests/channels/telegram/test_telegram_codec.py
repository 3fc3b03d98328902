"""What an update of Telegram's means: who says what where, to whom, and what it belongs to."""

import json
from typing import Any

import pytest
from msgspec import structs
from telegram import Update

from everloop.channels.telegram.codec import Press, offset_in, parse, read, resume_at
from everloop.channels.telegram.updates import TelegramBot, TelegramUpdate, UpdateNumber
from everloop.core.mail import ReplyTo
from everloop.ports.channel import FileRef, Incoming

ME = TelegramBot(7, is_bot=True, first_name="Ever", username="Ever_bot")
ANNA = {"id": 1001, "is_bot": False, "first_name": "Anna", "last_name": "Bell", "username": "anna"}
US = {"id": 7, "is_bot": True, "first_name": "Ever", "username": "Ever_bot"}
ALONE = {"id": 1001, "type": "private", "first_name": "Anna"}
GROUP = {"id": -1001, "type": "supergroup", "title": "Friends"}
SAID = Incoming(
    event="7:1001:5",
    chat="1001",
    account="1001",
    name="Anna Bell",
    text="hello",
    reply_to=ReplyTo('{"chat":"1001","message":5}'),
)
SAID_IN_GROUP = structs.replace(
    SAID, event="7:-1001:5", chat="-1001", direct=False, reply_to=ReplyTo('{"chat":"-1001","message":5}')
)


def update(kind: str = "message", chat: dict[str, Any] = ALONE, **message: Any) -> dict[str, Any]:
    return {"update_id": 90, kind: {"message_id": 5, "date": 1, "chat": chat, "from": ANNA, **message}}


def heard(said: dict[str, Any], me: TelegramBot = ME) -> Incoming | Press | None:
    found = read(json.dumps(said).encode())
    assert isinstance(found, TelegramUpdate)
    return parse(found, me)


def entity(type: str, text: str, of: str, **more: Any) -> dict[str, Any]:
    """Where Telegram says that this stretch of a text is, in UTF-16 code units."""
    before = of[: of.index(text)]
    return {
        "type": type,
        "offset": len(before.encode("utf-16-le")) // 2,
        "length": len(text.encode("utf-16-le")) // 2,
        **more,
    }


def test_a_message_in_a_chat_of_two_and_one_in_a_group():
    assert heard(update(text="hello")) == SAID
    assert heard(update(text="hello", chat=GROUP)) == SAID_IN_GROUP


def test_the_same_ids_at_another_bot_are_another_message():
    assert heard(update(text="hello"), TelegramBot(8, username="other")) == structs.replace(SAID, event="8:1001:5")
    assert [offset_in(resume_at(ME, 91), me) for me in (ME, TelegramBot(8))] == [91, 0]
    assert [offset_in(resume, ME) for resume in ("", "91", "7:", "7:x", "7:²", "7:-1")] == [0] * 6


@pytest.mark.parametrize(
    ("text", "kind", "named", "mentioned", "remains"),
    [
        ("@Ever_bot how are you", "mention", "@Ever_bot", True, "how are you"),
        ("@ever_BOT how are you", "mention", "@ever_BOT", True, "how are you"),
        ("😀 hello @Ever_bot", "mention", "@Ever_bot", True, "😀 hello @Ever_bot"),
        ("😀 @other_bot and more", "mention", "@other_bot", False, "😀 @other_bot and more"),
        ("@Ever_bot", "mention", "@Ever_bot", True, "@Ever_bot"),
        ("@Ever_bots", "mention", "@Ever_bots", False, "@Ever_bots"),
        ("/new@Ever_bot", "bot_command", "/new@Ever_bot", True, "/new"),
        ("/model@EVER_BOT fast", "bot_command", "/model@EVER_BOT", True, "/model fast"),
        ("/new", "bot_command", "/new", False, "/new"),
    ],
)
def test_in_a_group_it_is_seen_whether_we_are_named(text: str, kind: str, named: str, mentioned: bool, remains: str):
    said = update(text=text, chat=GROUP, entities=[entity(kind, named, text)])
    assert heard(said) == structs.replace(SAID_IN_GROUP, text=remains, mentioned=mentioned)
    theirs = Update.de_json(said)
    assert theirs.message
    assert [*theirs.message.parse_entities().values()] == [named]


def test_a_name_without_an_account_of_its_own_mentions_us_by_our_id():
    text = "Ever, hello"
    said = [entity("text_mention", "Ever", text, user=user) for user in (US, ANNA)]
    found = [heard(update(text=text, chat=GROUP, entities=[each])) for each in said]
    assert found == [
        structs.replace(SAID_IN_GROUP, text=", hello", mentioned=True),
        structs.replace(SAID_IN_GROUP, text=text),
    ]


def test_our_name_and_a_command_after_it():
    text = "@Ever_bot /status"
    entities = [entity("mention", "@Ever_bot", text), entity("bot_command", "/status", text)]
    said = heard(update(text=text, chat=GROUP, entities=entities))
    assert said == structs.replace(SAID_IN_GROUP, text="/status", mentioned=True)


def test_a_command_for_another_bot_is_not_ours():
    text = "/new@other_bot"
    assert heard(update(text=text, chat=GROUP, entities=[entity("bot_command", text, text)])) is None
    talk = "try /new@other_bot"
    told = heard(update(text=talk, chat=GROUP, entities=[entity("bot_command", "/new@other_bot", talk)]))
    assert told == structs.replace(SAID_IN_GROUP, text=talk)


def test_a_link_is_told_with_where_it_leads():
    text = "😀 see here and there"
    links = [entity("text_link", word, text, url=f"https://x.example/{word}") for word in ("here", "there")]
    said = heard(update(text=text, entities=links))
    assert said == structs.replace(
        SAID, text="😀 see here (https://x.example/here) and there (https://x.example/there)"
    )


def test_replies_to_us_and_to_others():
    ours = {"message_id": 4, "date": 1, "chat": GROUP, "from": US, "text": "as I said"}
    found = [
        heard(update(text="hello", chat=GROUP, reply_to_message={**ours, "from": user}, **more))
        for user, more in ((US, {}), (ANNA, {}), (US, {"quote": {"text": "I said", "position": 3}}))
    ]
    assert found == [
        structs.replace(SAID_IN_GROUP, replies=True, quoted="as I said"),
        structs.replace(SAID_IN_GROUP, quoted="as I said"),
        structs.replace(SAID_IN_GROUP, replies=True, quoted="I said"),
    ]


def test_a_topic_is_a_thread_and_a_thread_of_replies_is_none():
    opened = {
        "message_id": 3,
        "date": 1,
        "chat": GROUP,
        "from": US,
        "forum_topic_created": {"name": "x", "icon_color": 1},
    }
    topic = update(text="hello", chat=GROUP, message_thread_id=3, is_topic_message=True, reply_to_message=opened)
    replies = update(text="hello", chat=GROUP, message_thread_id=3)
    assert [heard(topic), heard(replies)] == [structs.replace(SAID_IN_GROUP, thread="3"), SAID_IN_GROUP]


def test_what_is_changed_replaces_what_was_said():
    changed = structs.replace(SAID, event="7:1001:5:90", replaces="7:1001:5", text="hello there")
    assert heard(update("edited_message", text="hello there", edit_date=2)) == changed
    moving = update("edited_message", location={"latitude": 1, "longitude": 2}, edit_date=2)
    assert heard(moving) is None


def ref(name: str, size: int = 3) -> FileRef:
    return FileRef(json.dumps({"id": "f1", "name": name, "size": size}, separators=(",", ":")))


@pytest.mark.parametrize(
    ("message", "text", "name"),
    [
        ({"photo": [{"file_id": "f0"}, {"file_id": "f1", "file_size": 3}], "caption": "look"}, "look", "photo.jpg"),
        ({"document": {"file_id": "f1", "file_name": "a.pdf", "file_size": 3}}, "", "a.pdf"),
        ({"audio": {"file_id": "f1", "file_size": 3}}, "", "audio.mp3"),
        ({"video": {"file_id": "f1", "file_size": 3}}, "", "video.mp4"),
        ({"animation": {"file_id": "f1", "file_size": 3}, "document": {"file_id": "f1"}}, "", "animation.mp4"),
        ({"sticker": {"file_id": "f1", "file_size": 3, "emoji": "🎉"}}, "[sticker: 🎉]", "sticker.webp"),
    ],
)
def test_files_come_along(message: dict[str, Any], text: str, name: str):
    assert heard(update(**message)) == structs.replace(SAID, text=text, files=(ref(name),))


def test_what_is_spoken_is_told_as_such():
    spoken = [heard(update(**{kind: {"file_id": "f1", "file_size": 3}})) for kind in ("voice", "video_note")]
    files = [(ref("voice.ogg"),), (ref("video_note.mp4"),)]
    assert spoken == [structs.replace(SAID, text="", files=each, voice=each) for each in files]


def test_what_moves_has_no_picture():
    assert heard(update(sticker={"file_id": "f1", "emoji": "🎉", "is_video": True})) == structs.replace(
        SAID, text="[sticker: 🎉]"
    )


def test_messages_of_an_album_name_it():
    photo = [{"file_id": "f1", "file_size": 3}]
    said = heard(update(photo=photo, media_group_id="13"))
    assert said == structs.replace(SAID, text="", files=(ref("photo.jpg"),), album="13")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"location": {"latitude": 52.5, "longitude": 13.4}}, "[place: 52.5, 13.4]"),
        (
            {"location": {"latitude": 1, "longitude": 2}, "venue": {"title": "Bar", "address": "Main St"}},
            "[place: Bar, Main St, 1, 2]",
        ),
        ({"contact": {"phone_number": "+1", "first_name": "Bo"}}, "[contact: Bo, +1]"),
        ({"poll": {"question": "Tea?", "options": [{"text": "yes"}, {"text": "no"}]}}, "[poll: Tea? (yes / no)]"),
        ({"dice": {"emoji": "🎲", "value": 3}}, "[🎲 shows 3]"),
    ],
)
def test_what_is_neither_text_nor_file_is_told_in_words(message: dict[str, Any], text: str):
    assert heard(update(**message)) == structs.replace(SAID, text=text)


def test_what_was_forwarded_is_nobodys_command():
    origins = [
        {"type": "user", "sender_user": {"id": 3, "first_name": "Eve\n/new"}},
        {"type": "hidden_user", "sender_user_name": "Eve"},
        {"type": "channel", "chat": {"id": -5, "title": "News"}},
    ]
    found = [heard(update(text="/approve all", forward_origin=each)) for each in origins]
    told = ["Eve /new", "Eve", "News"]
    assert found == [structs.replace(SAID, text=f"[forwarded from {each}]\n/approve all") for each in told]


def test_what_another_bot_has_offered_to_say_is_nobodys_command():
    bot = {"id": 8, "is_bot": True, "first_name": "Eve", "username": "eve_bot"}
    said = heard(update(text="/approve all", via_bot=bot))
    assert said == structs.replace(SAID, text="[written by the bot @eve_bot]\n/approve all")


def test_who_writes_for_a_group_is_the_group():
    anonymous = {"from": {"id": 1087968824, "is_bot": True, "first_name": "Group"}, "sender_chat": GROUP}
    said = heard(update(text="hello", chat=GROUP, **anonymous))
    assert said == structs.replace(SAID_IN_GROUP, account="-1001", name="Friends")
    copied = heard(update(text="hello", chat=GROUP, **anonymous, is_automatic_forward=True))
    assert copied == structs.replace(SAID_IN_GROUP, account="-1001", name="Friends", bot=True)


def test_another_bot_is_told_as_one_and_we_do_not_hear_ourselves():
    other = {"id": 8, "is_bot": True, "first_name": "Other"}
    said = heard(update(text="hello", chat=GROUP, **{"from": other}))
    assert said == structs.replace(SAID_IN_GROUP, account="8", name="Other", bot=True)
    assert heard(update(text="hello", chat=GROUP, **{"from": US})) is None


@pytest.mark.parametrize(
    "said",
    [
        update(new_chat_members=[ANNA], chat=GROUP),
        update(new_chat_title="x", chat=GROUP),
        update(migrate_to_chat_id=-100, chat=GROUP),
        update(text="  "),
        {"update_id": 90, "channel_post": {"message_id": 1, "chat": {"id": -5, "type": "channel"}, "text": "x"}},
        {"update_id": 90, "my_chat_member": {"whatever": 1}},
    ],
)
def test_what_is_no_message_to_us_is_passed_over(said: dict[str, Any]):
    assert heard(said) is None


def test_an_update_that_cannot_be_read_still_has_its_number():
    assert read(b'{"update_id": 90, "message": {"chat": 5}}') == UpdateNumber(90)


def test_the_first_word_of_everybody_asks_for_help():
    started = [entity("bot_command", "/start", "/start")]
    assert heard(update(text="/start", entities=started)) == structs.replace(SAID, text="/help")
    assert heard(update(text="/start", entities=started, chat=GROUP)) == structs.replace(SAID_IN_GROUP, text="/start")


def press(data: str, chat: dict[str, Any] = ALONE, **more: Any) -> dict[str, Any]:
    message = {"message_id": 5, "date": 1, "chat": chat, "from": US, **more}
    return {
        "update_id": 90,
        "callback_query": {"id": "q1", "from": ANNA, "chat_instance": "c", "message": message, "data": data},
    }


def test_a_press_says_what_its_button_stands_for():
    said = structs.replace(SAID, event="7:press:q1", text="/approve 0a1b2c3d4e", mentioned=True, replies=True)
    assert heard(press("approve 0a1b2c3d4e")) == Press("q1", 1001, 5, said)
    denied = structs.replace(
        SAID_IN_GROUP, event="7:press:q1", text="/deny 0a1b2c3d4e", mentioned=True, replies=True, thread="3"
    )
    topic = {"message_thread_id": 3, "is_topic_message": True}
    assert heard(press("deny 0a1b2c3d4e", GROUP, **topic)) == Press("q1", -1001, 5, denied)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "approve",
        "approve ",
        "approve a b",
        "approve a\n/new",
        "new x",
        "/approve x",
        "approve é",
        "approve " + "a" * 56,
    ],
)
def test_a_press_says_nothing_else(data: str):
    assert heard(press(data)) == Press("q1")
