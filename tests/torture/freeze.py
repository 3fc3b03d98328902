"""Frozen holders: SIGSTOP past the lease while others take over, then SIGCONT. A stale process must write nothing."""

import asyncio
import random
import time
from pathlib import Path

from .failpoints import LEASE
from .feed import make_feed
from .invariants import Report, check
from .world import Model, World

FREEZES_PER_WORLD = 5


def freeze_world(folder: Path, model: Model, seed: int, url: str, freezes: int = FREEZES_PER_WORLD) -> Report:
    """Two processes share the home; again and again one of them stands still for longer than its lease."""
    rng = random.Random(seed)
    world = World(folder, make_feed(folder.name, rng, messages=30), model, url=url, lease_seconds=LEASE)
    workers = [world.start(stay=True) for _ in range(2)]
    for _ in range(freezes):
        time.sleep(rng.uniform(0.02, 0.5))
        frozen = rng.choice(workers)
        world.freeze(frozen)
        time.sleep(LEASE * rng.uniform(1.2, 2.2))
        world.thaw(frozen)
    time.sleep(0.5)  # time for a stale process to do harm
    wrong = world.finish()
    for worker in workers:
        world.kill(worker)
    report = asyncio.run(check(world))
    report.wrong += wrong
    report.seen["kills"] = 0
    report.seen["freezes"] = freezes
    return report
