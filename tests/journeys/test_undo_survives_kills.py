"""Whenever the process is killed while a turn is taken back: after the next start the conversation and the files are
both as they were before `/undo`, or both as they were before the turn.

The places are not listed here: an undisturbed `/undo` tells which it reaches, and how often.
"""

import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cli.person import Person, someone

from everloop.testing import Call, Calls, Say
from everloop.testing.failpoints import EXIT_CODE, reached_in
from everloop.testing.model_server import ModelServer

BEFORE = {"kept.md": "one", "edited.md": "old", "deleted.md": "precious", "deep/er.md": "x"}
AFTER = {"kept.md": "one", "edited.md": "new and newer", "deep/er.md": "y", "made/new.md": "made"}
DELETE = "*** Begin Patch\n*** Delete File: deleted.md\n*** End Patch"
TURN = [
    Calls(
        Call("write_file", {"path": "edited.md", "content": "new"}),
        Call("edit_file", {"path": "edited.md", "old_text": "new", "new_text": "new and newer"}),
        Call("apply_patch", {"patch": DELETE}),
    ),
    Calls(
        Call("write_file", {"path": "made/new.md", "content": "made"}),
        Call("write_file", {"path": "deep/er.md", "content": "y"}),
    ),
    Say("all done"),
]


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def home(tmp_path: Path, model: ModelServer) -> Path:
    """One in which a turn has changed five files, and nobody is at home."""
    person = Person(tmp_path / "first", model)
    for name, text in BEFORE.items():
        path = person.home / "workspace" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    model.play([Say("hello"), *TURN])
    assert (await person.run("agent", "-m", "hi")).status == 0
    assert (await person.run("agent", "-m", "work")).out == "all done\n"
    assert state(person.home) == ("after", "after")
    return person.home


def state(home: Path) -> tuple[str, str]:
    """Where the conversation and the files are: `after` the turn, or `before` it."""
    workspace = home / "workspace"
    files = {str(path.relative_to(workspace)): path.read_text() for path in workspace.rglob("*.md")}
    said = 'SELECT 1 FROM entries e JOIN sessions s ON s.thread = e.thread WHERE instr(e.body, \'"text":"work"\')'
    with sqlite3.connect(home / "everloop.db") as database:
        talk = "after" if database.execute(said).fetchall() else "before"
    return talk, name_of(files)


def name_of(files: dict[str, str]) -> str:
    return next((name for name, known in (("before", BEFORE), ("after", AFTER)) if files == known), "between")


def test_a_state_between_is_noticed():
    assert [name_of(files) for files in (BEFORE, AFTER)] == ["before", "after"]
    assert name_of({**BEFORE, "made/new.md": "made"}) == "between"


async def test_a_kill_at_any_place_leaves_both_before_or_both_after(home, model, tmp_path):
    record = tmp_path / "reached.jsonl"
    calm = someone(tmp_path / "calm", home, model, EVERLOOP_TEST="1", EVERLOOP_FAILPOINT_RECORD=str(record))
    ran = await calm.run("agent", "-m", "/undo")
    assert ran.out == (
        "Taken back: “work”\n"
        "Files that are again as they were: deep/er.md, deleted.md, edited.md\n"
        "Files that were new and are gone: made/new.md\n"
    )
    assert state(calm.home) == ("before", "before")
    reached = Counter(reached_in(record))
    assert reached["call.done"] == 5
    ends: Counter[tuple[str, str]] = Counter()
    for name, times in sorted(reached.items()):
        for nth in range(1, times + 1):
            point = f"{name}:{nth}:exit" if name == "call.done" and nth % 2 else f"{name}:{nth}:kill"
            folder = tmp_path / f"{name}-{nth}"
            killed = someone(folder, home, model, EVERLOOP_TEST="1", EVERLOOP_FAILPOINT=point)
            assert (await killed.run("agent", "-m", "/undo")).status in (-9, EXIT_CODE, 0), point
            assert (await someone(folder, home, model).run("agent")).status == 0, point
            end = state(killed.home)
            assert end in (("before", "before"), ("after", "after")), point
            ends[end] += 1
    assert ends["before", "before"] > 5
    assert ends["after", "after"] > 0


async def test_after_a_kill_the_answer_is_told_at_the_next_start(home, model, tmp_path):
    killed = someone(tmp_path / "k", home, model, EVERLOOP_TEST="1", EVERLOOP_FAILPOINT="call.done:3:kill")
    assert (await killed.run("agent", "-m", "/undo")).status == -9
    assert state(killed.home) == ("before", "between")
    again = await someone(tmp_path / "k", home, model).run("agent")
    assert again.out.startswith("Taken back: “work”\n")
    assert "left as it is" not in again.out
    assert state(killed.home) == ("before", "before")


async def test_what_somebody_changes_between_a_kill_and_the_next_start_is_left_alone(home, model, tmp_path):
    killed = someone(tmp_path / "k", home, model, EVERLOOP_TEST="1", EVERLOOP_FAILPOINT="call.done:1:kill")
    assert (await killed.run("agent", "-m", "/undo")).status == -9
    (killed.home / "workspace" / "edited.md").write_text("mine")
    again = await someone(tmp_path / "k", home, model).run("agent")
    assert "edited.md was left as it is: somebody has changed it since\n" in again.out
    assert (killed.home / "workspace" / "edited.md").read_text() == "mine"
