"""Whenever the process is killed while a conversation is compacted: after the next start there is one summary or none,
nothing that was said is lost, and the turn has ended.

The places are not listed here: an undisturbed compaction tells which it reaches, and how often.
"""

import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.cli.person import Person

import everloop
from everloop.testing import Line, Say, Shown
from everloop.testing.failpoints import EXIT_CODE, reached_in
from everloop.testing.model_server import ModelServer

WINDOW = 16_000
LONG = "the quick brown fox jumps over the lazy dog and so on " * 55
TURNS = 10
LAST = f"message 15 {LONG * 6}"  # makes it too long


def answer(shown: Shown) -> Line:
    asked = shown.asked.partition("\n")[0][:20]  # what follows is the tail
    return Say("They talked." if shown.system.startswith("You summarise") else f"answer to {asked}")


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer(answer) as server:
        yield server


def someone(folder: Path, home: Path, model: ModelServer, **environment: str) -> Person:
    """A person with a copy of the home."""
    person = Person(folder, model)
    if home.exists() and not person.home.exists():
        shutil.copytree(home, person.home)
    person.environment.update(environment, EVERLOOP_AGENTS__DEFAULTS__CONTEXT_WINDOW=str(WINDOW))
    return person


@pytest.fixture
async def home(tmp_path: Path, model: ModelServer) -> Path:
    """One with a long conversation, and nobody is at home."""
    folder = tmp_path / "first"
    settings = {
        "agents": {"defaults": {"model": "custom/scripted", "context_window": WINDOW}},
        "providers": {"custom": {"api_base": model.url, "api_key": "sk-canary"}},
    }
    async with everloop.open(home=folder, settings=settings) as agent:
        for n in range(TURNS):
            await agent.ask(f"message {n:02} {LONG}", "cli:direct")
    assert "compacted" not in kinds_in(folder)
    return folder


def kinds_in(home: Path) -> list[str]:
    with sqlite3.connect(home / "everloop.db") as database:
        bodies = database.execute("SELECT body FROM entries ORDER BY thread, seq").fetchall()
    return [msgspec.json.decode(body)["kind"] for (body,) in bodies]


def wrong_in(kinds: list[str], turns: int = TURNS) -> list[str]:
    """What is not as it has to be when everything has come to rest."""
    seen = Counter(kinds)
    wrong = []
    if seen["user_said"] not in (turns, turns + 1):
        wrong.append("something that was said is lost or doubled")
    if seen["model_said"] != seen["user_said"]:
        wrong.append("a turn has not ended")
    if seen["compacted"] != seen["user_said"] - turns:
        wrong.append("there is not one summary for the turn that needed it")
    return wrong


def test_the_check_notices_a_second_summary_and_a_turn_that_has_not_ended():
    whole = ["user_said", "model_called", "model_said"] * TURNS
    assert wrong_in(whole) == []
    assert wrong_in([*whole, "user_said", "compacted", "model_called", "model_said"]) == []
    assert wrong_in([*whole, "user_said", "compacted", "compacted", "model_said"])
    assert wrong_in([*whole, "user_said", "compacted", "model_called"])


async def test_a_kill_at_any_place_leaves_one_summary_or_none_and_the_turn_ends(home, model, tmp_path):
    record = tmp_path / "reached.jsonl"
    calm = someone(tmp_path / "calm", home, model, EVERLOOP_TEST="1", EVERLOOP_FAILPOINT_RECORD=str(record))
    ran = await calm.run("agent", "-m", LAST)
    assert ran.out == "answer to message 15 the quick\n"
    assert "earlier parts are now a summary" in ran.err
    assert kinds_in(calm.home)[-4:] == ["user_said", "compacted", "model_called", "model_said"]
    assert wrong_in(kinds_in(calm.home)) == []
    reached = Counter(reached_in(record))
    assert (reached["compaction.summarised"], reached["compaction.written"]) == (1, 1)
    ends: Counter[int] = Counter()
    for name, times in sorted(reached.items()):
        for nth in range(1, times + 1):
            point = f"{name}:{nth}:{'exit' if nth % 2 else 'kill'}"
            folder = tmp_path / f"{name}-{nth}"
            killed = someone(folder, home, model, EVERLOOP_TEST="1", EVERLOOP_FAILPOINT=point)
            assert (await killed.run("agent", "-m", LAST)).status in (-9, EXIT_CODE, 0), point
            assert (await someone(folder, home, model).run("agent")).status == 0, point
            kinds = kinds_in(killed.home)
            assert wrong_in(kinds) == [], point
            ends[kinds.count("compacted")] += 1
    assert ends[1] > 5


async def test_a_kill_while_a_summary_that_was_asked_for_is_written_loses_nothing(home, model, tmp_path):
    for name in ("compaction.summarised", "compaction.written"):
        folder = tmp_path / name
        killed = someone(folder, home, model, EVERLOOP_TEST="1", EVERLOOP_FAILPOINT=f"{name}:1:kill")
        process = await killed.start("agent")
        process.stdin.write(b"/compact\n")
        await process.stdin.drain()
        assert await process.wait() == -9
        again = await someone(folder, home, model).run("agent", "-m", "and now?")
        assert again.out == "answer to and now?\n", name
        assert Counter(kinds_in(killed.home))["compacted"] == 1, name
        assert wrong_in([kind for kind in kinds_in(killed.home) if kind != "compacted"] + ["compacted"]) == [], name


async def test_a_process_that_ends_at_once_leaves_what_was_asked_for_to_the_next(home, model, tmp_path):
    person = someone(tmp_path / "hasty", home, model)
    ran = await person.run("agent", "-m", "/compact")
    assert ran.out == "What was said before becomes a summary; nothing of it is lost.\n"
    with sqlite3.connect(person.home / "everloop.db") as database:
        assert database.execute("SELECT state FROM threads").fetchall() == [("resting",)]
    assert (await person.run("agent", "-m", "and now?")).out == "answer to and now?\n"
    assert wrong_in(kinds_in(person.home)) == []
