"""The gateway is killed while messages lie gathered in the inbox: each is in one answer in the end, and none in two."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everloop.testing import Say, Shown
from everloop.testing.model_server import ModelServer
from tests.channels.receiver import SECRET, Program, message, post
from tests.cli.person import Person
from tests.cli.test_gateway_command import start
from tests.ports import free_port

CHATS, LINES, KILLS = 6, 3, 2


def echo(shown: Shown) -> Say:
    """All that was said since the last answer."""
    said: list[str] = []
    for message_ in shown.messages:
        said = [*said, message_.text] if message_.role == "user" else []
    return Say(" ".join(word for text in said for word in text.split() if word.startswith("line-")))


@pytest.fixture
async def person(tmp_path: Path) -> AsyncIterator[Person]:
    async with ModelServer(echo) as model:
        person = Person(tmp_path, model)
        yield person
        await person.leave()


def lines_in(program: Program) -> Counter[str]:
    return Counter(line for taken in program.taken.values() for line in taken["text"].split())


@pytest.mark.timeout(120)
async def test_what_lies_gathered_when_the_gateway_is_killed_is_answered_once(person: Person):
    port = free_port()
    async with Program().open() as program:
        person.environment["EVERLOOP_CHANNELS__WEBHOOK__URL"] = program.url
        person.environment["EVERLOOP_CHANNELS__WEBHOOK__SECRET"] = SECRET
        person.environment["EVERLOOP_CHANNELS__WEBHOOK__GATHER"] = "0.5"
        person.environment["EVERLOOP_USERS__STRANGERS"] = "guest"
        gateway = await start(person, port)
        wanted: set[str] = set()
        for round_ in range(KILLS + 1):
            names = [(chat, f"line-{round_}-{chat}-{n}") for chat in range(CHATS) for n in range(LINES)]
            wanted |= {name for _, name in names}
            for chat, name in names:
                await post(gateway.url, name, message(name, f"chat {chat}", f"user{chat}"))
            if round_ < KILLS:  # before most of them are due
                await gateway.kill()
                gateway = await start(person, port)
        while set(lines_in(program)) != wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        await gateway.stop()
    assert lines_in(program) == Counter(wanted)
    assert len(program.taken) < len(wanted)  # several are in one answer
