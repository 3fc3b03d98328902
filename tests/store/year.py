"""A process that sees to jobs by a simulated clock: `python -m tests.store.year HOME-OR-URL CLOCK`
(or, with the words `without a lease` behind, schedules alone, as one of many that do).

The test that starts it kills it at failpoints, and moves the clock on.
"""

import asyncio
import sys
from pathlib import Path

from everloop.bus.local import LocalBus
from everloop.ports import Store
from everloop.runtime.scheduler import Scheduler
from everloop.store.clocked import ClockedPostgresStore
from everloop.store.sqlite import SqliteStore
from everloop.testing import failpoints
from everloop.testing.clock import SimulatedClock


async def open_store(place: str, clock: SimulatedClock) -> Store:
    if place.startswith("postgresql:"):
        return await ClockedPostgresStore.connect_by(clock, place)
    return await SqliteStore.connect(Path(place), clock=clock)


async def live(place: str, clock: SimulatedClock) -> None:
    store = await open_store(place, clock)
    await Scheduler(store, LocalBus(), clock, lease_seconds=1.0).run()  # who is killed is succeeded when it runs out


async def fire_all(place: str, clock: SimulatedClock) -> None:
    """As often as it can, and without the lease, which is only for economy."""
    store = await open_store(place, clock)
    while True:
        await store.fire_schedules()
        await clock.sleep(1.0)


if __name__ == "__main__":
    failpoints.from_environment()
    do = fire_all if sys.argv[3:] == ["without a lease"] else live
    asyncio.run(do(sys.argv[1], SimulatedClock(Path(sys.argv[2]))))
