"""A year of a daily job, in seconds, over both databases, while processes that see to it are killed."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest
from tests.effort import in_full

from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.ports.jobs import Job
from everloop.store.schedule import event_of
from everloop.testing.clock import SimulatedClock

from .year import open_store

DAYS, DAY, BEGAN = 365, 86400.0, 1_800_000_000.0
KILLS = {31: "job.posted", 200: "job.claimed"} | in_full({30: "job.claimed", 90: "job.posted", 364: "job.posted"}, {})
CHAT = Address("test", "chat")


class Simulation:
    """One database and one clock for all processes."""

    def __init__(self, place: str, file: Path) -> None:
        self.place = place
        self.clock = SimulatedClock(file)
        self._file = file
        self._server: Any = None
        self._reader: apsw.Connection | None = None

    async def begin(self) -> None:
        if self.place.startswith("postgresql:"):
            self._server = await asyncpg.connect(self.place)
        self.clock.set(BEGAN)

    async def letters(self) -> list[tuple[str, float]]:
        query = "SELECT event, at FROM inbox ORDER BY id"
        if self._server:
            return [tuple(row) for row in await self._server.fetch(query)]
        if self._reader is None:
            self._reader = apsw.Connection(f"{self.place}/everloop.db")
        return self._reader.execute(query).fetchall()

    async def count(self, letters: int, process: subprocess.Popen[bytes]) -> bool:
        """Wait for so many letters, while time goes on; False when the process has ended before."""
        while len(await self.letters()) < letters:
            if process.poll() is not None:
                return False
            await asyncio.sleep(0.002)
            self.clock.set(self.clock.now() + 1)
        return True

    async def close(self) -> None:
        if self._server:
            await self._server.close()
        if self._reader:
            self._reader.close()

    @contextmanager
    def process(self, failpoint: str = "") -> Iterator[subprocess.Popen[bytes]]:
        armed = {"EVERLOOP_TEST": "1", "EVERLOOP_FAILPOINT": f"{failpoint}:1:kill"} if failpoint else {}
        command = [sys.executable, "-m", "tests.store.year", self.place, str(self._file)]
        with subprocess.Popen(command, env={**os.environ, **armed}) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
async def simulation(home: Any, tmp_path: Path) -> AsyncIterator[Simulation]:
    url = getattr(home, "url", "")
    made = Simulation(url or str(tmp_path / "home"), tmp_path / "clock")
    await made.begin()
    yield made
    await made.close()


@pytest.mark.shortened
async def test_a_daily_job_speaks_each_day_of_a_year_whoever_is_killed(simulation: Simulation):
    store = await open_store(simulation.place, simulation.clock)
    letter = Inbound(CHAT, "", Said(said("good morning"), "owner", str(CHAT)))
    assert await store.add_job(Job("daily", "reminder", BEGAN + DAY, schedule=f"every {DAY}", letter=letter))
    for first, until, failpoint in legs():
        with simulation.process(failpoint) as process:
            for day in range(first, until):
                simulation.clock.set(BEGAN + (day + 1) * DAY)
                assert await simulation.count(day + 1, process) is not bool(failpoint)
            process.kill()
            assert process.wait() == -9
    told = await simulation.letters()
    assert [event for event, _ in told] == [event_of("daily", BEGAN + (day + 1) * DAY) for day in range(DAYS)]
    assert [int((at - BEGAN) // DAY) for _, at in told] == [day + 1 for day in range(DAYS)]
    (row,) = await store.jobs("owner")
    assert (row.job.due, row.state) == (BEGAN + (DAYS + 1) * DAY, "waiting")
    await store.close()


def legs() -> Iterator[tuple[int, int, str]]:
    """From which day to which a process lives, and where it is killed. The day of a kill is begun again."""
    first = 0
    for day, failpoint in sorted(KILLS.items()):
        yield first, day, ""
        yield day, day + 1, failpoint
        first = day
    yield first, DAYS, ""


async def test_after_a_month_in_which_nobody_was_there_one_letter_makes_up_for_it(simulation: Simulation):
    store = await open_store(simulation.place, simulation.clock)
    letter = Inbound(CHAT, "", Said(said("good morning"), "owner", str(CHAT)))
    await store.add_job(Job("daily", "reminder", BEGAN + DAY, schedule=f"every {DAY}", letter=letter))
    simulation.clock.set(BEGAN + 30.5 * DAY)
    with simulation.process() as process:
        assert await simulation.count(1, process)
        simulation.clock.set(BEGAN + 31 * DAY)
        assert await simulation.count(2, process)
    assert [event for event, _ in await simulation.letters()] == [
        event_of("daily", BEGAN + DAY),
        event_of("daily", BEGAN + 31 * DAY),
    ]
    await store.close()


async def test_what_is_written_has_the_time_of_the_simulated_clock(simulation: Simulation):
    """Else the year above would show nothing."""
    store = await open_store(simulation.place, simulation.clock)
    await store.receive(Inbound(CHAT, "e", Said(said("hi"), "owner")))
    assert [at for _, at in await simulation.letters()] == [BEGAN]
    await store.close()
