"""What we say on Telegram: its form, and what becomes of it when Telegram refuses it or breaks off."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import structs

from everloop.channels.telegram import check_settings
from everloop.channels.telegram.calls import buttons
from everloop.channels.telegram.wire import Telegram
from everloop.core.mail import Address, Outbound, ReplyTo
from everloop.errors import ChannelDown, ChannelRefused, HostFailed, HostHungUp, StreamCut, Undeliverable
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import FileRef, OutgoingFile, OutgoingPart, Probed, Rendered
from everloop.testing.telegram_bot import DraftShown
from everloop.testing.telegram_server import Spoiled, TelegramServer
from tests.channels.telegram.stand import GROUP, TOKEN

ALONE = Address("telegram", "1001")
IN_GROUP = Address("telegram", "-1001")
PNG = b"\x89PNG\r\n\x1a\n...."


class Setting:
    """The fake, and a channel that speaks with it; Anna has written to it, alone and in a group."""

    def __init__(self, telegram: TelegramServer, channel: Telegram) -> None:
        self.telegram = telegram
        self.channel = channel

    @property
    def seen(self) -> list[str]:
        return self.telegram.account.seen()

    def called(self, method: str) -> list[dict[str, Any]]:
        return [params for name, params in self.telegram.calls if name == method]

    def message(self, chat: int, number: str) -> dict[str, Any]:
        return self.telegram.account.messages[chat][int(number)]


@pytest.fixture
async def here() -> AsyncIterator[Setting]:
    http = TrustedHttp()
    async with TelegramServer(TOKEN) as telegram:
        await telegram.say("hi")
        await telegram.say("hi", chat=GROUP)
        chosen = check_settings({"token": telegram.token, "api_url": telegram.url})
        yield Setting(telegram, Telegram(chosen, http, pause=0.0))
    await http.close()


def part(text: str = "hello", **more: Any) -> OutgoingPart:
    return OutgoingPart(**{"key": "k1", "address": ALONE, "text": text, "plain": "plain words", **more})


def about(chat: int, message: int = 1) -> ReplyTo:
    return ReplyTo(json.dumps({"chat": str(chat), "message": message}))


async def test_a_text_is_sent_with_its_markup_and_no_preview_of_links(here: Setting):
    sent = await here.channel.send(part("<b>so</b> it is &lt;"))
    message = here.message(1001, sent)
    assert (message["text"], message["entities"]) == ("so it is <", [{"type": "bold", "offset": 0, "length": 2}])
    assert message["link_preview_options"] == {"is_disabled": True}


async def test_markup_that_is_refused_is_sent_without(here: Setting):
    await here.channel.send(part("<b>open"))
    assert (here.seen, len(here.called("sendMessage"))) == (["plain words"], 2)


async def test_an_answer_in_a_group_shows_what_it_answers(here: Setting):
    first = await here.channel.send(part(address=IN_GROUP, reply_to=about(-1001), of=2))
    others = [
        part(address=IN_GROUP, reply_to=about(-1001), number=1, of=2),
        part(address=IN_GROUP, reply_to=about(1001)),
        part(address=IN_GROUP, reply_to=about(-1001), kind="message"),
        part(address=IN_GROUP, reply_to=ReplyTo("something else")),
        part(reply_to=about(1001)),
    ]
    assert here.message(-1001, first)["reply_to_message"]["text"] == "hi"
    sent = [(each, await here.channel.send(each)) for each in others]
    assert ["reply_to_message" in here.message(int(each.address.chat), id) for each, id in sent] == [False] * 5


async def test_what_was_asked_may_be_gone(here: Setting):
    sent = await here.channel.send(part(address=IN_GROUP, reply_to=about(-1001, 99)))
    assert here.message(-1001, sent)["text"] == "hello"


async def test_a_topic_is_answered_in_it(here: Setting):
    sent = await here.channel.send(part(address=Address("telegram", "-1001", "3")))
    assert here.message(-1001, sent)["message_thread_id"] == 3


async def test_a_question_has_buttons_under_its_last_part(here: Setting):
    asks = [part(approval="0a1b2c3d4e", kind="question", number=number, of=2) for number in (0, 1)]
    sent = [here.message(1001, await here.channel.send(each)).get("reply_markup") for each in asks]
    row = [
        {"text": "Approve", "callback_data": "approve 0a1b2c3d4e"},
        {"text": "Deny", "callback_data": "deny 0a1b2c3d4e"},
    ]
    assert sent == [None, {"inline_keyboard": [row]}]
    assert buttons(part(approval="é" * 29)) == {}  # 66 bytes


async def test_an_answer_with_nothing_to_show_is_no_message(here: Setting):
    assert (await here.channel.send(part("", plain="")), here.seen) == ("", [])


async def test_an_answer_is_cut_where_telegram_counts(here: Setting):
    text = "😀" * 5000
    parts = here.channel.render(Outbound("k", ALONE, text))
    for each in parts:
        await here.channel.send(part(each.text, plain=each.plain))
    assert ("".join(here.seen), len(parts)) == (text, 3)


@pytest.mark.parametrize(
    ("spoiled", "error", "after"),
    [
        (Spoiled(status=429, retry_after=7), ChannelDown, 7.0),
        (Spoiled(status=429), ChannelDown, None),
        (Spoiled(status=503), ChannelDown, None),
        (Spoiled(status=503, how="garbage"), ChannelDown, None),
        (Spoiled(status=401, says="Unauthorized"), ChannelDown, None),
        (Spoiled(status=404, says="Not Found"), ChannelDown, None),
        (Spoiled(status=403, says="Forbidden: bot was kicked from the group chat"), Undeliverable, None),
        (
            Spoiled(status=400, says="Bad Request: not enough rights to send text messages to the chat"),
            Undeliverable,
            None,
        ),
        (Spoiled(status=400, says="Bad Request: message thread not found"), Undeliverable, None),
        (Spoiled(status=413, says="Request Entity Too Large"), Undeliverable, None),
        (Spoiled(status=500), HostFailed, None),
        (Spoiled(status=502, how="garbage"), HostFailed, None),
        (Spoiled(status=200, how="garbage"), HostFailed, None),
        (Spoiled(how="half", done=True), StreamCut, None),
        (Spoiled(how="hung up", done=True), HostHungUp, None),
        (Spoiled(how="redirected"), HostFailed, None),
    ],
)
async def test_what_a_failure_means(here: Setting, spoiled: Spoiled, error: type[Exception], after: float | None):
    here.telegram.spoil(spoiled)
    with pytest.raises(error) as raised:
        await here.channel.send(part())
    assert (type(raised.value), getattr(raised.value, "retry_after", None)) == (error, after)


async def test_who_is_not_there_is_told_as_such(here: Setting):
    here.telegram.account.blocked.add(1001)
    for to, why in [
        (ALONE, "they have blocked the bot in Telegram"),
        (Address("telegram", "5"), "Telegram does not know this chat: they have to write to the bot first"),
        (Address("telegram", "@anna"), "a chat of Telegram has a number, and '@anna' is none"),
        (Address("telegram", "1001", "x"), "a topic of Telegram has a number, and 'x' is none"),
    ]:
        with pytest.raises(Undeliverable) as raised:
            await here.channel.send(part(address=to))
        assert str(raised.value) == why


async def test_while_telegram_fails_nothing_is_sent_that_may_arrive(here: Setting):
    """After eight sends that may have arrived an answer would be given up; an outage takes longer than those."""
    here.telegram.spoil(Spoiled(status=500, done=True))
    here.telegram.spoil(*[Spoiled(status=500)] * 20, method="getMe")
    with pytest.raises(HostFailed):
        await here.channel.send(part("one"))
    for _ in range(20):
        with pytest.raises(ChannelDown):
            await here.channel.send(part("two"))
    await here.channel.send(part("three"))
    assert here.seen == ["one", "three"]


async def test_a_server_that_is_away_is_down(here: Setting):
    async with TelegramServer(TOKEN) as gone:
        url = gone.url
    channel = Telegram(check_settings({"token": gone.token, "api_url": url}), here.channel._api._http)
    for call in (channel.send(part()), channel.probe(), channel.fetch(FileRef('{"id":"f","name":"n"}'), 10)):
        with pytest.raises(ChannelDown, match=r"127\.0\.0\.1"):
            await call


async def test_a_group_that_has_become_a_supergroup_is_answered_there(here: Setting):
    await here.telegram.say("hi", chat={**GROUP, "id": -100777})
    here.telegram.account.moved[-1001] = -100777
    sent = [await here.channel.send(part(address=IN_GROUP, reply_to=about(-1001))) for _ in range(2)]
    await here.channel.signal(IN_GROUP, "typing", ReplyTo(""))
    await here.channel.replace(IN_GROUP, sent[1], Rendered("changed"))
    assert [here.message(-100777, each)["text"] for each in sent] == ["hello", "changed"]
    assert [params["chat_id"] for params in here.called("sendMessage")] == [-1001, -100777, -100777]


@pytest.mark.parametrize(
    ("mime", "data", "field"),
    [
        ("image/png", PNG, "photo"),
        ("image/png", b"no image", "document"),
        ("image/jpeg", b"\xff\xd8\xff" + bytes(10_000_000), "document"),
        ("image/svg+xml", b"<svg/>", "document"),
        ("audio/ogg", b"OggS", "voice"),
        ("audio/mpeg", b"ID3", "audio"),
        ("video/mp4", b"....ftyp", "video"),
        ("text/plain", b"words", "document"),
    ],
)
async def test_a_file_is_shown_as_what_it_is_or_sent_as_a_document(here: Setting, mime: str, data: bytes, field: str):
    file = OutgoingFile('my "file"\r\n.x', mime, data)
    message = here.message(1001, await here.channel.send(part("", plain="", files=(file,))))
    kept = message[field][-1] if field == "photo" else message[field]
    assert here.telegram.account.files[kept["file_id"]][1] == data
    assert kept.get("file_name", "my _file___.x") == "my _file___.x"


async def test_a_mark_goes_with_a_file(here: Setting):
    file = OutgoingFile("a.txt", "text/plain", b"words")
    message = here.message(1001, await here.channel.send(part("(may be repeated) ", plain="", files=(file,))))
    assert message["caption"] == "(may be repeated)"


async def test_where_a_file_lies_that_is_too_large_is_told(here: Setting):
    file = OutgoingFile("film <1>.mp4", "video/mp4", link="https://x.example/f?a=1&b=2")
    await here.channel.send(part("<i>here</i>", files=(file,)))
    assert here.seen == ["here\n\nfilm <1>.mp4: https://x.example/f?a=1&b=2"]


async def test_names_of_files_that_are_no_text_can_be_told_as_well(here: Setting):
    await here.channel.send(part("", plain="", files=(OutgoingFile("a\udcff.txt", "text/plain", b"words"),)))
    await here.channel.send(part("here", files=(OutgoingFile("b\udcff.txt", "text/plain", link="https://x.example"),)))
    assert here.seen == ["", "here\n\nb?.txt: https://x.example"]


async def test_drafts_in_a_chat_of_two_are_telegrams_own(here: Setting):
    shown = await here.channel.preview(ALONE, "", "so **f", about(1001))
    shown = await here.channel.preview(ALONE, shown, "so **far** so", about(1001))
    first, second = here.telegram.account.drafts
    assert (first, second) == (DraftShown(1001, first.id, "so f"), DraftShown(1001, first.id, "so far so"))
    assert first.id != 0
    await here.channel.send(part("done", draft=shown))
    assert (await here.channel.preview(ALONE, shown, "", about(1001)), here.seen) == ("", ["done"])


async def test_a_server_without_drafts_shows_messages(here: Setting):
    here.telegram.account.without.add("sendMessageDraft")
    shown = await here.channel.preview(ALONE, "", "so f", about(1001))
    shown = await here.channel.preview(ALONE, shown, "so far", about(1001))
    assert (here.seen, len(here.called("sendMessageDraft"))) == (["so far"], 1)
    await here.channel.send(part("done", draft=shown))
    assert here.seen == ["done"]


async def test_a_draft_in_a_group_is_changed_no_more_often_than_a_group_likes(here: Setting):
    channel = Telegram(here.channel._chosen, here.channel._api._http)
    shown = await channel.preview(IN_GROUP, "", "one", about(-1001))
    again = await channel.preview(IN_GROUP, shown, "one two", about(-1001))
    assert (again, here.seen, here.called("editMessageText")) == (shown, ["one"], [])
    sent = await channel.send(part("one two three", address=IN_GROUP, draft=shown))
    assert (here.seen, f"message {sent}") == (["one two three"], shown)


async def test_a_draft_that_is_gone_is_sent_anew_and_one_that_is_the_answer_already_stays(here: Setting):
    shown = await here.channel.preview(IN_GROUP, "", "hello", about(-1001))
    assert await here.channel.send(part("hello", address=IN_GROUP, draft=shown)) == shown.removeprefix("message ")
    await here.channel.withdraw(IN_GROUP, shown.removeprefix("message "))
    await here.channel.send(part("again", address=IN_GROUP, draft=shown))
    assert here.seen == ["again"]


async def test_a_change_whose_receipt_is_lost_is_made_again(here: Setting):
    shown = await here.channel.preview(IN_GROUP, "", "so", about(-1001))
    here.telegram.spoil(Spoiled(how="hung up", done=True), method="editMessageText")
    with pytest.raises(ChannelDown):
        await here.channel.send(part("so it is", address=IN_GROUP, draft=shown))
    await here.channel.send(part("so it is", address=IN_GROUP, draft=shown))
    assert here.seen == ["so it is"]


async def test_it_reacts_with_what_telegram_has(here: Setting):
    await here.channel.react(ALONE, about(1001), "❤️")
    assert here.telegram.account.reactions == {(1001, 1): ["❤"]}
    await here.channel.react(ALONE, about(1001), "")
    assert here.telegram.account.reactions == {(1001, 1): []}
    with pytest.raises(Undeliverable, match="REACTION_INVALID"):
        await here.channel.react(ALONE, about(1001), "🧨")
    with pytest.raises(Undeliverable, match="not known which message"):
        await here.channel.react(ALONE, ReplyTo(""), "👍")


async def test_it_types_and_says_no_more(here: Setting):
    for what in ("typing", "done"):
        await here.channel.signal(ALONE, what, ReplyTo(""))
    assert here.telegram.account.actions == [(1001, "typing")]


async def test_the_chat_with_a_person_has_their_number(here: Setting):
    assert await here.channel.chat_with("1001") == "1001"
    for account in ("5", "-1001", "anna"):
        with pytest.raises(Undeliverable):
            await here.channel.chat_with(account)


async def test_files_are_fetched_within_bounds(here: Setting):
    kept = here.telegram.account.keep(b"words", "a.txt")

    def ref(id: str, name: str = "notes", size: int = 0) -> FileRef:
        return FileRef(json.dumps({"id": id, "name": name, "size": size}))

    assert await here.channel.fetch(ref(kept["file_id"]), 5) == ("notes.txt", b"words")
    large = here.telegram.account.keep(bytes(20_000_001), "b.bin")["file_id"]
    for wanted, why in [
        (ref(kept["file_id"]), "more than 4 bytes"),
        (ref(kept["file_id"], size=5), "notes has more than the 4 bytes that a bot is given"),
        (ref(large), "file is too big"),
        (ref("gone"), "wrong file_id"),
    ]:
        with pytest.raises(Undeliverable, match=why):
            await here.channel.fetch(wanted, 4)


@pytest.mark.parametrize(("status", "error"), [(500, ChannelDown), (404, Undeliverable)])
async def test_a_file_that_is_not_to_be_had_now_comes_again_and_one_that_is_gone_does_not(
    here: Setting, status: int, error: type[Exception]
):
    kept = here.telegram.account.keep(b"words", "a.txt")
    here.telegram.spoil(Spoiled(status=status), method="download")
    with pytest.raises(error):
        await here.channel.fetch(FileRef(json.dumps({"id": kept["file_id"], "name": "notes"})), 100)


async def test_a_trial_tells_who_we_are_and_what_we_may_not(here: Setting):
    assert await here.channel.probe() == Probed(account="@ever_bot (Everloop)", link="https://t.me/ever_bot")
    here.telegram.account.abilities.update(can_join_groups=False, can_read_all_group_messages=False)
    here.telegram.webhook = {"url": "https://other.example"}
    told = (await here.channel.probe()).missing
    assert [each.partition(":")[0] for each in told] == [
        "It cannot be added to groups",
        "In groups it only hears commands and replies to what it said (privacy mode)",
        "A webhook is set for it, by another program or from earlier, which is taken away when this channel is opened.",
    ]


async def test_a_token_that_is_not_known_is_refused_with_what_to_do(here: Setting):
    stranger = Telegram(structs.replace(here.channel._chosen, token="1:other"), here.channel._api._http)
    for call in (stranger.probe(), stranger.run(None, "")):  # type: ignore[arg-type]
        with pytest.raises(ChannelRefused, match=r"ask @BotFather for it \(/token\), and set channels.telegram.token"):
            await call
