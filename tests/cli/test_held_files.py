"""Changes of the files that stand in prompts, as people at a terminal are asked about them. The commands are real."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import msgspec
import pytest
from tests.cli.at_terminal import PATIENCE, AtTerminal
from tests.cli.person import Person, Ran

from everloop.testing import Call, Say
from everloop.testing.model_server import ModelServer

EVIL = "OWNED by a page"
APPENDS = Call("exec", {"command": f"echo '{EVIL}' >> SOUL.md"})
ASKED = "SOUL.md was changed, and the change is held back. May it stay?\n"


@pytest.fixture
def soul(person: Person) -> Path:
    return person.home / "workspace" / "SOUL.md"


async def changed(person: Person, model: ModelServer) -> tuple[Ran, str]:
    """A command has changed the file; what was said, and the name of the question."""
    model.play([APPENDS, Say("done"), *[Say("hello")] * 4])
    ran = await person.run("agent", "-m", "change it")
    (asked,) = msgspec.json.decode((await person.run("approvals", "list", "--json")).out)["approvals"]
    assert (asked["kind"], asked["tool"], asked["session"]) == ("file", "SOUL.md", "cli:direct")
    return ran, asked["name"]


async def test_without_a_terminal_it_is_told_on_stderr_and_waits(person, model):
    ran, name = await changed(person, model)
    assert (ran.status, ran.out) == (0, "done\n")
    assert ASKED in ran.err
    assert f"+{EVIL}" in ran.err
    assert f"Answer with: everloop approvals approve {name} (or: deny {name})" in ran.err
    await person.run("agent", "-s", "cli:other", "-m", "hi")
    assert EVIL not in model.prompts[-1].system
    listed = await person.run("agent", "-m", "/approve")
    assert (listed.out.count(ASKED), listed.err) == (1, "")
    again = [await person.run("agent", "-m", "go on") for _ in range(2)]
    assert sum(ran.err.count(ASKED) for ran in again) <= 1  # what lay in the outbox, once


async def test_it_is_accepted_by_everloop_approvals(person, model):
    _, name = await changed(person, model)
    accepted = "SOUL.md is accepted as it is now; models are told it from the next turn on.\n"
    assert await person.run("approvals", "approve", name) == Ran(0, accepted, "")
    await person.run("agent", "-s", "cli:other", "-m", "hi")
    assert EVIL in model.prompts[-1].system
    assert (await person.run("approvals", "list")).out == "Nothing waits for permission.\n"


async def test_it_is_put_back_by_everloop_approvals(person, model, soul):
    _, name = await changed(person, model)
    ran = await person.run("approvals", "deny", name[:5])
    assert re.fullmatch(
        r"SOUL.md is again as it was. What was taken out of it is kept as file:[0-9a-f]+\.\n", ran.out
    ), ran
    assert EVIL not in soul.read_text()
    await person.run("agent", "-s", "cli:other", "-m", "hi")
    assert EVIL not in model.prompts[-1].system


async def test_nothing_of_the_kind_is_allowed_ahead(person, model):
    _, name = await changed(person, model)
    ran = await person.run("approvals", "approve", name, "--for", "8h")
    assert ran == Ran(1, "", "everloop: this can only be answered with yes or no; nothing was decided\n")


async def test_the_list_shows_the_change_and_no_end_of_its_time(person, model):
    _, name = await changed(person, model)
    listed = (await person.run("approvals", "list")).out
    assert (name in listed, "no limit" in listed, f"+{EVIL}" in listed) == (True, True, True)


async def test_everloop_context_says_what_is_held_back(person, model):
    await changed(person, model)
    held = "Held back until you have seen the change: SOUL.md (everloop approvals list)."
    assert held in (await person.run("context")).out
    assert msgspec.json.decode((await person.run("context", "--json")).out)["held"] == ["SOUL.md"]


async def test_the_process_may_be_killed_between_the_change_and_its_result(person, model, soul):
    command = f"echo '{EVIL}' >> SOUL.md; while [ ! -e go ]; do sleep 0.05; done"
    model.play([Call("exec", {"command": command}), Say("hello"), Say("done"), Say("more")])
    await person.run("approvals", "list")  # the workspace is made by the first start
    process = await person.start("agent", "-m", "change it")
    async with asyncio.timeout(PATIENCE):
        while not soul.exists() or EVIL not in soul.read_text():  # noqa: ASYNC110 (it happens in a file)
            await asyncio.sleep(0.01)
    process.kill()
    await process.communicate()
    (soul.parent / "go").touch()
    ran = await person.run("agent", "--continue")
    assert ran.status == 0
    await person.run("agent", "-s", "cli:other", "-m", "hi")
    assert [EVIL in shown.system for shown in model.prompts] == [False] * len(model.prompts)
    assert ASKED in (await person.run("agent", "-m", "/approve")).out


@pytest.mark.parametrize("where", ["call.started", "call.done", "turn.ended", "thread.rested"])
async def test_wherever_it_is_killed_it_is_held_and_asked_once(person, model, where: str):
    model.play(lambda shown: APPENDS if "change it" in shown.asked and shown.step == 0 else Say("done"))
    person.environment |= {"EVERLOOP_TEST": "1", "EVERLOOP_FAILPOINT": f"{where}:1:kill"}
    killed = await person.run("agent", "-m", "change it")
    person.environment.pop("EVERLOOP_FAILPOINT")
    for _ in range(2):
        await person.run("agent", "--continue")
    await person.run("agent", "-s", "cli:other", "-m", "hi")
    assert (killed.status, [EVIL in shown.system for shown in model.prompts]) == (-9, [False] * len(model.prompts))
    database = apsw.Connection(str(person.home / "everloop.db"), flags=apsw.SQLITE_OPEN_READONLY)
    asked = database.execute("SELECT count(*) FROM outbox WHERE key LIKE 'held:%'").fetchall()
    taints = database.execute("SELECT * FROM taints").fetchall()
    database.close()
    assert (asked, taints) == ([(1,)], [])


@pytest.fixture
async def terminal(person: Person) -> AsyncIterator[AtTerminal]:
    async with AtTerminal(person) as terminal:
        yield terminal


@pytest.mark.parametrize(("typed", "says", "stays"), [("y", "stays as it is", True), ("", "is put back", False)])
async def test_at_a_terminal_one_is_asked_when_the_turn_is_over(
    person, model, terminal, soul, typed: str, says: str, stays: bool
):
    model.play([APPENDS, Say("done"), Say("hello")])
    await terminal.sees("> ")
    terminal.type("change it")
    for text in ("done", "May it stay?", f"+{EVIL}", "Let it stay? [y/N]"):
        await terminal.sees(text)
    terminal.type(typed)
    await terminal.sees(f"SOUL.md {says}.")
    assert (EVIL in soul.read_text()) is stays


async def test_whoever_says_something_else_is_answered_and_it_goes_on_waiting(person, model, terminal):
    model.play([APPENDS, Say("done"), Say("the weather is fine")])
    await terminal.sees("> ")
    terminal.type("change it")
    await terminal.sees("Let it stay? [y/N]")
    terminal.type("how is the weather?")
    await terminal.sees("the weather is fine")
    assert "no limit" in (await person.run("approvals", "list")).out
