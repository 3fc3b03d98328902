"""The gateway is killed while people write to a bot: nothing is lost, and what may be a repetition says so."""

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest

from everloop.net.trusted import TrustedHttp
from everloop.testing import Pause, Say, Shown, Wait
from everloop.testing.model_server import ModelServer
from everloop.testing.telegram_server import Spoiled, TelegramServer
from tests.channels.telegram.stand import TOKEN
from tests.cli.person import Person
from tests.cli.test_gateway_command import start
from tests.effort import in_full
from tests.ports import free_port

CHATS = 6
KILLS = in_full(100, 2)
MARK = "(may be repeated) "


def person_at(folder: Path, model: ModelServer, telegram: TelegramServer, **settings: str) -> Person:
    person = Person(folder, model)
    chosen = {"TOKEN": TOKEN, "API_URL": telegram.url, **settings}
    person.environment.update({f"EVERLOOP_CHANNELS__TELEGRAM__{name}": value for name, value in chosen.items()})
    person.environment["EVERLOOP_USERS__STRANGERS"] = "guest"
    return person


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    http = TrustedHttp()
    async with TelegramServer(TOKEN, http=http) as server:
        yield server
    await http.close()


def user(number: int) -> dict[str, object]:
    return {"id": 1000 + number, "is_bot": False, "first_name": f"User {number}"}


async def answered(telegram: TelegramServer, texts: set[str]) -> None:
    while not texts <= {text.removeprefix(MARK) for text in telegram.account.seen()}:  # noqa: ASYNC110
        await asyncio.sleep(0.02)


@pytest.mark.shortened
@pytest.mark.timeout(in_full(1200, 120))
@pytest.mark.parametrize("mode", in_full(["polling", "webhook"], ["polling"]))
async def test_each_message_is_answered_and_a_second_time_only_with_a_mark(
    tmp_path: Path, telegram: TelegramServer, mode: str
):
    chosen, port = random.Random(mode), free_port()
    trouble = [Spoiled(status=503), Spoiled(status=429, retry_after=0.05), Spoiled(how="hung up", done=True)]
    telegram.spoil(*chosen.choices([*trouble, *[None] * 4], k=6 * KILLS))

    def lines(shown: Shown) -> list[object]:
        return [Say(f"you said {shown.asked.split()[0]}"), Pause(0.01)]

    async with ModelServer(lines) as model:
        url = f"http://127.0.0.1:{port}/hooks/telegram"
        person = person_at(tmp_path, model, telegram, MODE=mode, WEBHOOK_URL=url)
        gateway, asked, enough = await start(person, port), set[str](), asyncio.Event()

        async def talk(chat: int) -> None:
            for number in count():
                asked.add(f"you said {chat}-{number}")
                await telegram.say(f"{chat}-{number}", user=user(chat))
                await answered(telegram, {f"you said {chat}-{number}"})
                if enough.is_set():
                    return

        async with asyncio.TaskGroup() as group:
            for chat in range(CHATS):
                group.create_task(talk(chat))
            for _ in range(KILLS):
                await telegram.shown(len(telegram.account.seen()) + chosen.randrange(1, CHATS))
                interrupted = {*asked}
                await gateway.kill()
                gateway = await start(person, port)
                await answered(telegram, interrupted)  # a turn that is interrupted three times in a row is given up
            enough.set()
        await telegram.queue.is_empty()
        await gateway.stop()
    unmarked = Counter(text for text in telegram.account.seen() if not text.startswith(MARK))
    assert {text.removeprefix(MARK) for text in telegram.account.seen()} == asked
    assert {text: times for text, times in unmarked.items() if times > 1} == {}


@pytest.mark.timeout(120)
async def test_a_thousand_updates_of_fifty_chats_are_taken_in_once_each_although_the_process_is_killed(
    tmp_path: Path, telegram: TelegramServer
):
    never = asyncio.Event()  # no turn ends, so that all there is to do is to take in
    async with ModelServer(lambda shown: [Wait(never)]) as model:
        person = person_at(tmp_path, model, telegram)
        for number in range(1000):
            await telegram.say(f"message {number}", user=user(number % 50))
        port = free_port()
        gateway = await start(person, port)
        await telegram.queue.has(300)
        await gateway.kill()
        assert telegram.queue.pending > 0
        gateway = await start(person, port)
        await telegram.queue.is_empty()
        await gateway.kill()
    with sqlite3.connect(person.home / "everloop.db") as store:
        kept = [event for (event,) in store.execute("SELECT event FROM inbox WHERE channel = 'telegram'")]
    wanted = [f"123456:{1000 + chat}:{message}" for chat in range(50) for message in range(1, 21)]
    assert sorted(kept) == sorted(wanted)
