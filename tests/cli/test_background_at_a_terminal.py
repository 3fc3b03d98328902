"""At a terminal `/bg` frees the prompt while an answer comes; what comes of it is shown there, also after a kill; `/fg`
shows the rest."""

import asyncio
import signal
from pathlib import Path

import pytest
from tests.cli.at_terminal import AtTerminal
from tests.cli.person import Person, asked_in

from everloop.testing import Line, Say, Shown, Wait
from everloop.testing.model_server import ModelServer


class Digging:
    """A model that digs until it is let go on, and answers anything else at once."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    def __call__(self, shown: Shown) -> Line:
        asked = asked_in(shown)[-1]
        return (Say("I dig "), Wait(self.gate), Say("and find gold")) if "dig" in asked else Say(f"re {asked}")


@pytest.fixture
async def person(tmp_path: Path, model: ModelServer) -> Person:
    return Person(tmp_path, model)


async def test_what_runs_goes_on_while_one_talks_and_is_told_at_the_prompt(person: Person, model: ModelServer):
    digging = Digging()
    model.play(digging)
    async with AtTerminal(person, "agent") as terminal:
        await terminal.sees("> ")
        terminal.type("dig deep")
        await terminal.sees("I dig")
        terminal.type("/bg")
        await terminal.sees("This goes on in the background as task 1")
        await terminal.sees("> ")
        terminal.type("hey")
        await terminal.sees("re hey")
        await terminal.sees("> ")
        terminal.type("/tasks")
        await terminal.sees("1. dig deep — running")
        digging.gate.set()
        await terminal.sees("Task 1 is done:")
        await terminal.sees("I dig and find gold")
        await terminal.sees("> ")
        terminal.type("/exit")
        assert await terminal.ends() == 0


async def test_one_that_is_taken_back_is_shown_from_there_on(person: Person, model: ModelServer):
    digging = Digging()
    model.play(digging)
    async with AtTerminal(person, "agent") as terminal:
        await terminal.sees("> ")
        terminal.type("/bg dig deep")
        await terminal.sees("Task 1 has begun in the background")
        await model.called(1)
        terminal.type("/fg")
        await terminal.sees("Here we go on with task 1")
        digging.gate.set()
        await terminal.sees("I dig and find gold")
        await terminal.sees("> ")
        terminal.type("hey")
        await terminal.sees("re hey")
        await terminal.sees("> ")
        digging.gate.clear()
        terminal.type("/bg dig again")
        await terminal.sees("has begun in the background")
        terminal.type("/fg")
        await terminal.sees("I dig ")
        terminal.type("/stop")
        await terminal.sees('(say "go on" to have the rest)')
        terminal.type("/exit")
        assert await terminal.ends() == 0
    assert terminal.raw.count(b"I dig") == 2  # each is told once, also the one that was stopped


async def test_after_a_kill_it_goes_on_and_is_told_once(person: Person, model: ModelServer):
    digging = Digging()
    model.play(digging)
    async with AtTerminal(person, "agent") as terminal:
        await terminal.sees("> ")
        terminal.type("dig deep")
        await terminal.sees("I dig")
        terminal.type("/bg")
        await terminal.sees("as task 1")
        terminal.process.send_signal(signal.SIGKILL)
        await terminal.ends()
    async with AtTerminal(person, "agent") as again:
        await again.sees("> ")
        digging.gate.set()
        await again.sees("Task 1 is done:")
        await again.sees("> ")
        again.type("hey")
        await again.sees("re hey")
        again.type("/exit")
        assert await again.ends() == 0
        assert again.raw.decode().count("Task 1 is done:") == 1
