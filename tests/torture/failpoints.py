"""Every named failpoint, with every action: reach it in a real process, recover, and look at the world outside.

The names come from the source, so a new one is tortured as soon as it is written, and one that no scenario reaches
is a violation.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import everloop
from everloop.testing.failpoints import EXIT_CODE, names_in_source, reached_in

from .feed import Event
from .invariants import Report, check
from .world import UNBORN, Model, Sabotage, World

ACTIONS = ("kill", "exit", "raise", "stop")
LEASE = 1.0
PATIENCE = 60.0
MUCH = "\n" + "and so on and on " * 100  # what follows the first line is no order to the model
FATAL = {"store.migrating"}  # an error that nobody expects here ends the process, not silently


# Of these, tests/store/test_erasure_kills.py, test_consolidation_kills.py, test_task_kills.py, test_schedules.py and
# test_heartbeats.py meet every one.
ELSEWHERE = ("backup.", "restore.", "erasure.", "consolidation.", "task.", "schedule.", "heartbeat.")


def names() -> list[str]:
    return [name for name in names_in_source(Path(everloop.__file__).parent) if not name.startswith(ELSEWHERE)]


def actions_at(place: int, others: int) -> list[str]:
    """A kill, and so many of the other actions: at each failpoint those that the one before did not have."""
    kill, *rest = ACTIONS
    return [kill, *(rest[(place * others + n) % len(rest)] for n in range(others))]


def scenario(world: str) -> list[Event]:
    """Short, but every step and every command is in it: calls of each class, a question, a stop, a new thread, a
    summary."""
    said = {
        "idem:crowd0": ("read+read", "keyed+unsafe+verifiable", "idempotent+read keyed", "/compact"),
        "blind:person1": ("unsafe", "/stop", "verifiable+keyed", ""),
        "idem:asked2": ("guarded+read", "guarded+guarded"),
        "blind:moving3": ("keyed", "/new", "unsafe+read", "/help"),
        "idem:long4": (f"read+read{MUCH}", f"keyed{MUCH}", f"read{MUCH}", "/compact", "unsafe"),
    }
    return [
        Event(
            id,
            session,
            f"guest{n}" if "crowd" in session else "owner",
            text if text.startswith("/") else f"{id} {text}".strip(),
        )
        for session, texts in said.items()
        for n, text in enumerate(texts)
        for id in [f"{world}/{session}#{n}"]
    ]


def times_reached(folder: Path, model: Model, url: str = "") -> Counter[str]:
    """How often an undisturbed process reaches each failpoint."""
    world = World(folder, scenario(folder.name), model, url=url)
    world.start(failpoint="none:1:kill").join(PATIENCE)
    return Counter(reached_in(folder / "reached.jsonl"))


def torture_point(
    folder: Path,
    model: Model,
    name: str,
    nth: int,
    action: str,
    url: str = "",
    sabotage: Sabotage | None = None,
) -> Report:
    """One process meets its failpoint; another goes on."""
    lease = LEASE if action == "stop" or url else 30.0
    world = World(folder, scenario(folder.name), model, url=url, lease_seconds=lease, sabotage=sabotage)
    first = world.start(failpoint=f"{name}:{nth}:{action}")
    # PostgreSQL ends a transaction that stands still, so that others can migrate: the thawed process says so and ends.
    after_stop = 1 if url and name == "store.migrating" else 0
    wrong = list(_meet(world, first, action, 1 if name in FATAL else 0, after_stop))
    wrong += world.finish()
    report = asyncio.run(check(world))
    reached = reached_in(folder / "reached.jsonl").count(name)
    if reached < nth:
        wrong.append(f"{name} was reached {reached} times, not {nth}")
    report.wrong += [f"{folder.name}: {sentence}" for sentence in wrong]
    report.seen = +report.seen
    report.seen[f"points x {action}"] = 1
    return report


def _meet(world: World, first: BaseProcess, action: str, after_raise: int, after_stop: int) -> Iterator[str]:
    world.kills = 1  # whatever the action: it may cost one model call in each thread
    if action == "stop":
        if not stands_still(first):
            yield "the process did not stop at its failpoint"
        second = world.start()
        second.join(3 * LEASE)  # long enough to take over, and to finish what can be finished
        world.thaw(first)
        second.join(PATIENCE)
        if second.exitcode not in (0, UNBORN):
            yield f"the second process ended with {second.exitcode}"
        second.kill()
    first.join(PATIENCE)
    expected = {"kill": -9, "exit": EXIT_CODE, "raise": after_raise, "stop": after_stop}[action]
    if first.exitcode != expected:
        yield f"the process ended with {first.exitcode} after {action}"
    first.kill()
    first.join()


def stands_still(process: BaseProcess) -> bool:
    """Wait until the process has been stopped."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.is_alive():
        if Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            return True
        time.sleep(0.01)
    return False
