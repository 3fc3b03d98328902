"""The gateway is killed while webhooks come and go: each message has one answer in the end, and none has two."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everloop.testing import Pause, Say, Shown
from everloop.testing.model_server import ModelServer
from tests.channels.receiver import SECRET, Program, message, post
from tests.cli.person import Person
from tests.cli.test_gateway_command import start
from tests.effort import in_full
from tests.ports import free_port

CHATS = 8
MESSAGES = 4
KILLS = in_full(5, 3)


def lines(shown: Shown) -> list[object]:
    return [Say(f"you said {shown.asked.split()[0]}"), Pause(0.01)]


@pytest.fixture
async def person(tmp_path: Path) -> AsyncIterator[Person]:
    async with ModelServer(lines) as model:
        person = Person(tmp_path, model)
        yield person
        await person.leave()


@pytest.mark.shortened
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", in_full([1, 2], [1]))
async def test_each_webhook_is_answered_once_however_often_the_gateway_is_killed(person: Person, seed: int):
    chosen, port = random.Random(seed), free_port()
    async with Program(lambda posts: 503 if chosen.random() < 0.2 else 200).open() as program:
        person.environment["EVERLOOP_CHANNELS__WEBHOOK__URL"] = program.url
        person.environment["EVERLOOP_USERS__STRANGERS"] = "guest"
        person.environment["EVERLOOP_CHANNELS__WEBHOOK__SECRET"] = SECRET
        gateway = await start(person, port)

        asked: set[str] = set()

        async def talk(chat: int) -> None:
            for number in range(MESSAGES):
                event = f"{chat}-{number}"
                asked.add(event)
                await post(gateway.url, event, message(event, f"chat {chat}", f"user{chat}"))
                if chosen.random() < 0.5:
                    await post(gateway.url, event, message(event, f"chat {chat}", f"user{chat}"))
                await program.answered({event})

        async with asyncio.TaskGroup() as group:
            for chat in range(CHATS):
                group.create_task(talk(chat))
            interrupted: set[str] = set()
            for kill in range(KILLS):
                await program.has((kill + 1) * CHATS * MESSAGES // (KILLS + 2))
                await program.answered(interrupted)  # a turn that is interrupted three times in a row is given up
                interrupted = {*asked}
                await gateway.kill()
                gateway = await start(person, port)
        # What was taken just before a kill is sent once more, and may be refused then: it waits for its next attempt.
        while (await person.run("outbox", "list")).out != "Nothing waits to be delivered.\n":  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await gateway.stop()
    events = [f"{chat}-{number}" for chat in range(CHATS) for number in range(MESSAGES)]
    told = sorted((taken["in_reply_to"], taken["text"]) for taken in program.taken.values())
    assert told == sorted((event, f"you said {event}") for event in events)
