"""`everloop replay` as people run it: what a scripted model and real tools have done, once more and offline."""

import asyncio
import json
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.person import SECRET, Person, Ran

import everloop
from everloop.testing import ByConversation, Call, Calls, Say, Wait


async def say(person: Person, text: str, *more: str) -> str:
    """The name of the turn that this became."""
    ran = await person.run("agent", "--json", "-m", text, *more)
    assert ran.status == 0, ran.err
    return str(json.loads(ran.out)["turn"])


WRITE = Call("write_file", {"path": "notes.md", "content": "milk"})


async def test_a_turn_is_the_same_though_nothing_is_there_any_more(person, model, tmp_path):
    model.play([Calls(WRITE, Call("read_file", {"path": "notes.md"}), Call("read_file", {})), Say("done")])
    turn = await say(person, "write it down")
    (tmp_path / "home" / "workspace" / "notes.md").unlink()
    assert await person.run("replay", turn) == Ran(0, "the same: 9 entries\n", "")
    assert (model.calls, list((tmp_path / "home" / "workspace").rglob("notes.md"))) == (2, [])


async def test_a_turn_is_found_by_the_beginning_of_its_name_and_the_last_one_by_no_name(person, model):
    model.play([Say("one"), Say("two"), Say("three")])
    first = await say(person, "1")
    second = await say(person, "2")
    other = await say(person, "3", "-s", "cli:other")
    assert await person.run("replay", f"{first[:7]}:1") == Ran(0, "the same: 3 entries\n", "")
    assert (second, other.partition(":")[2]) == (f"{first.partition(':')[0]}:4", "1")
    assert await person.run("replay", second) == Ran(0, "the same: 3 entries\n", "")
    change(person, f"{other.partition(':')[0]}", 2, "Channel: cli", "Channel: sea")
    ran = await person.run("replay", "last")
    assert (ran.status, ran.err) == (1, "")
    assert [re.sub("….*UTC", "…", line) for line in ran.out.splitlines()] == [
        "different at 2, in model_called:",
        r'- tail: …\nChannel: sea, chat: other"',
        r'+ tail: …\nChannel: cli, chat: other"',
    ]


def change(person: Person, thread: str, seq: int, old: str, new: str) -> None:
    """As if another everloop had written it."""
    with sqlite3.connect(person.home / "everloop.db") as database:
        database.execute(
            "UPDATE entries SET body = replace(body, ?, ?) WHERE thread = ? AND seq = ?", (old, new, thread, seq)
        )
    database.close()


@pytest.mark.parametrize(
    "turn, sentence",
    [
        ("last", "nothing has been recorded yet"),
        ("zzz:1", "no conversation has a name that begins with 'zzz'"),
        ("zzz", "a turn is named thread:seq, as `everloop agent --json` prints it, or last; not 'zzz'"),
        ("zzz:x", "a turn is named thread:seq, as `everloop agent --json` prints it, or last; not 'zzz:x'"),
        (":1", "a turn is named thread:seq, as `everloop agent --json` prints it, or last; not ':1'"),
    ],
)
async def test_where_there_is_no_such_turn_a_sentence_says_so(person, turn, sentence):
    assert await person.run("replay", turn) == Ran(1, "", f"everloop: {sentence}\n")


async def test_a_name_that_fits_several_or_no_entry_is_refused(person, model):
    model.play([Say("hi")] * 20)
    threads = [(await say(person, "1", "-s", f"cli:{n}")).partition(":")[0] for n in range(2)]
    with sqlite3.connect(person.home / "everloop.db") as database:
        for table, column in (("threads", "id"), ("entries", "thread"), ("inbox", "thread"), ("sessions", "thread")):
            for thread in threads:
                database.execute(f"UPDATE {table} SET {column} = 'same' || ?1 WHERE {column} = ?1", (thread,))
    database.close()
    several = "everloop: more than one conversation has a name that begins with 'same'\n"
    assert await person.run("replay", "same:1") == Ran(1, "", several)
    nothing = "everloop: no turn of this conversation begins at entry 2; its turns are 1\n"
    assert await person.run("replay", f"same{threads[0]}:2") == Ran(1, "", nothing)


async def test_a_conversation_of_a_newer_everloop_is_refused(person, model):
    model.play([Say("hi")])
    turn = await say(person, "1")
    change(person, turn.partition(":")[0], 1, '"kind"', '"v":99,"kind"')
    newer = "everloop: this conversation was written by a newer everloop (format 99, here 1)\n"
    assert await person.run("replay", turn) == Ran(1, "", newer)


async def test_a_turn_that_was_killed_and_finished_by_another_process_is_the_same(person, model, tmp_path):
    model.play([Wait(model.gates["never"])])
    process = await person.start("agent", "-m", "hello")
    await model.called(1)
    process.kill()
    await process.wait()
    model.play([WRITE, Say("written"), Say("and more")])
    last = await say(person, "go on")
    thread = last.partition(":")[0]
    log = kinds(person, thread)
    assert log[:4] == ["user_said", "model_called", "resumed", "model_called"]
    assert await person.run("replay", f"{thread}:1") == Ran(0, "the same: 9 entries\n", "")
    assert await person.run("replay", last) == Ran(0, "the same: 3 entries\n", "")


@pytest.mark.parametrize(
    "point",
    [
        "model.intended",
        "model.answered",
        "answer.committed",
        "call.started",
        "call.done",
        "turn.ended",
        "thread.rested",
    ],
)
async def test_wherever_a_process_is_killed_the_turn_that_the_next_one_finishes_is_the_same(person, model, point):
    model.play(ByConversation([WRITE, Call("grep", {"pattern": "milk"}), Call("exec", {"command": "ls"}), Say("done")]))
    person.environment |= {"EVERLOOP_TEST": "1", "EVERLOOP_FAILPOINT": f"{point}:1:kill"}
    assert (await person.run("agent", "-m", "work")).status == -signal.SIGKILL
    del person.environment["EVERLOOP_FAILPOINT"]
    last = await say(person, "and again")
    for turn in (f"{last.partition(':')[0]}:1", last):
        ran = await person.run("replay", turn)
        assert re.fullmatch(r"the same: \d+ entries\n", ran.out), ran


async def test_a_turn_that_nobody_has_finished_yet_is_replayed_as_far_as_it_goes(person, model):
    model.play([Wait(model.gates["never"])])
    process = await person.start("agent", "-m", "hello")
    await model.called(1)
    process.kill()
    await process.wait()
    assert await person.run("replay", "last") == Ran(0, "the same: 2 entries; the turn is not over yet\n", "")


def kinds(person: Person, thread: str) -> list[str]:
    with sqlite3.connect(person.home / "everloop.db") as database:
        rows = database.execute("SELECT body FROM entries WHERE thread = ? ORDER BY seq", (thread,)).fetchall()
    database.close()
    return [json.loads(body)["kind"] for (body,) in rows]


@pytest.mark.may_hold_keys("everloop.db", "everloop.db-wal", "a command")  # someone has said it
async def test_as_a_test_it_passes_and_holds_no_key(person, model, tmp_path):
    model.play([WRITE, Say(f"done, and your key is {SECRET}")])
    turn = await say(person, f"write it down; my key is {SECRET}")
    file = tmp_path / "test_written.py"
    told = f"{file}: 7 entries. It holds the conversation; look at it before you give it away.\n"
    assert await person.run("replay", turn, "--as-test", str(file)) == Ran(0, told, "")
    assert SECRET not in file.read_text()
    assert "my key is ***" in file.read_text()
    assert "1 passed" in await asyncio.to_thread(run_pytest, file, person.environment)
    again = await person.run("replay", turn, "--as-test", str(file))
    assert again == Ran(1, "", f"everloop: {file} cannot be written (File exists)\n")


def run_pytest(file: Path, environment: dict[str, str]) -> str:
    folder = file.parent
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}", str(file)]
    source = str(Path(everloop.__file__).parents[1])
    nowhere = {**environment, "EVERLOOP_HOME": str(folder / "nowhere"), "PYTHONPATH": source}
    ran = subprocess.run(command, cwd=folder, env=nowhere, capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr


async def test_a_turn_that_differs_is_not_written_as_a_test(person, model, tmp_path):
    model.play([Say("hi")])
    turn = await say(person, "1")
    change(person, turn.partition(":")[0], 2, "Channel: cli", "Channel: sea")
    ran = await person.run("replay", turn, "--as-test", str(tmp_path / "test_x.py"))
    assert (ran.status, ran.out.splitlines()[0]) == (1, "different at 2, in model_called:")
    assert ran.err == "everloop: nothing was written: a test of this turn would fail already\n"
    assert not (tmp_path / "test_x.py").exists()
