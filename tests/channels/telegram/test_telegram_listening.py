"""How Telegram is listened to: what is committed first, what is acknowledged then, and what is told of a failure."""

import asyncio
import json
import logging
import traceback
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from telegram import Bot

from everloop.channels.telegram import check_settings
from everloop.channels.telegram.api import BotApi, BotRefusal
from everloop.channels.telegram.hook import HEADER, TelegramByHook, secret_from
from everloop.channels.telegram.wire import Telegram
from everloop.core.mail import Address, ReplyTo
from everloop.errors import ChannelDown, StoreError
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import Delivered, FileRef, HookRequest, Incoming, OutgoingFile, OutgoingPart
from everloop.testing.telegram_server import Spoiled, TelegramServer
from tests.channels.telegram.stand import BERT, GROUP, TOKEN


class Taken:
    """A Deliver that commits to a list; `full` refuses, as a store does whose disk is full."""

    def __init__(self, telegram: TelegramServer) -> None:
        self.telegram = telegram
        self.events: list[str] = []
        self.texts: list[str] = []
        self.resume = ""
        self.full = False
        self.answered_too_early: list[str] = []
        self._more = asyncio.Condition()

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        if self.full:
            raise StoreError("the disk is full")
        self.answered_too_early += self.telegram.account.answered
        async with self._more:
            self.events.append(incoming.event)
            self.texts.append(incoming.text)
            self.resume = resume or self.resume
            self._more.notify_all()
        return Delivered()

    async def skip_to(self, resume: str) -> None:
        async with self._more:
            self.resume = resume
            self._more.notify_all()

    async def has(self, events: int) -> None:
        async with self._more:
            await self._more.wait_for(lambda: len(self.events) >= events)

    async def is_at(self, resume: str) -> None:
        async with self._more:
            await self._more.wait_for(lambda: self.resume == resume)


class Listening:
    def __init__(self, telegram: TelegramServer, http: TrustedHttp) -> None:
        self.telegram = telegram
        self.taken = Taken(telegram)
        self.http = http

    def channel(self, **settings: Any) -> Telegram:
        chosen = check_settings({"token": self.telegram.token, "api_url": self.telegram.url, **settings})
        return TelegramByHook(chosen, self.http, 0.01) if chosen.mode == "webhook" else Telegram(chosen, self.http)

    @asynccontextmanager
    async def run(self, resume: str = "", **settings: Any) -> AsyncIterator[asyncio.Future[None]]:
        running = asyncio.ensure_future(self.channel(**settings).run(self.taken, resume))
        try:
            yield running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.fixture
async def here() -> AsyncIterator[Listening]:
    http = TrustedHttp()
    async with TelegramServer(TOKEN, http=http) as telegram:
        yield Listening(telegram, http)
    await http.close()


async def test_it_goes_on_where_it_was_and_acknowledges_by_that(here: Listening):
    async with here.run():
        await here.telegram.say("one")
        await here.telegram.queue.has(1)
    assert (here.taken.texts, here.taken.resume) == (["one"], "123456:2")
    await here.telegram.say("two")
    async with here.run(here.taken.resume):
        await here.taken.has(2)
    asked = [params["offset"] for method, params in here.telegram.calls if method == "getUpdates"]
    assert (here.taken.texts, asked[:3]) == (["one", "two"], [0, 2, 2])


async def test_what_is_not_committed_comes_again(here: Listening):
    for text in ("one", "two"):
        await here.telegram.say(text)
    here.taken.full = True
    async with here.run() as running:
        with pytest.raises(StoreError):
            await running
    assert (here.taken.texts, here.telegram.queue.confirmed) == ([], [])
    here.taken.full = False
    async with here.run():
        await here.telegram.queue.has(2)
    assert sorted(here.taken.texts) == ["one", "two"]


async def test_after_a_week_of_silence_telegram_counts_anew(here: Listening):
    here.telegram.queue.count_from(5_000)
    async with here.run():
        await here.telegram.say("one")
        await here.telegram.queue.has(5_000)
        here.telegram.queue.count_from(77)
        for text in ("two", "three"):
            await here.telegram.say(text)
        await here.telegram.queue.has(78)
    assert (here.taken.texts, here.taken.resume) == (["one", "two", "three"], "123456:79")


async def test_where_another_bot_was_is_nothing_to_us(here: Listening):
    await here.telegram.say("one")
    async with here.run("654321:900"):
        await here.taken.has(1)
    asked = [params["offset"] for method, params in here.telegram.calls if method == "getUpdates"]
    assert (here.taken.texts, asked[0]) == (["one"], 0)


async def test_an_update_that_nobody_can_read_keeps_nothing_waiting(here: Listening, caplog: pytest.LogCaptureFixture):
    await here.telegram.queue.put({"message": {"message_id": "no number", "chat": []}})
    await here.telegram.queue.put({"message": {"message_id": 3, "chat": {"id": 5}, "new_chat_title": "x", "date": 1}})
    await here.telegram.say("one")
    async with here.run():
        await here.telegram.queue.has(3)
    assert here.taken.texts == ["one"]
    assert "1 of Telegram's updates cannot be read, and are passed over" in caplog.messages


async def test_a_webhook_of_somebody_else_is_taken_away_and_told(here: Listening, caplog: pytest.LogCaptureFixture):
    here.telegram.webhook = {"url": "http://127.0.0.1:1/theirs"}
    await here.telegram.say("one")
    async with here.run():
        await here.telegram.queue.has(1)
    assert (here.telegram.webhook, here.taken.texts) == ({}, ["one"])
    assert any("Telegram called a webhook" in each for each in caplog.messages)


async def test_two_programs_with_one_token_are_told_what_to_do(here: Listening):
    """The other one is python-telegram-bot, which writes its addresses to the log."""
    async with TelegramServer() as telegram, Listening(telegram, here.http).run() as running:
        while "getUpdates" not in [method for method, _ in telegram.calls]:  # noqa: ASYNC110
            await asyncio.sleep(0)
        async with Bot(telegram.token, base_url=f"{telegram.url}/bot") as bot:
            await bot.get_updates(timeout=0)
        with pytest.raises(ChannelDown) as raised:
            await running
    why = "another program fetches what this bot is told, with the same token (409 Conflict)"
    assert str(raised.value) == f"{why}: stop it, or give each a bot of its own"


async def test_a_webhook_that_is_set_meanwhile_is_told(here: Listening):
    here.telegram.spoil(
        Spoiled(status=409, says="Conflict: can't use getUpdates method while webhook is active"), method="getUpdates"
    )
    async with here.run() as running:
        with pytest.raises(ChannelDown, match="another program has set a webhook for this bot"):
            await running


@pytest.mark.parametrize(
    "spoiled",
    [Spoiled(status=500), Spoiled(status=502, how="garbage"), Spoiled(how="half"), Spoiled(how="hung up", done=True)],
)
async def test_what_breaks_off_is_begun_again(here: Listening, spoiled: Spoiled):
    await here.telegram.say("one")
    here.telegram.spoil(spoiled, method="getUpdates")
    async with here.run() as running:
        with pytest.raises(ChannelDown):
            await running
    async with here.run():
        await here.telegram.queue.has(1)
    assert here.taken.texts == ["one"]


async def test_it_waits_as_long_as_telegram_says(here: Listening):
    await here.telegram.say("one")
    here.telegram.spoil(Spoiled(status=429, retry_after=0.01), method="getUpdates")
    async with here.run():
        await here.telegram.queue.has(1)
    assert here.taken.texts == ["one"]


async def test_people_are_offered_our_commands_unless_they_are_not_to_be(here: Listening):
    async with here.run(menu=False):
        await here.telegram.say("one")
        await here.taken.has(1)
        assert here.telegram.account.commands == []
    async with here.run():
        await here.telegram.say("two")
        await here.taken.has(2)
    offered = {each["command"]: each["description"] for each in here.telegram.account.commands}
    assert offered["new"] == "Start a new conversation"
    assert "pair" not in offered  # which is for administrators


async def test_a_menu_that_cannot_be_set_is_no_reason_to_be_silent(here: Listening):
    here.telegram.spoil(Spoiled(status=400, says="Bad Request"), method="setMyCommands")
    await here.telegram.say("one")
    async with here.run():
        await here.taken.has(1)
    assert here.taken.texts == ["one"]


async def ask_in(here: Listening, chat: dict[str, Any]) -> dict[str, Any]:
    await here.telegram.say("hi", chat=chat)
    address = Address("telegram", str(chat["id"]))
    part = OutgoingPart(key="k", address=address, text="May I?", approval="0a1b2c3d4e", kind="question")
    sent = await here.channel().send(part)
    return here.telegram.account.messages[chat["id"]][int(sent)]


async def test_a_press_is_acknowledged_once_it_is_committed(here: Listening):
    question = await ask_in(here, {"id": 1001, "type": "private", "first_name": "Anna"})
    await here.telegram.press(question, "approve 0a1b2c3d4e")
    async with here.run():
        await here.telegram.queue.has(2)
    assert here.taken.texts == ["hi", "/approve 0a1b2c3d4e"]
    assert (here.telegram.account.answered, here.taken.answered_too_early) == ({"q1": "You pressed Approve."}, [])
    assert "reply_markup" not in question


async def test_in_a_group_the_buttons_stay_for_whoever_may_press_them(here: Listening):
    question = await ask_in(here, GROUP)
    await here.telegram.press(question, "deny 0a1b2c3d4e", BERT)
    await here.telegram.press(question, "something else", BERT, id="q2")
    async with here.run():
        await here.telegram.queue.has(3)
    assert here.taken.texts == ["hi", "/deny 0a1b2c3d4e"]
    assert here.telegram.account.answered == {"q1": "You pressed Deny.", "q2": ""}
    assert "reply_markup" in question


async def test_a_press_that_cannot_be_acknowledged_is_heard_all_the_same(here: Listening):
    question = await ask_in(here, GROUP)
    await here.telegram.press(question, "deny 0a1b2c3d4e")
    here.telegram.spoil(Spoiled(status=400, says="Bad Request: query is too old"), method="answerCallbackQuery")
    async with here.run():
        await here.telegram.queue.has(2)
    assert here.taken.texts == ["hi", "/deny 0a1b2c3d4e"]


WEBHOOK = {"mode": "webhook", "webhook_url": "http://127.0.0.1:1/hooks/telegram"}


async def test_telegram_is_told_where_to_call_with_which_secret(here: Listening):
    ours: list[tuple[dict[str, str], str]] = [({}, secret_from(TOKEN)), ({"webhook_secret": "s" * 16}, "s" * 16)]
    for times, (more, secret) in enumerate(ours, 1):
        async with here.run(**WEBHOOK, **more):
            await here.telegram.called("setWebhook", times)
        told = here.telegram.webhook
        assert (told["url"], told["secret_token"]) == ("http://127.0.0.1:1/hooks/telegram", secret)


async def test_a_webhook_that_is_taken_away_is_set_again(here: Listening):
    async with here.run(**WEBHOOK) as running:
        await here.telegram.called("setWebhook")
        here.telegram.webhook["url"] = "https://other.example"
        with pytest.raises(ChannelDown, match="another program has taken our webhook away: stop it"):
            await running
    async with here.run(**WEBHOOK):
        await here.telegram.called("setWebhook", 2)
    assert here.telegram.webhook["url"] == WEBHOOK["webhook_url"]


async def test_where_nobody_is_reached_is_told(here: Listening):
    await here.telegram.say("one")
    async with here.run(**WEBHOOK) as running:
        with pytest.raises(ChannelDown) as raised:
            await running
    why = "Telegram could not call us (Connection refused): check channels.telegram.webhook_url"
    assert (str(raised.value), here.telegram.queue.pending) == (why, 1)


async def test_a_call_is_answered_once_it_is_committed(here: Listening):
    channel = here.channel(**WEBHOOK)
    assert isinstance(channel, TelegramByHook)
    [hook] = channel.hooks(here.taken)
    await here.telegram.say("one")
    await here.telegram.press(await ask_in(here, GROUP), "deny 0a1b2c3d4e")
    headers = {HEADER: secret_from(TOKEN)}
    bodies = [json.dumps(each).encode() for each in await here.telegram.queue.take(0, 9, 0)]
    strange = [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"update_id": 9}', b'{"update_id": 9, "message": 1}']
    told = [(await hook.answer(HookRequest("POST", headers, body))).status for body in [*bodies, *strange]]
    assert told == [200, 200, 200, 400, 400, 400, 400, 400, 400, 200, 200]
    assert here.taken.texts == ["one", "hi", "/deny 0a1b2c3d4e"]
    assert (here.telegram.account.answered, here.taken.answered_too_early) == ({"q1": "You pressed Deny."}, [])
    here.taken.full = True
    with pytest.raises(StoreError):
        await hook.answer(HookRequest("POST", headers, bodies[0]))


async def test_a_call_comes_again_while_we_do_not_know_who_we_are(here: Listening):
    channel = here.channel(**WEBHOOK)
    assert isinstance(channel, TelegramByHook)
    [hook] = channel.hooks(here.taken)
    here.telegram.spoil(Spoiled(status=500), method="getMe")
    request = HookRequest("POST", {HEADER: secret_from(TOKEN)}, b'{"update_id": 9}')
    assert [(await hook.answer(request)).status for _ in range(2)] == [503, 200]


@pytest.mark.parametrize(
    "spoiled",
    [
        Spoiled(status=400, says=f"Bad Request: wrong URL /bot{TOKEN}/x and 123456%3Ask-canary-of-a-bot"),
        Spoiled(status=429, retry_after=1, says=f"Too Many Requests for {TOKEN}"),
        Spoiled(status=403, says=f"Forbidden: {TOKEN}"),
        Spoiled(status=401, says=f"Unauthorized {TOKEN}"),
        Spoiled(status=500, says=f"Internal Server Error {TOKEN}"),
        Spoiled(status=404, says=f"Not Found: method not found {TOKEN}"),
        Spoiled(status=502, how="garbage"),
        Spoiled(status=200, how="garbage"),
        Spoiled(how="redirected", says=TOKEN),
        Spoiled(how="half"),
        Spoiled(how="hung up"),
    ],
)
async def test_no_failure_tells_the_token(here: Listening, spoiled: Spoiled, caplog: pytest.LogCaptureFixture):
    """The suite's own guard looks through the log, too; here every word of every error is read."""
    caplog.set_level(logging.DEBUG)
    await here.telegram.say("hi")
    kept = here.telegram.account.keep(b"words", "a.txt")
    ref = FileRef(json.dumps({"id": kept["file_id"], "name": "a.txt"}))
    channel, alone = here.channel(), Address("telegram", "1001")
    about, text = (
        ReplyTo('{"chat":"1001","message":1}'),
        OutgoingPart(key="k", address=alone, text="hello", plain="hello"),
    )
    file = OutgoingPart(key="k", address=alone, text="", files=(OutgoingFile("a.txt", "text/plain", b"words"),))
    calls: list[tuple[str, Awaitable[Any]]] = [
        ("send", channel.send(text)),
        ("sendDocument", here.channel().send(file)),
        ("sendMessageDraft", channel.preview(alone, "", "so far", about)),
        ("sendChatAction", channel.signal(alone, "typing", about)),
        ("setMessageReaction", channel.react(alone, about, "👍")),
        ("deleteMessage", channel.withdraw(alone, "1")),
        ("getChat", channel.chat_with("1001")),
        ("getFile", channel.fetch(ref, 100)),
        ("download", channel.fetch(ref, 100)),
        ("getMe", channel.probe()),
        ("getUpdates", here.channel().run(here.taken, "")),
        ("getWebhookInfo", here.channel().run(here.taken, "")),
        ("setWebhook", here.channel(**WEBHOOK).run(here.taken, "")),
    ]
    told = []
    for method, call in calls:
        here.telegram.spoil(*[spoiled] * 20, method=method)
        try:
            async with asyncio.timeout(1):
                await call
        except Exception as error:
            told.append("".join(traceback.format_exception(error)))
        here.telegram.spoil(method=method)
    said = "\n".join([*told, *caplog.messages, repr(channel), repr(channel._api), repr(channel._chosen)])
    assert len(told) >= len(calls) - 3, "they fail, or nothing is shown"
    assert "sk-canary" not in said


async def test_an_api_that_repeats_what_it_is_told_would_be_seen(here: Listening):
    class Careless(BotApi):
        def without_token(self, said: str) -> str:
            return said

    here.telegram.spoil(Spoiled(status=400, says=f"Bad Request: wrong URL /bot{TOKEN}/getMe"), method="getMe")
    with pytest.raises(BotRefusal, match="sk-canary"):
        await Careless(here.telegram.url, TOKEN, here.http).ask("getMe")
