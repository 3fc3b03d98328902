"""Whenever the process is killed while the agent tells something in another conversation: after the next start it
stands there once, with its file, or the turn that was to tell it had never been taken.

The places are not listed here: an undisturbed turn tells which it reaches, and how often.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.cli.person import Person, someone

import everloop
from everloop.testing import Call, Line, Say, ScriptedModel, Shown
from everloop.testing.failpoints import EXIT_CODE, reached_in
from everloop.testing.model_server import ModelServer

WORD = {"session": "cli:other", "text": "Lunch is at one.", "files": ["menu.txt"]}


def line(shown: Shown) -> Line:
    if "tell" in shown.asked and shown.step == 0:
        return Call("message", WORD)
    return Say("done")


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        server.play(line)
        yield server


@pytest.fixture
async def home(tmp_path: Path, model: ModelServer) -> Path:
    """One in which two conversations have begun, and nobody is at home."""
    person = Person(tmp_path / "first", model)
    workspace = person.home / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "menu.txt").write_text("soup")
    for session in ("cli:direct", "cli:other"):
        assert (await person.run("agent", "-s", session, "-m", "hi")).out == "done\n"
    return person.home


class Found(msgspec.Struct, frozen=True):
    """How often it was told, how often it is to be delivered, and how the call ended if it was made."""

    told: int
    queued: int
    outcomes: tuple[str, ...]


def found(home: Path) -> Found:
    with sqlite3.connect(home / "everloop.db") as database:
        told = database.execute('SELECT body FROM entries WHERE body LIKE \'{"kind":"agent_told"%\'').fetchall()
        queued = database.execute("SELECT body FROM outbox WHERE chat = 'cli:other' AND body LIKE '%Lunch%'").fetchall()
        ended = database.execute('SELECT body FROM entries WHERE body LIKE \'{"kind":"call_returned"%\'').fetchall()
    assert all('"name":"menu.txt"' in body for (body,) in told)
    return Found(len(told), len(queued), tuple(msgspec.json.decode(body).get("outcome", "done") for (body,) in ended))


ONCE, NEVER = Found(1, 1, ("done",)), Found(0, 0, ())


async def settled(home: Path) -> Found:
    """What there is when, after another start, nobody has anything left to do."""
    async with everloop.open(home=home, provider=ScriptedModel(line)) as agent, asyncio.timeout(120):
        while True:
            if not await agent.store.waiting() and not agent.store.running:
                break
            await asyncio.sleep(0.02)
    return found(home)


async def test_a_kill_at_any_place_leaves_it_told_once_or_never_taken(home, model, tmp_path):
    record = tmp_path / "reached.jsonl"
    calm = someone(tmp_path / "calm", home, model, EVERLOOP_TEST="1", EVERLOOP_FAILPOINT_RECORD=str(record))
    assert (await calm.run("agent", "-m", "tell")).out == "done\n"
    assert await settled(calm.home) == ONCE
    reached = Counter(reached_in(record))
    assert {"call.started", "call.done"} < reached.keys()
    ends: Counter[Found] = Counter()
    for name, times in sorted(reached.items()):
        for nth in range(1, times + 1):
            point = f"{name}:{nth}:kill"
            killed = someone(tmp_path / f"{name}-{nth}", home, model, EVERLOOP_TEST="1", EVERLOOP_FAILPOINT=point)
            assert (await killed.run("agent", "-m", "tell")).status in (-9, EXIT_CODE, 0), point
            end = await settled(killed.home)
            assert end in (ONCE, NEVER), point
            ends[end] += 1
    assert ends[ONCE] > 5
    assert ends[NEVER] > 0


async def test_what_was_sent_before_a_kill_is_known_to_be_sent_though_its_file_is_gone(home, model, tmp_path):
    killed = someone(tmp_path / "k", home, model, EVERLOOP_TEST="1", EVERLOOP_FAILPOINT="call.done:1:kill")
    assert (await killed.run("agent", "-m", "tell")).status == -9
    (killed.home / "workspace" / "menu.txt").unlink()
    assert await settled(killed.home) == ONCE


def test_twice_would_be_noticed(tmp_path: Path):
    with sqlite3.connect(tmp_path / "everloop.db") as database:
        for table in ("entries", "outbox"):
            database.execute(f"CREATE TABLE {table}(chat TEXT, body TEXT)")
        told = '{"kind":"agent_told","text":"Lunch","files":[{"name":"menu.txt"}]}'
        database.executemany("INSERT INTO entries VALUES('', ?)", [(told,), (told,)])
    assert found(tmp_path) == Found(2, 0, ())
