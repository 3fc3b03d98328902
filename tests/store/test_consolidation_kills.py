"""Whoever is killed while a conversation becomes part of the memory leaves all of a part or nothing, and the next one
goes on there: no entry is skipped, and none remembered twice."""

import os
import signal
import sys
from asyncio import create_subprocess_exec
from pathlib import Path
from typing import Any

import pytest

import everloop
from everloop.ports.memory import MEMORY, MemoryChange, MemoryDocument
from everloop.testing.failpoints import names_in_source

from .consolidating import LINES, PARTS, LineModel, begin, consolidation, planner, remembered, work

POINTS = [name for name in names_in_source(Path(everloop.__file__).parent) if name.startswith("consolidation.")]
ALL = [f"line-{number}" for number in range(LINES)]
KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from everloop.store.postgres import PostgresStore
from everloop.store.sqlite import SqliteStore
from everloop.testing import failpoints
from tests.store.consolidating import LineModel, work

where, rows = sys.argv[1], int(sys.argv[2])
Base, place = (PostgresStore, where) if where.startswith("postgres") else (SqliteStore, Path(where))

class Killed(Base):
    written = 0
    async def change_memory(self, owner, change):
        self.written += 1
        return await super().change_memory(owner, change)
    async def _do(self, work):
        async def then(ask):
            result = await work(ask)
            if rows and self.written == rows:  # all is written, and nothing committed
                os.kill(os.getpid(), signal.SIGKILL)
            return result
        return await super()._do(then)

async def main():
    failpoints.from_environment()
    store = await Killed.connect(place)
    await work(store, LineModel())
    await store.close()

asyncio.run(main())
"""


async def run(home: Any, point: str = "", rows: int = 0) -> int:
    where = str(getattr(home, "path", "") or home.url)
    environ = {**os.environ, "EVERLOOP_TEST": "1", "EVERLOOP_FAILPOINT": point and f"{point}:kill"}
    process = await create_subprocess_exec(sys.executable, "-c", KILLED, where, str(rows), env=environ)
    return await process.wait()


@pytest.mark.parametrize("point", [*(f"{name}:2" for name in POINTS), "rows"])
async def test_a_kill_at_each_point_skips_nothing_and_remembers_nothing_twice(home: Any, point: str):
    store = await home.connect()
    thread = await begin(store)
    assert len(await planner(store).look()) == 1
    assert await run(home, *(("", 2) if point == "rows" else (point, 0))) == -signal.SIGKILL

    facts, memory, history = await remembered(store)
    parts = 2 if point == "consolidation.written:2" else 1
    assert facts == memory == history == ALL[: parts * LINES // PARTS]
    assert await store.consolidated(thread) == 3 * len(facts)

    await home.write("UPDATE jobs SET until = 0")  # what a claim needs to run out where nobody sees who is gone
    assert await work(store, LineModel()) == [f"consolidated in {PARTS - parts} part{'s' * (PARTS - parts != 1)}"]
    assert await remembered(store) == (ALL, ALL, ALL)
    assert (await store.consolidated(thread), await planner(store).look()) == (3 * LINES, [])
    assert sum(row.calls for row in await store.spent()) == PARTS


async def test_without_a_kill_the_same_process_ends_well(home: Any):
    store = await home.connect()
    await begin(store)
    await planner(store).look()
    assert await run(home) == 0
    assert await remembered(store) == (ALL, ALL, ALL)


async def test_two_who_work_at_once_remember_once(home: Any):
    """A process that was frozen wakes up when another has taken its job over."""
    one, other = await home.connect(), await home.connect()
    await begin(one)
    await planner(one).look()
    [row] = await one.claim_jobs(["consolidate"], 30.0)

    class Overtaken(LineModel):
        async def ask(self, *args: Any) -> Any:
            answer = await super().ask(*args)
            if len(self.asked) == 1:
                await consolidation(other, LineModel()).work(row)
            return answer

    assert await consolidation(one, Overtaken()).work(row) == "nothing to remember"
    assert await remembered(one) == (ALL, ALL, ALL)
    assert sum(each.calls for each in await one.spent()) == PARTS + 1  # what was paid is told


async def test_what_is_changed_meanwhile_is_merged(home: Any):
    store = await home.connect()
    await begin(store)
    await planner(store).look()
    [row] = await store.claim_jobs(["consolidate"], 30.0)

    class Edited(LineModel):
        async def ask(self, *args: Any) -> Any:
            answer = await super().ask(*args)
            memory = await store.document("owner", MEMORY)
            mine = MemoryDocument(MEMORY, f"{memory.body}Edit {len(self.asked)}.\n", memory.version)
            assert await store.change_memory("owner", MemoryChange("owner", "by hand", documents=(mine,)))
            return answer

    await consolidation(store, Edited()).work(row)
    body = (await store.document("owner", MEMORY)).body
    assert await remembered(store) == (ALL, ALL, ALL)
    assert [f"Edit {n}." in body for n in (1, 2, 3)] == [True, True, True]
