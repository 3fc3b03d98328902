"""A year of schedules over both databases: clocks that change, a machine that sleeps, and three processes that all fire
at once, without a lease, and are killed in the middle of it. Nothing is told twice, nothing missed but by policy."""

import asyncio
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import apsw
import asyncpg
import pytest
from tests.effort import in_full

from everloop.ports.schedules import Schedule
from everloop.store.schedule import event_of, next_due
from everloop.testing.clock import SimulatedClock

from .year import open_store

DAY = 86400.0
BEGAN = datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC")).timestamp()
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")
# A year is long enough with few times of the day, if there are many schedules for each.
TIMES = in_full(
    ("30 2 * * *", "0 */12 * * *"), ("30 2 * * *", "0 0 * * *", "0 8 * * 1-5", "15 1,13 * * *", "0 */6 * * *")
)
POINTS = ("schedule.claimed", "schedule.posted")
# In the short form the days around the changes of the clocks; in full the year, more than 10,000 fires.
DAYS = in_full([range(365)], [range(87, 88), range(297, 298)])
COPIES = in_full(3, 1)


def schedules() -> list[Schedule]:
    made = []
    for n, (zone, time) in enumerate((zone, time) for _ in range(COPIES) for zone in ZONES for time in TIMES):
        given = {"owner": "owner", "name": f"n{n}", "does": "message", "text": "up", "session": f"test:chat{n % 7}"}
        policy: Any = "skip" if n % 5 == 2 else "late"
        made.append(Schedule(id=f"s{n}", rule=f"cron {zone} {time}", zone=zone, misfire=policy, **given))
    return made


class Simulation:
    """One database, one clock, and the three processes."""

    def __init__(self, place: str, file: Path) -> None:
        self.place = place
        self.clock = SimulatedClock(file)
        self._file = file
        self._random = random.Random(19)
        self._processes: list[subprocess.Popen[bytes]] = []
        self.killed = 0

    async def begin(self) -> None:
        self._server = await asyncpg.connect(self.place) if self.place.startswith("postgresql:") else None
        self._reader: apsw.Connection | None = None
        self.clock.set(BEGAN)

    async def runs(self) -> int:
        return int((await self._rows("SELECT count(*) FROM schedule_runs"))[0][0])

    async def _rows(self, query: str) -> list[Any]:
        if self._server:
            return list(await self._server.fetch(query))
        if self._reader is None:
            self._reader = apsw.Connection(f"{self.place}/everloop.db")
            self._reader.set_busy_timeout(10_000)
        return self._reader.execute(query).fetchall()

    async def told(self) -> list[str]:
        return [row[0] for row in await self._rows("SELECT event FROM inbox ORDER BY id")]

    async def noted(self) -> dict[str, str]:
        rows = await self._rows("SELECT event, state FROM schedule_runs")
        return {row[0]: row[1] for row in rows}

    def start(self, failpoint: str = "") -> None:
        armed = {"EVERLOOP_TEST": "1", "EVERLOOP_FAILPOINT": f"{failpoint}:1:kill"} if failpoint else {}
        command = [sys.executable, "-m", "tests.store.year", self.place, str(self._file), "without a lease"]
        self._processes.append(subprocess.Popen(command, env={**os.environ, **armed}))

    def look_after(self) -> None:
        """Whoever was killed is succeeded; now and then by one that is killed in the middle of its first fire."""
        for process in [each for each in self._processes if each.poll() is not None]:
            self._processes.remove(process)
            self.killed += 1
        while len(self._processes) < 3:
            self.start(self._random.choice(("", *POINTS)))

    def kill_one(self) -> None:
        self._random.choice(self._processes).kill()

    async def pass_to(self, then: float, runs: int, following: float) -> None:
        """Let it be then, and wait until there are so many runs. However long that takes, it is not yet `following`."""
        self.clock.set(max(self.clock.now(), then))
        while await self.runs() < runs:
            self.look_after()
            await asyncio.sleep(0.002)
            self.clock.set(min(self.clock.now() + 1, following - 1))

    async def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        if self._server:
            await self._server.close()
        if self._reader:
            self._reader.close()


@pytest.fixture
async def simulation(home: Any, tmp_path: Path) -> AsyncIterator[Simulation]:
    made = Simulation(getattr(home, "url", "") or str(tmp_path / "home"), tmp_path / "clock")
    await made.begin()
    yield made
    await made.close()


@pytest.mark.shortened
@pytest.mark.timeout(in_full(900, 120))
async def test_a_year_of_schedules_is_told_once_and_whole(simulation: Simulation):
    store = await open_store(simulation.place, simulation.clock)
    made, expected = schedules(), Counter[str]()
    for days in DAYS:
        for each in made:  # nothing is due while the year goes on to what is looked at
            await store.change_schedule(each, None, False)
        began = max(BEGAN + days.start * DAY, simulation.clock.now())
        simulation.clock.set(began)
        due = {}
        for each in made:
            due[each.id] = first = next_due(each.rule, began, began) or 0.0
            if not await store.add_schedule(each, first, 1000):
                await store.change_schedule(each, first, True)
        await live_through(simulation, made, due, BEGAN + days.stop * DAY, expected)
    told, noted = Counter(await simulation.told()), await simulation.noted()
    passed = {event for event, state in noted.items() if state == "skipped"}
    assert max(told.values()) == 1
    assert told.keys() == expected.keys() - passed
    assert noted.keys() == expected.keys()
    assert all(policy_of(made, event) == "skip" for event in passed)
    assert simulation.killed > 0
    assert len(expected) >= in_full(10_000, 50)
    await store.close()


async def live_through(
    simulation: Simulation, made: list[Schedule], due: dict[str, float], until: float, expected: Counter[str]
) -> None:
    """From one time to the next; on one day the machine sleeps, and each schedule's missed times are one run."""
    step = 0
    while (then := min(due.values())) < until:
        asleep = step % 40 == 15
        now = then + DAY if asleep else then
        for each in made:
            if due[each.id] <= now:
                expected[event_of(each.id, due[each.id])] += 1
        if step % 15 == 5:
            simulation.kill_one()
        if step % 15 == 10:
            simulation.clock.set(simulation.clock.now() - 1800)  # somebody sets the clock back (SQLite's is this one)
        following = min((next_due(each.rule, at, now) or until) if (at := due[each.id]) <= now else at for each in made)
        await simulation.pass_to(now, len(expected), following)
        now = simulation.clock.now()
        for each in made:  # what is next is what the store says, for time went on while it was waited
            while due[each.id] <= now:
                due[each.id] = next_due(each.rule, due[each.id], now) or 0.0
        step += 1


def policy_of(made: list[Schedule], event: str) -> str:
    id = event.split(":")[1]
    return next(each.misfire for each in made if each.id == id)
