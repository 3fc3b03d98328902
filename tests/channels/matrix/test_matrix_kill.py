"""The gateway is killed while people write to it on a real homeserver: each message has one answer in the end."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from everloop.testing import Pause, Say, Shown
from everloop.testing.model_server import ModelServer
from tests.channels.matrix.somebody import Somebody, somebody
from tests.channels.matrix.synapse import Synapse
from tests.cli.person import Person
from tests.cli.test_gateway_command import start
from tests.effort import in_full
from tests.ports import free_port

PEOPLE = 4
MESSAGES = in_full(25, 5)
KILLS = in_full(20, 3)
END = ". That is all."  # of an answer; a draft that is on its way at a kill may be left standing


def lines(shown: Shown) -> list[object]:
    return [Say(f"you said {shown.asked.split()[0]}"), Pause(0.01), Say(END)]


def answers(someone: Somebody, room: str, bot: str) -> list[str]:
    return [text for text in someone.shown(room, bot) if text.endswith(END)]


@pytest.fixture
async def person(tmp_path: Path) -> AsyncIterator[Person]:
    async with ModelServer(lines) as model:
        person = Person(tmp_path, model)
        yield person
        await person.leave()


class Talk:
    """How many of all messages have been answered."""

    def __init__(self) -> None:
        self.answered = 0
        self.open: set[str] = set()
        self._more = asyncio.Condition()

    async def answer(self, text: str) -> None:
        async with self._more:
            self.answered += 1
            self.open.discard(text)
            self._more.notify_all()

    async def until(self, answered: int, none_of: set[str]) -> None:
        async with self._more:
            await self._more.wait_for(lambda: self.answered >= answered and not none_of & self.open)


async def talk(someone: Somebody, room: str, bot: str, talked: Talk, name: int) -> None:
    for number in range(MESSAGES):
        text = f"{name}-{number}"
        talked.open.add(text)
        await someone.say(room, text)
        await someone.until(lambda me, text=text: f"you said {text}{END}" in me.shown(room, bot))
        await talked.answer(text)


@pytest.mark.shortened
@pytest.mark.timeout(300)
async def test_each_message_is_answered_once_however_often_the_gateway_is_killed(person: Person, synapse: Synapse):
    chosen, port, bot = random.Random(1), free_port(), synapse.register("bot")
    person.environment |= {
        "EVERLOOP_CHANNELS__MATRIX__HOMESERVER": synapse.url,
        "EVERLOOP_CHANNELS__MATRIX__ACCESS_TOKEN": bot.token,
        "EVERLOOP_CHANNELS__MATRIX__GATHER": "0",
        "EVERLOOP_USERS__STRANGERS": "guest",
    }
    async with AsyncExitStack() as stack:
        people = [await stack.enter_async_context(somebody(synapse)) for _ in range(PEOPLE)]
        rooms = [await each.make_room(bot.user, direct=True) for each in people]
        gateway, talked = await start(person, port), Talk()
        async with asyncio.TaskGroup() as group:
            for name, (each, room) in enumerate(zip(people, rooms, strict=True)):
                group.create_task(talk(each, room, bot.user, talked, name))
            interrupted: set[str] = set()
            for kill in range(KILLS):
                # A turn that is interrupted three times in a row is given up.
                await talked.until((kill + 1) * PEOPLE * MESSAGES // (KILLS + 2), interrupted)
                interrupted = {*talked.open}
                await asyncio.sleep(chosen.random() * 0.05)
                await gateway.kill()
                gateway = await start(person, port)
        while (await person.run("outbox", "list")).out != "Nothing waits to be delivered.\n":  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await gateway.stop()
        for name, (each, room) in enumerate(zip(people, rooms, strict=True)):
            last = await each.say(room, "the end")
            await each.until(lambda me, last=last: any(event["event_id"] == last for _, event in me.events))
            expected = [f"you said {name}-{n}{END}" for n in range(MESSAGES)]
            assert Counter(answers(each, room, bot.user)) == Counter(expected)
