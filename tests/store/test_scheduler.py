"""Who sees to jobs: one process for everyone, any other for its own person and never beside that one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Protocol

import pytest

from everloop.bus.local import LocalBus
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.errors import StoreError
from everloop.ports import Store
from everloop.ports.jobs import Job, JobRow
from everloop.runtime.scheduler import Scheduler, Worker


class Home(Protocol):
    async def connect(self, lease_seconds: float = 30.0) -> Store: ...
    async def write(self, statement: str) -> None: ...
    async def rows(self, query: str) -> list[tuple[Any, ...]]: ...


class QuickClock:
    """A second of it is a moment."""

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.005)


@pytest.fixture
async def pair(home: Home) -> list[Store]:
    return [await home.connect(), await home.connect()]


def speaking(id: str, owner: str = "owner") -> Job:
    address = Address("test", owner)
    return Job(id, "reminder", 1.0, owner, letter=Inbound(address, "", Said(said("hi"), owner), owner))


def scheduler(
    store: Store, owner: str = "", workers: Mapping[str, Worker] = MappingProxyType({}), seconds: float = 30.0
) -> Scheduler:
    return Scheduler(store, LocalBus(), QuickClock(), workers, owner, seconds)


@asynccontextmanager
async def running(*schedulers: Scheduler) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(each.run()) for each in schedulers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    while not await true():  # noqa: ASYNC110  it happens in the database
        await asyncio.sleep(0.005)


async def events(home: Home) -> list[str]:
    return sorted(event for (event,) in await home.rows("SELECT event FROM inbox"))


async def test_a_due_job_wakes_its_thread(store: Store):
    woken: list[str] = []
    bus = LocalBus()
    bus.listen(woken.append, lambda thread: None)
    await store.add_job(speaking("j"))
    assert await Scheduler(store, bus, QuickClock()).look() == []
    row = await store.session("test:owner")
    assert row is not None
    assert woken == [row.id]


async def test_while_nothing_is_due_whoever_acts_for_one_person_writes_nothing(home: Home, store: Store):
    await scheduler(store, "ann").look()
    assert await home.rows("SELECT * FROM leases") == []


async def test_one_for_everyone_is_there_also_while_nothing_is_due(home: Home, pair: list[Store]):
    everyones, hers = scheduler(pair[0]), scheduler(pair[1], "ann")
    await everyones.look()
    await pair[0].add_job(speaking("hers", "ann"))
    await hers.look()
    assert await events(home) == []
    assert await home.rows("SELECT name, holder, epoch FROM leases") == [("clock", pair[0].holder, 1)]
    await everyones.look()
    assert await events(home) == ["job:hers:1"]


async def test_a_second_one_for_everyone_stands_by(pair: list[Store]):
    first, second = (scheduler(store) for store in pair)
    assert [first.is_elsewhere, second.is_elsewhere] == [False, False]  # nobody has looked yet
    await first.look()
    await second.look()
    assert [first.is_elsewhere, second.is_elsewhere] == [False, True]


async def test_of_two_for_everyone_one_sees_to_it(home: Home, pair: list[Store]):
    first, second = (scheduler(store) for store in pair)
    await pair[0].add_job(speaking("a"))
    await first.look()
    await pair[0].add_job(speaking("b"))
    await second.look()
    assert await events(home) == ["job:a:1"]
    await first.look()
    assert await events(home) == ["job:a:1", "job:b:1"]


async def test_whoever_acts_for_one_person_sees_to_their_jobs_alone(home: Home, pair: list[Store]):
    for owner in ("ann", "owner"):
        await pair[0].add_job(speaking(owner, owner))
    await scheduler(pair[1], "ann").look()
    assert await events(home) == ["job:ann:1"]
    await scheduler(pair[0]).look()
    assert await events(home) == ["job:ann:1", "job:owner:1"]


async def test_whoever_acts_for_one_person_keeps_out_of_the_way_of_one_for_everyone(home: Home, pair: list[Store]):
    everyones, hers = scheduler(pair[0]), scheduler(pair[1], "ann")
    await pair[0].add_job(speaking("first"))
    await everyones.look()
    await pair[0].add_job(speaking("hers", "ann"))
    await hers.look()
    assert await events(home) == ["job:first:1"]
    await home.write("UPDATE leases SET until = 1")
    await hers.look()
    assert await events(home) == ["job:first:1", "job:hers:1"]


async def test_whoever_ends_lets_the_next_begin_at_once(home: Home, pair: list[Store]):
    await pair[0].add_job(speaking("a"))
    async with running(scheduler(pair[0])):
        await until(lambda: _are(home, 1))
    await pair[0].add_job(speaking("b"))
    await scheduler(pair[1]).look()
    assert await events(home) == ["job:a:1", "job:b:1"]


async def _are(home: Home, letters: int) -> bool:
    return len(await events(home)) == letters


async def test_work_is_done_once_by_one_of_many_and_its_result_is_kept(home: Home, pair: list[Store]):
    did: list[str] = []

    async def tidy(row: JobRow) -> str:
        did.append(row.job.payload)
        return "tidy now"

    for n in range(5):
        await pair[0].add_job(Job(f"w{n}", "tidy", 1.0, payload=str(n)))
    await pair[0].add_job(Job("other", "unknown", 1.0))
    async with running(*(scheduler(store, workers={"tidy": tidy}) for store in pair)):
        await until(lambda: _settled(pair[0], 5))
    assert sorted(did) == ["0", "1", "2", "3", "4"]
    rows = await pair[0].jobs("owner")
    assert sorted((row.job.id, row.state, row.result) for row in rows) == [
        ("other", "waiting", ""),
        *[(f"w{n}", "done", "tidy now") for n in range(5)],
    ]


async def _settled(store: Store, jobs: int) -> bool:
    return len([row for row in await store.jobs("owner") if row.state == "done"]) == jobs


async def test_work_that_fails_is_tried_again_later_and_keeps_why(home: Home, store: Store, caplog):
    tries: list[int] = []

    async def tidy(row: JobRow) -> str:
        tries.append(row.attempts)
        if len(tries) < 3:
            raise OSError("the disk is full")
        return "tidy now"

    await store.add_job(Job("w", "tidy", 1.0))

    async def is_done() -> bool:
        (row,) = await store.jobs("owner")
        if row.state == "waiting" and row.attempts:
            assert row.result == "OSError: the disk is full"
            await home.write("UPDATE jobs SET until = 0 WHERE state = 'waiting'")
        return row.state == "done"

    async with running(scheduler(store, workers={"tidy": tidy})):
        await until(is_done)
    assert tries == [1, 2, 3]
    assert caplog.text.count("job w failed, and is tried again in") == 2


async def test_work_that_takes_longer_than_its_claim_keeps_it(home: Home, pair: list[Store]):
    begun, go_on, did = asyncio.Event(), asyncio.Event(), []
    seconds = 4.0  # of a claim: long enough for a slow disk to prolong it, and waited for as a whole

    async def tidy(row: JobRow) -> str:
        did.append(row.epoch)
        begun.set()
        await go_on.wait()
        return "at last"

    await pair[0].add_job(Job("w", "tidy", 1.0))
    schedulers = [scheduler(store, workers={"tidy": tidy}, seconds=seconds) for store in pair]
    async with running(*schedulers):
        await begun.wait()
        (first,) = (await home.rows("SELECT until FROM jobs"))[0]

        async def is_prolonged() -> bool:
            return bool((await home.rows("SELECT until FROM jobs"))[0][0] > first + seconds)

        await until(is_prolonged)
        go_on.set()
        await until(lambda: _settled(pair[0], 1))
    assert len(did) == 1


async def test_work_whose_claim_is_lost_is_broken_off_and_settles_nothing(home: Home, store: Store, caplog):
    begun, broken_off = asyncio.Event(), asyncio.Event()

    async def tidy(row: JobRow) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            broken_off.set()
        return "never"

    await store.add_job(Job("w", "tidy", 1.0))
    async with running(scheduler(store, workers={"tidy": tidy}, seconds=0.3)):
        await begun.wait()
        await store.drop_job("owner", "w")
        await broken_off.wait()
    assert await store.jobs("owner") == []
    assert "the claim on job w is lost" in caplog.text


async def test_work_that_takes_long_holds_up_no_letter(home: Home, store: Store):
    begun = asyncio.Event()

    async def tidy(row: JobRow) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    await store.add_job(Job("w", "tidy", 1.0))
    async with running(scheduler(store, workers={"tidy": tidy})):
        await begun.wait()
        await store.add_job(speaking("j"))
        await until(lambda: _are(home, 1))


class Away:
    """A store that cannot be reached for so many looks."""

    def __init__(self, store: Store, looks: int) -> None:
        self._store = store
        self.left = looks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def is_due(self, *args: Any) -> bool:
        if self.left:
            self.left -= 1
            raise StoreError("the database is away")
        return await self._store.is_due(*args)


async def test_while_the_store_is_away_jobs_wait_and_that_is_told_once(home: Home, store: Store, caplog):
    await store.add_job(speaking("j"))
    away: Any = Away(store, 5)
    async with running(scheduler(away)):
        await until(lambda: _are(home, 1))
    assert (away.left, caplog.text.count("jobs wait until the store is back: the database is away")) == (0, 1)
