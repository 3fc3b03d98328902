"""A command that nobody waits for any more is ended, so that a failed test leaves nothing running."""

import asyncio
from pathlib import Path

import psutil
import pytest
from tests.cli.forking import fork_server
from tests.cli.person import Person
from tests.descriptors import open_descriptors

from everloop.testing import Say, Wait


def commands_of(person: Person) -> list[psutil.Process]:
    """Those in whose environment this home is."""
    return [each for each in psutil.process_iter() if _is_of(person, each)]


def _is_of(person: Person, process: psutil.Process) -> bool:
    """As Linux tells it: a forked process has the environment of its parent there, but files of its own."""
    try:
        return any(Path(file.path).is_relative_to(person.home) for file in process.open_files())
    except (psutil.Error, OSError):
        return False


@pytest.fixture
async def asking(person, model):
    """A command that waits for its model."""
    model.play([(Say("half "), Wait(asyncio.Event()))])
    running = asyncio.ensure_future(person.run("agent", "-m", "hi"))
    await model.called(1)
    return running


async def test_one_that_is_waited_for_goes_on(asking, person):
    assert [each.status() != psutil.STATUS_ZOMBIE for each in commands_of(person)] == [True]
    assert not asking.done()


async def test_one_whose_test_has_failed_is_killed(asking, person):
    (command,) = commands_of(person)
    asking.cancel()
    await person.leave()
    await asyncio.to_thread(command.wait)


async def test_one_that_was_begun_and_never_waited_for_is_killed(person, model):
    model.play([(Say("half "), Wait(asyncio.Event()))])
    forked = fork_server().begin(("agent", "-m", "hi"), person.environment, b"")
    await model.called(1)
    (command,) = commands_of(person)
    forked.leave()
    await asyncio.to_thread(command.wait)


async def test_how_it_ended_is_told_as_of_any_process(person):
    ran = await person.run("tokens", "list", "--nonsense")
    assert (ran.status, ran.out) == (2, "")


def test_none_of_our_descriptors_is_left(person):
    fork_server()
    before = open_descriptors()

    async def run() -> int:
        return (await person.run("--version")).status

    assert asyncio.run(run()) == 0
    assert open_descriptors() == before
