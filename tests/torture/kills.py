"""Random kills: one to three processes on one home, ended with SIGKILL at any moment, until all is answered."""

import asyncio
import random
import time
from pathlib import Path

from .feed import make_feed
from .invariants import Report, check
from .world import Model, World

KILLS_PER_WORLD = 25
SHORT = 0.1  # seconds, in which a process may do no more than open its home


def torture_world(folder: Path, model: Model, seed: int, url: str, kills: int) -> Report:
    """Live and die in one world until `kills` are used up or all is answered; then look at it from outside."""
    rng = random.Random(seed)
    lease = 1.0 if url else 30.0  # only on one machine can the others see that a process is dead
    world = World(folder, make_feed(folder.name, rng), model, url=url, lease_seconds=lease)
    size = rng.choice((1, 1, 2, 3))
    workers = [world.start() for _ in range(size)]
    while world.kills < kills and all(worker.exitcode is None for worker in workers):
        lives = moment(rng)
        if lives > SHORT:  # where others keep the machine busy, it would not even have begun
            for worker in workers:
                world.wait_until_awake(worker)
        time.sleep(lives * (4 if url else 1))  # so that a lease of the dead runs out now and then
        victim = rng.randrange(size)
        world.kill(workers[victim])
        workers[victim] = world.start()
    for worker in workers:
        world.kill(worker)
    wrong = world.finish()
    report = asyncio.run(check(world))
    report.wrong += wrong
    return report


def moment(rng: random.Random) -> float:
    """How long a process lives: often only long enough to open its home, sometimes for several turns."""
    return rng.choice((rng.uniform(0, 0.05), rng.uniform(0, 0.2), rng.uniform(0.05, 0.4)))
