"""A person at a terminal is told of what nobody knows: it was begun when the process was killed."""

import os
from pathlib import Path

import msgspec
import pytest

import everloop
from everloop.testing import Call, Say, Shown
from everloop.testing.model_server import ModelServer

from .person import Person, Ran, ended

PAY = """
import asyncio
import sys
from pathlib import Path
from everloop import tool

@tool
async def pay(to: str) -> str:
    '''Pay someone, which takes long.'''
    with Path(__file__).with_name("ledger").open("a") as ledger:
        ledger.write(f"{to}\\n")
    print("paying", file=sys.stderr, flush=True)
    await asyncio.Event().wait()
    return "paid"
"""
SENTENCE = 'Not known whether this took effect: pay {"to":"bob"}'


@pytest.fixture
def site(tmp_path: Path, person: Person) -> Path:
    """Where a package is installed that brings the tool `pay`."""
    site = tmp_path / "site"
    (site / "pay-1.0.dist-info").mkdir(parents=True)
    (site / "pay.py").write_text(PAY)
    (site / "pay-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: pay\nVersion: 1.0\n")
    (site / "pay-1.0.dist-info/entry_points.txt").write_text("[everloop.tools]\npay = pay:pay\n")
    person.environment["PYTHONPATH"] = f"{Path(everloop.__file__).parents[1]}{os.pathsep}{site}"
    person.environment["EVERLOOP_TOOLS__PLUGINS"] = "pay"
    return site


def line(shown: Shown):
    return Call("pay", {"to": "bob"}) if shown.asked.startswith("pay bob") and shown.step == 0 else Say("all paid")


async def kill_while_paying(person: Person) -> None:
    process = await person.start("agent", "-m", "pay bob")
    assert process.stderr is not None
    await process.stderr.readuntil(b"paying")
    process.kill()
    assert (await ended(process)).out == ""


async def test_the_chat_tells_it_with_the_answer_that_was_cut_off(person: Person, model: ModelServer, site: Path):
    model.play(line)
    await kill_while_paying(person)
    assert await person.run("agent") == Ran(0, f"all paid\n\n{SENTENCE}\n", "")
    assert (site / "ledger").read_text() == "bob\n"


async def test_one_answer_leaves_stdout_to_itself(person: Person, model: ModelServer, site: Path):
    model.play(line)
    await kill_while_paying(person)
    assert await person.run("agent", "-m", "hello") == Ran(0, "all paid\n", f"all paid\n\n{SENTENCE}\n")
    again = await person.run("agent", "-m", "hello", "--json")
    assert (again.err, msgspec.json.decode(again.out)["unknown"]) == ("", [])
