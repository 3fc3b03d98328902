"""Whatever is killed while tasks are handed on, worked at and reported: each is worked at once, and told once, and
no process is left of it.

The places are not listed here: an undisturbed run tells which it reaches, and how often.
"""

import json
import os
import signal
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.effort import in_full
from tests.processes import see_none_left

from everloop.testing.failpoints import reached_in

WORKER = Path(__file__).with_name("task_worker.py")
STEPS = 15  # of the task that is waited for


async def worked(folder: Path, url: str, **environment: str) -> tuple[int, dict[str, Any]]:
    process = await create_subprocess_exec(
        sys.executable, str(WORKER), str(folder), url, str(STEPS), env={**os.environ, **environment}, stdout=PIPE
    )
    out, _ = await process.communicate()
    return process.returncode or 0, json.loads(out) if process.returncode == 0 else {}


def is_ours(name: str) -> bool:
    return name.split(".")[0] in ("task", "call", "model", "turn", "thread", "answer")


def chosen(reached: Counter[str], most: int) -> list[str]:
    """Places to be killed at: spread over the whole run, with each name among them."""
    every = [f"{name}:{nth}:kill" for name in sorted(reached) for nth in range(1, reached[name] + 1)]
    return every[:: max(1, len(every) // most)]


END = {
    "results": ["A", "Handed on"],
    "told": ["B"],
    "answers": ["done", "told of b"],
    "log": "0\n5\n10\n",
    "files": sorted([*(f"{step}.txt" for step in range(14) if step % 5), "log.txt"]),
}


@pytest.mark.shortened
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("home", "most"), [("sqlite", 5), ("postgres", 2)], indirect=["home"])
async def test_a_kill_at_any_place_loses_nothing_and_tells_nothing_twice(home: Any, tmp_path: Path, most: int):
    url, record = getattr(home, "url", ""), tmp_path / "reached.jsonl"
    status, calm = await worked(tmp_path / "calm", url, EVERLOOP_TEST="1", EVERLOOP_FAILPOINT_RECORD=str(record))
    assert (status, {name: calm[name] for name in END}) == (0, END)
    assert calm["tasks"] == [["a", "done", STEPS], ["b", "done", 1]]
    reached = Counter(name for name in reached_in(record) if is_ours(name))
    assert reached["task.handed_on"] == 2
    for point in chosen(reached, in_full(1000, most)):
        if url:
            await home.load("".join(f"DELETE FROM {table};" for table in TABLES))
        folder = tmp_path / point.replace(":", "-")
        status, _ = await worked(folder, url, EVERLOOP_TEST="1", EVERLOOP_FAILPOINT=point)
        assert status in (-signal.SIGKILL, 0), point  # how often a place is reached differs by how things interleave
        status, end = await worked(folder, url)
        assert (point, status, {name: end[name] for name in END}) == (point, 0, END)
        await see_none_left(folder)


TABLES = ("entries", "inbox", "outbox", "sessions", "threads", "usage", "jobs", "taints", "command_homes")


def test_the_check_notices_a_result_that_is_told_twice_or_lost():
    assert {**END, "told": ["B", "B"]} != END
    assert {**END, "log": "0\n5\n5\n10\n"} != END
    assert chosen(Counter({"a": 2, "b": 1}), 10) == ["a:1:kill", "a:2:kill", "b:1:kill"]
