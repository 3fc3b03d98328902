"""The gateway is killed while people write on Discord: each message has one answer in the end, and none has two."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everloop.testing import Pause, Say, Shown, Trouble
from everloop.testing.discord_server import DiscordServer
from everloop.testing.model_server import ModelServer
from tests.channels.discord.platform import TOKEN
from tests.cli.person import Person
from tests.cli.test_gateway_command import start
from tests.ports import free_port

CHATS = 4
MESSAGES = 3
KILLS = 2


def lines(shown: Shown) -> list[object]:
    return [Say(f"you said {shown.asked.split()[0]}"), Pause(0.01)]


@pytest.fixture
async def person(tmp_path: Path) -> AsyncIterator[Person]:
    async with ModelServer(lines) as model:
        person = Person(tmp_path, model)
        yield person
        await person.leave()


@pytest.mark.timeout(120)
async def test_each_message_is_answered_once_however_often_the_gateway_is_killed(person: Person):
    """Half of the kills leave a session that can be resumed; after the others Discord has forgotten it."""
    chosen, port = random.Random(1), free_port()
    async with DiscordServer(TOKEN, heartbeat=1.0) as server:
        names = {"TOKEN": TOKEN, "API_URL": server.api, "CDN_URL": server.cdn, "ENABLED": "true"}
        person.environment |= {f"EVERLOOP_CHANNELS__DISCORD__{name}": value for name, value in names.items()}
        person.environment["EVERLOOP_USERS__STRANGERS"] = "guest"

        def judge(nonce: str, content: str) -> Trouble | None:
            return Trouble.ACK_LOST if nonce and chosen.random() < 0.2 else None  # drafts have none

        server.judge = judge
        users = [server.world.user(f"user{chat}") for chat in range(CHATS)]
        dms = [server.world.dm(user) for user in users]
        gateway = await start(person, port)
        await server.gateway.until_listening()

        def answered(chat: int, number: int) -> bool:
            return f"you said {chat}-{number}" in server.seen(dms[chat])

        async def talk(chat: int) -> None:
            for number in range(MESSAGES):
                await server.say(dms[chat], users[chat], f"{chat}-{number}")
                await server.until(lambda number=number: answered(chat, number))

        async with asyncio.TaskGroup() as group:
            for chat in range(CHATS):
                group.create_task(talk(chat))
            await server.until(lambda: all(server.seen(dm) for dm in dms))  # who writes is known from now on
            for kill in range(KILLS):
                waited = (kill + 2) * CHATS * MESSAGES // (KILLS + 3)
                await server.until(lambda waited=waited: sum(len(server.seen(dm)) for dm in dms) >= waited)
                await gateway.kill()
                if kill % 2 == 0:
                    server.gateway.sessions.clear()
                gateway = await start(person, port)
        while (await person.run("outbox", "list")).out != "Nothing waits to be delivered.\n":  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await gateway.stop()
        for chat, dm in enumerate(dms):
            assert sorted(server.seen(dm)) == [f"you said {chat}-{number}" for number in range(MESSAGES)]
        assert server.gateway.identified >= 2
