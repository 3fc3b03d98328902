"""The gateway is killed while people write encrypted to it: each message has one answer in the end."""

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
from tests.ports import free_port

KILLS = 3


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
    bot, port = synapse.register("bot"), free_port()
    person.environment |= {
        "EVERLOOP_CHANNELS__MATRIX__HOMESERVER": synapse.url,
        "EVERLOOP_CHANNELS__MATRIX__ACCESS_TOKEN": bot.token,
        "EVERLOOP_CHANNELS__MATRIX__GATHER": "0",
        "EVERLOOP_USERS__STRANGERS": "guest",
    }
    async with secretive(synapse, tmp_path) as anna:
        gateway = await start(person, port)
        room = await anna.make_room(bot.user, direct=True, encrypted=True)
        await anna.sees(bot.user)
        for kill in range(KILLS):
            await anna.say(room, f"a{kill}")
            await gateway.kill()  # at whatever it is just then
            await anna.say(room, f"b{kill}")
            gateway = await start(person, port)
            await anna.until(lambda me, kill=kill: f"you said b{kill}" in me.shown(room, bot.user))
        every = Counter(f"you said {which}{kill}" for kill in range(KILLS) for which in "ab")
        await anna.until(lambda me: len(me.shown(room, bot.user)) >= len(every))
        await gateway.stop()
        await anna.until(lambda me: Counter(me.shown(room, bot.user)) == every)
    ours = [event for _, event in anna.events if event["sender"] == bot.user and event["type"] == "m.room.message"]
    assert all(event["decrypted"] for event in ours)
