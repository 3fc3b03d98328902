"""What is told of long work: before it begins, and where nobody overwrites a line each quarter of it."""

import io

from tests.cli.at_terminal import AtTerminal
from tests.cli.person import Person

from everloop.cli.terminal import Terminal


def told(*lines: str) -> list[str]:
    err = io.StringIO()
    terminal = Terminal(io.StringIO(), err)
    for line in lines:
        terminal.status(line)
    return err.getvalue().splitlines()


def test_a_percentage_is_told_by_quarters():
    lines = told("thinking …", *(f"reading {n} %" for n in range(101)))
    assert lines == ["reading 0 %", "reading 25 %", "reading 50 %", "reading 75 %", "reading 100 %"]


def test_what_stands_behind_it_makes_no_further_line():
    words = [f"Tiny: fetching through pip {n} % of 1,117 MB, {100 - n} s left" for n in range(0, 60, 3)]
    assert told(*words) == [words[0], words[9], words[17]]


def test_what_has_no_percentage_is_told_once_for_each_kind():
    asking = [f"asking custom again in {n} s" for n in (1, 2, 4)]
    assert told(*asking, "loading the model", "loading the model") == [asking[0], "loading the model"]


async def test_a_fresh_home_says_first_what_the_first_message_will_fetch(person: Person):
    person.environment["EVERLOOP_AGENTS__DEFAULTS__MODEL"] = "embedded"
    async with AtTerminal(person) as terminal:
        await terminal.sees("The first message fetches it: 1.1 GB, once.")
        await terminal.sees("press Connect a model in its page")
        await terminal.sees("> ")
        terminal.send("\x04")
        await terminal.ends()
    assert not (person.home / "models").exists()
