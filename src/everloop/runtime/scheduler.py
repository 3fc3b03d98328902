"""Sees to what is due: jobs that speak become letters, work is claimed and done.

One process does it for all, by a lease; nothing depends on that but economy, for each time of a job is fired, and each
piece of work settled, in a transaction of its own. `gateway` and `worker` see to everyone's jobs, and one of them holds
the lease all the time. Any other process takes one of its own when something is due, for the jobs of the person it acts
for, and sees to none while one of those is there.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from ..errors import Postponed, StoreError
from ..ports import Bus, Clock, Jobs, Leases
from ..ports.events import ScheduleFired
from ..ports.jobs import JobRow
from ..ports.schedules import FiredSchedule, Firing

_log = logging.getLogger("everloop.scheduler")

POLL = 1.0
FIRST, LONGEST = 5.0, 3600.0  # seconds before work is tried again: after the first failure, and at most
LEASE = "clock"
AT_ONCE = 4  # pieces of work, in this process

Worker = Callable[[JobRow], Coroutine[Any, Any, str]]


class JobStore(Jobs, Leases, Firing, Protocol):
    """What it asks of the store."""


class Scheduler:
    """`run` it under a supervisor. `workers` do the work of each kind and return what came of it; what they raise is
    kept with the job, which is tried again: when they say so, if they raise Postponed. Without an `owner` it is
    everyone's."""

    def __init__(
        self,
        store: JobStore,
        bus: Bus,
        clock: Clock,
        workers: Mapping[str, Worker] = {},
        owner: str = "",
        lease_seconds: float = 30.0,
    ) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._workers = workers
        self._owner = owner
        self._seconds = lease_seconds
        self._held: bool | None = None  # the lease, when it was last wanted
        self._is_away = False  # the store
        self._working = 0
        self._lease, self._under = (f"{LEASE}:{owner}", LEASE) if owner else (LEASE, "")

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    try:
                        for row in await self.look():
                            group.create_task(self._work(row))
                        self._is_away = False
                    except StoreError as error:
                        self._tell_once(error)
                    await self._clock.sleep(POLL)
        finally:
            if self._held:
                await asyncio.shield(self._leave())

    def _tell_once(self, error: StoreError) -> None:
        """One line for an outage, however long it lasts."""
        if not self._is_away:
            _log.warning("jobs wait until the store is back: %s", error)
        self._is_away = True

    async def look(self) -> list[JobRow]:
        """Fire what is due and speaks; returns what is due and is work, if there is room for it."""
        if not self._owner and not await self._hold():  # also while nothing is due: others leave it to this one
            return []
        if not await self._store.is_due(self._workers.keys(), self._owner):
            return []
        if self._owner and not await self._hold():
            return []
        while threads := await self._store.fire(self._owner):
            for thread in threads:
                self._bus.wake(thread)
        for fired in await self._store.fire_schedules(self._owner):
            tell_of(fired, self._bus)
        if self._working >= AT_ONCE:
            return []
        return await self._store.claim_jobs(self._workers.keys(), self._seconds, self._owner)

    @property
    def is_elsewhere(self) -> bool:
        """Whether it was looked for, and another process sees to everyone's jobs."""
        return not self._owner and self._held is False

    async def _hold(self) -> bool:
        """Also in a copy, where only what a person has asked for can be claimed."""
        self._held = await self._store.hold(self._lease, self._seconds, self._under, in_copy=True)
        return self._held

    async def _work(self, row: JobRow) -> None:
        self._working += 1
        work = asyncio.ensure_future(self._workers[row.job.kind](row))
        try:
            if not await self._see_it_done(row, work):
                return
        finally:
            self._working -= 1
            work.cancel()
            await asyncio.wait([work])
        await self._settle(row, work)

    async def _see_it_done(self, row: JobRow, work: "asyncio.Future[str]") -> bool:
        """Prolong the claim until the work is done. False when it is lost: another may be at it by now."""
        while not (await asyncio.wait([work], timeout=self._seconds / 3))[0]:
            try:
                if not await self._store.prolong_job(row, self._seconds):
                    _log.warning("the claim on job %s is lost", row.job.id)
                    return False
            except StoreError as error:
                _log.warning("the claim on job %s cannot be prolonged, which is tried again: %s", row.job.id, error)
        return True

    async def _settle(self, row: JobRow, work: "asyncio.Future[str]") -> None:
        """Write what came of it, however long that takes: forgetting it would do the work twice."""
        result, again_in = self._outcome(row, work)
        while True:
            try:
                await self._store.settle_job(row, result, again_in)
                return
            except StoreError as error:
                _log.warning("what came of job %s cannot be written: %s", row.job.id, error)
            await self._clock.sleep(POLL)

    def _outcome(self, row: JobRow, work: "asyncio.Future[str]") -> tuple[str, float | None]:
        error = asyncio.CancelledError("it was broken off") if work.cancelled() else work.exception()
        if error is None:
            return work.result(), None
        if isinstance(error, Postponed):
            return str(error), error.seconds
        pause = min(LONGEST, FIRST * 2 ** min(row.attempts - 1, 16)) * (0.5 + random.random() / 2)
        _log.error("job %s failed, and is tried again in %.0f s", row.job.id, pause, exc_info=error)
        return f"{type(error).__name__}: {error}", pause

    async def _leave(self) -> None:
        try:
            await self._store.let_go(self._lease)
        except StoreError as error:
            _log.warning("the lease on jobs is left to run out: %s", error)


def tell_of(fired: FiredSchedule, bus: Bus) -> None:
    """What a schedule has posted is read, and who looks on is told; after its commit."""
    if not fired.thread:
        return
    bus.wake(fired.thread)
    if fired.state in ("running", "done", "failed"):
        bus.publish(ScheduleFired(fired.thread, 0, fired.schedule, fired.name, fired.state, fired.result))
