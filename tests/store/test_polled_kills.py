"""The gateway is killed while a bot speaks and fetches, over both databases: no answer is lost, what the bot has is its
own, and what it has confirmed never comes again."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec import Struct
from tests.cli.person import Person
from tests.cli.test_gateway_command import Running, new_token, start
from tests.ports import free_port

from everloop.testing import Say, Shown
from everloop.testing.model_server import ModelServer

from .conftest import Home, PostgresHome, SqliteHome

HERE = {"platform": "discord", "platform_user_id": "7"}


def answers(shown: Shown) -> Any:
    return Say(f"{shown.asked.split()[0]}!")


class Bot(Struct):
    """A gateway of a person's, and the bot that speaks to it."""

    person: Person
    home: Home
    token: str
    port: int
    gateway: Running | None = None

    async def start(self, **environment: str) -> None:
        before = {**self.person.environment}
        self.person.environment.update(environment)
        self.gateway = await start(self.person, self.port)
        self.person.environment = before

    async def restart(self) -> None:
        """As after a SIGKILL, by us or by a failpoint."""
        assert self.gateway
        if self.gateway.process.returncode is None:
            self.gateway.process.kill()
        await self.gateway.process.communicate()
        await self.home.write("UPDATE threads SET expires = 0")  # as much time passes as PostgreSQL needs to be sure
        await self.start()

    async def ask(self, method: str, path: str, **sent: Any) -> Any:
        assert self.gateway
        headers = {"Authorization": f"Bearer {self.token}"}
        async with (
            aiohttp.ClientSession(self.gateway.url, headers=headers) as client,
            client.request(method, path, **sent) as answer,
        ):
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def say(self, text: str, id: str) -> str:
        return str((await self.ask("POST", "/message", json={**HERE, "content": text, "id": id}))["content"])

    async def fetch(self, wait: int = 20) -> list[Any]:
        return list((await self.ask("GET", f"/message/outbox?wait={wait}"))["items"])

    async def confirm(self, item: Any) -> None:
        await self.ask("POST", "/message/outbox/receipts", json={"receipts": [{"id": item["id"]}]})


@pytest.fixture
async def bot(home: Home, tmp_path: Path) -> AsyncIterator[Bot]:
    async with ModelServer(answers) as model:
        person = Person(tmp_path, model)
        if isinstance(home, PostgresHome):
            person.environment["EVERLOOP_STORE__URL"] = home.url
        else:
            home = SqliteHome(person.home)
        yield Bot(person, home, await new_token(person, "bot", "--platform", "discord"), free_port())
        await person.leave()


def kill_at(point: str) -> dict[str, str]:
    return {"EVERLOOP_TEST": "1", "EVERLOOP_FAILPOINT": f"{point}:1:kill"}


@pytest.mark.timeout(120)
async def test_an_answer_that_was_lost_on_the_way_is_fetched_until_it_is_confirmed(bot: Bot):
    await bot.start(**kill_at("turn.ended"))  # it is committed, and nobody was told
    with pytest.raises(aiohttp.ClientError):
        await bot.say("one", "m1")
    await bot.home.write("UPDATE outbox SET at = at + 3600")  # however long it takes to start again
    await bot.restart()
    assert await bot.fetch(wait=0) == []  # it is kept for whoever asked, who may be somewhere else
    await bot.home.write("UPDATE outbox SET at = at - 3620")
    (first,) = await bot.fetch()
    await bot.restart()
    held = await bot.fetch(wait=0)  # the bot has it, and goes on
    await bot.home.write("UPDATE outbox SET due = 1 WHERE state = 'sending'")
    (second,) = await bot.fetch()
    await bot.confirm(second)
    await bot.restart()
    await bot.home.write("UPDATE outbox SET due = 1 WHERE state = 'sending'")
    after = await bot.fetch(wait=0)
    answered = await bot.say("two", "m2")
    await bot.home.write("UPDATE outbox SET at = at - 20")
    last = await bot.fetch(wait=0)
    assert (first["content"], first["in_reply_to"], first["maybe_repeated"]) == ("one!", ["m1"], True)
    assert (first["id"], held, after) == (second["id"], [], [])
    assert (answered, last) == ("two!", [])


@pytest.mark.timeout(120)
async def test_a_turn_that_was_cut_off_is_finished_and_its_answer_fetched(bot: Bot):
    await bot.start(**kill_at("model.answered"))
    with pytest.raises(aiohttp.ClientError):
        await bot.say("one", "m1")
    await bot.restart()
    found: list[Any] = []
    while not found:
        await bot.home.write("UPDATE outbox SET at = at - 20")
        found = await bot.fetch(wait=1)
    await bot.confirm(found[0])
    assert [(each["content"], each["in_reply_to"]) for each in found] == [("one!", ["m1"])]
    assert await bot.home.rows("SELECT state FROM outbox") == [("sent",)]
