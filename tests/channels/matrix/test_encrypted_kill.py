"""The gateway is killed while people write encrypted to it: each message has one answer in the end."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everloop.testing import Say, Shown
from everloop.testing.model_server import ModelServer
from tests.channels.matrix.secretive import secretive
from tests.channels.matrix.synapse import Synapse
from tests.cli.person import Person
from tests.cli.test_gateway_command import start
from tests.effort import in_full
from tests.ports import free_port

KILLS = in_full(20, 3)

pytestmark = pytest.mark.shortened


@pytest.fixture
async def person(tmp_path: Path) -> AsyncIterator[Person]:
    async with ModelServer(lambda shown: [Say(f"you said {_asked(shown)}")]) as model:
        person = Person(tmp_path, model)
        yield person
        await person.leave()


def _asked(shown: Shown) -> str:
    return str(shown.asked.split()[0])


async def test_each_encrypted_message_is_answered_once_however_often_the_gateway_is_killed(
    person: Person, synapse: Synapse, tmp_path: Path
):
    chosen, bot, port = random.Random(1), synapse.register("bot"), free_port()
    person.environment |= {
        "EVERLOOP_CHANNELS__MATRIX__HOMESERVER": synapse.url,
        "EVERLOOP_CHANNELS__MATRIX__ACCESS_TOKEN": bot.token,
        "EVERLOOP_CHANNELS__MATRIX__GATHER": "0",
        "EVERLOOP_USERS__STRANGERS": "guest",
    }
    async with secretive(synapse, tmp_path) as anna, secretive(synapse, tmp_path) as ben:
        gateway = await start(person, port)
        people = {name: (who, await who.meet(bot.user)) for name, who in (("anna", anna), ("ben", ben))}
        for kill in range(KILLS):
            await anna.say(people["anna"][1], f"anna{kill}")
            await asyncio.sleep(chosen.random() * 0.5)  # it is killed at whatever it is just then
            await gateway.kill()
            await ben.say(people["ben"][1], f"ben{kill}")
            gateway = await start(person, port)
            for name, (who, room) in people.items():
                await who.until(lambda me, room=room, text=f"you said {name}{kill}": text in me.shown(room, bot.user))
        while (await person.run("outbox", "list")).out != "Nothing waits to be delivered.\n":  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await gateway.stop()
        for name, (who, room) in people.items():
            last = await who.say(room, "the end")
            await who.until(lambda me, last=last: any(event["event_id"] == last for _, event in me.events))
            assert Counter(who.shown(room, bot.user)) == Counter(f"you said {name}{kill}" for kill in range(KILLS))
            assert {event["type"] for _, event in who.events if _is_said_by(bot.user, event)} == {"m.room.message"}
            assert all(event["decrypted"] for _, event in who.events if _is_said_by(bot.user, event))


def _is_said_by(user: str, event: dict) -> bool:
    return event["sender"] == user and event["type"] in ("m.room.message", "m.room.encrypted")
