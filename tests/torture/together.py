"""Several processes on one home, none of them harmed: each thread is driven by one of them at a time."""

import asyncio
import random
from pathlib import Path

from .feed import make_feed
from .invariants import Report, check
from .world import Model, Sabotage, World


def share_home(
    folder: Path, model: Model, seed: int, url: str, processes: int = 3, sabotage: Sabotage | None = None
) -> Report:
    """All of them are told every message, in every session; whoever has a thread keeps the others out of it."""
    world = World(folder, make_feed(folder.name, random.Random(seed)), model, url=url, sabotage=sabotage)
    workers = [world.start() for _ in range(processes)]
    wrong = []
    for worker in workers:
        worker.join(60)
        if worker.exitcode != 0:
            wrong.append(f"{folder.name}: a process that shares the home ended with {worker.exitcode}")
        worker.kill()
        worker.join()
    report = asyncio.run(check(world))
    report.wrong += wrong
    report.seen = +report.seen
    report.seen["processes"] = processes
    return report
