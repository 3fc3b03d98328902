"""The fake is believed because python-telegram-bot, which is written for the real one, works with it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter
from telegram.ext import Application, MessageHandler, filters
from telegram.request import HTTPXRequest

from everloop.net.trusted import TrustedHttp
from everloop.testing.telegram_server import ANNA, Spoiled, TelegramServer

GROUP = {"id": -1001, "type": "supergroup", "title": "Friends"}


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    http = TrustedHttp()
    async with TelegramServer(http=http) as server:
        yield server
    await http.close()


def bot_of(telegram: TelegramServer) -> Bot:
    return Bot(
        telegram.token,
        base_url=f"{telegram.url}/bot",
        base_file_url=f"{telegram.url}/file/bot",
        request=HTTPXRequest(read_timeout=10),
    )


async def test_an_application_of_theirs_hears_and_answers(telegram: TelegramServer):
    heard: asyncio.Queue[Update] = asyncio.Queue()

    async def answer(update: Update, context: object) -> None:
        assert update.message
        heard.put_nowait(update)
        await update.message.reply_text(f"you said {update.message.text}")

    builder = Application.builder().token(telegram.token)
    app = builder.base_url(f"{telegram.url}/bot").base_file_url(f"{telegram.url}/file/bot").build()
    app.add_handler(MessageHandler(filters.ALL, answer))
    async with app:
        await app.start()
        assert app.updater
        await app.updater.start_polling(timeout=2)
        await telegram.say("hello")
        update = await heard.get()
        await telegram.shown(1)
        await app.updater.stop()
        await app.stop()
    assert update.message
    assert update.message.from_user
    assert (update.message.text, update.message.from_user.id, update.message.chat.type) == ("hello", 1001, "private")
    assert telegram.account.seen() == ["you said hello"]
    assert telegram.queue.confirmed == [1]


async def test_their_bot_writes_changes_reacts_and_shows_drafts(telegram: TelegramServer):
    asked = await telegram.say("hi")
    async with bot_of(telegram) as bot:
        sent = await bot.send_message(1001, "<b>bold</b> &amp; more", parse_mode="HTML")
        assert [(each.type, each.offset, each.length) for each in sent.entities] == [("bold", 0, 4)]
        changed = await bot.edit_message_text("changed", 1001, sent.message_id)
        assert changed.text == "changed"
        with pytest.raises(BadRequest, match="not modified"):
            await bot.edit_message_text("changed", 1001, sent.message_id)
        assert await bot.set_message_reaction(1001, asked["message_id"], "👍")
        with pytest.raises(BadRequest, match=r"(?i)reaction_invalid"):
            await bot.set_message_reaction(1001, asked["message_id"], "🧨")
        assert await bot.send_message_draft(1001, 7, "so f")
        assert await bot.send_chat_action(1001, "typing")
        assert await bot.delete_message(1001, sent.message_id)
        await bot.set_my_commands([("new", "Start anew")])
        assert [each.command for each in await bot.get_my_commands()] == ["new"]
        assert (await bot.get_chat(1001)).first_name == "Anna"
    assert (telegram.account.seen(), [each.text for each in telegram.account.drafts]) == ([], ["so f"])
    assert (telegram.account.actions, [*telegram.account.reactions.values()]) == ([(1001, "typing")], [["👍"]])


async def test_their_bot_sends_and_fetches_files(telegram: TelegramServer):
    await telegram.say("hi")
    async with bot_of(telegram) as bot:
        sent = await bot.send_document(1001, b"some bytes", filename="notes.txt", caption="look")
        assert sent.document
        assert (sent.document.file_name, sent.caption) == ("notes.txt", "look")
        held = await (await bot.get_file(sent.document.file_id)).download_as_bytearray()
        assert (await bot.send_photo(1001, b"\x89PNG\r\n\x1a\n....", filename="a.png")).photo
        assert (await bot.send_voice(1001, b"OggS", filename="v.ogg")).voice
        with pytest.raises(BadRequest, match=r"(?i)image_process_failed"):
            await bot.send_photo(1001, b"no image", filename="a.png")
        with pytest.raises(BadRequest, match=r"(?i)wrong file_id"):
            await bot.get_file("nothing")
    assert bytes(held) == b"some bytes"


async def test_their_bot_is_told_of_presses(telegram: TelegramServer):
    await telegram.say("hi", chat=GROUP)
    keys = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]])
    async with bot_of(telegram) as bot:
        sent = await bot.send_message(GROUP["id"], "sure?", reply_markup=keys)
        await telegram.press(telegram.account.messages[-1001][sent.message_id], "yes")
        _, update = await bot.get_updates(timeout=1)
        query = update.callback_query
        assert query
        assert (query.data, query.from_user.id) == ("yes", 1001)
        assert await query.answer("heard")
        without = await bot.edit_message_reply_markup(GROUP["id"], sent.message_id)
        with pytest.raises(BadRequest, match=r"(?i)button_data_invalid"):
            await bot.send_message(
                GROUP["id"],
                "?",
                reply_markup=InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="y" * 65)]]),
            )
    assert (telegram.account.answered, without.reply_markup) == ({"q1": "heard"}, None)


async def test_what_goes_wrong_is_what_their_bot_knows(telegram: TelegramServer):
    await telegram.say("hi")
    async with bot_of(telegram) as bot:
        telegram.spoil(Spoiled(status=429, retry_after=3, says="Too Many Requests: retry after 3"))
        with pytest.raises(RetryAfter, match="Retry in 3 seconds"):
            await bot.send_message(1001, "x")
        for text, sentence in [
            ("x" * 4097, "too long"),
            ("😀" * 2049, "too long"),
            ("<b>open", "can't find end tag"),
            ("<blink>x</blink>", "unsupported start tag"),
            ("<b><i>x</b></i>", "unmatched end tag"),
            ("a < b", "unsupported start tag"),
            ("  ", "empty"),
        ]:
            with pytest.raises(BadRequest, match=rf"(?i){sentence}"):
                await bot.send_message(1001, text, parse_mode="HTML")
        await bot.send_message(1001, f"<b>{'x' * 4096}</b>", parse_mode="HTML")  # what is counted is what is shown
        with pytest.raises(BadRequest, match=r"(?i)chat not found"):
            await bot.send_message(5, "x")
        telegram.account.blocked.add(1001)
        with pytest.raises(Forbidden, match="blocked"):
            await bot.send_message(1001, "x")
        telegram.account.blocked.clear()
        telegram.spoil(Spoiled(status=502, how="garbage"), Spoiled(how="hung up"))
        for _ in range(2):
            with pytest.raises(NetworkError):
                await bot.send_message(1001, "x")
    with pytest.raises(InvalidToken):
        async with Bot("1:wrong", base_url=f"{telegram.url}/bot") as stranger:
            await stranger.get_me()


async def test_two_who_fetch_are_in_conflict_and_what_is_not_confirmed_comes_again(telegram: TelegramServer):
    async with bot_of(telegram) as one, bot_of(telegram) as another:
        waiting = asyncio.ensure_future(one.get_updates(timeout=5))
        while telegram.calls[-1][0] != "getUpdates":  # noqa: ASYNC110
            await asyncio.sleep(0)
        with_it = asyncio.ensure_future(another.get_updates(timeout=5))
        with pytest.raises(Conflict, match="terminated by other getUpdates"):
            await waiting
        await telegram.say("one")
        await telegram.say("two")
        first = [each.update_id for each in await with_it]
        assert (first[:1], [each.update_id for each in await another.get_updates()]) == ([1], [1, 2])
        assert [each.update_id for each in await another.get_updates(offset=2)] == [2]
        assert await another.get_updates(offset=3) == ()
        telegram.queue.count_from(1)  # as after a week of silence
        await telegram.say("three")
        assert [each.update_id for each in await another.get_updates(offset=3)] == [1]
        await another.set_webhook("http://127.0.0.1:1/hook", secret_token="s" * 20)
        with pytest.raises(Conflict, match="webhook is active"):
            await another.get_updates()
        assert (await another.get_webhook_info()).url == "http://127.0.0.1:1/hook"
        await another.delete_webhook()
        assert ANNA["id"] == (await another.get_updates())[0].message.from_user.id
