"""What is to happen later: each time of a job is one letter, whoever asks, and whoever is killed."""

import asyncio
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples

from everloop.core.log import UserSaid
from everloop.core.mail import Address, Decision, Inbound, Said
from everloop.core.message import said
from everloop.errors import BadSchedule, Fenced
from everloop.ports import Store
from everloop.ports.jobs import Job, JobRow
from everloop.ports.rows import Commit, Lease, Posting
from everloop.store import schema
from everloop.store.schedule import event_of, next_due
from everloop.testing import failpoints

CHAT, PARENT = Address("test", "chat"), Address("test", "parent")
LONG_AGO = 1_000_000.0


class Home(Protocol):
    async def connect(self, lease_seconds: float = 30.0, migrations: schema.Migrations = ...) -> Store: ...
    async def lose(self, store: Store) -> None: ...
    async def write(self, statement: str) -> None: ...
    async def rows(self, query: str) -> list[tuple[Any, ...]]: ...


@pytest.fixture
async def pair(home: Home) -> list[Store]:
    return [await home.connect(), await home.connect()]


def letter(text: str = "wake up", owner: str = "owner", address: Address = CHAT) -> Inbound:
    return Inbound(address, "any", Said(said(text), owner, str(address)), owner)


def speaking(id: str = "j", due: float = LONG_AGO, schedule: str = "", owner: str = "owner", **rest: Any) -> Job:
    return Job(id, "reminder", due, owner, schedule, letter(owner=owner, **rest))


def working(id: str = "w", due: float = LONG_AGO, schedule: str = "", **rest: Any) -> Job:
    return Job(id, "tidy", due, schedule=schedule, payload="all of it", **rest)


async def claim(store: Store, seconds: float = 30.0, **rest: Any) -> list[JobRow]:
    return await store.claim_jobs({"tidy"}, seconds, **rest)


async def events(home: Home) -> list[str]:
    return [event for (event,) in await home.rows("SELECT event FROM inbox ORDER BY id")]


def standing(rows: list[JobRow]) -> list[tuple[str, str, float, int, str]]:
    return [(row.job.id, row.state, row.job.due, row.attempts, row.result) for row in rows]


# Schedules


@pytest.mark.parametrize(
    ("due", "now", "then"), [(100, 100, 160), (100, 159.9, 160), (100, 160, 220), (100, 1e6 + 100, 1e6 + 120)]
)
def test_the_next_time_lies_on_the_same_beat_after_now(due, now, then):
    assert next_due("every 60", due, now) == then


def test_a_job_without_a_schedule_has_no_next_time():
    assert next_due("", 100, 200) is None


@pytest.mark.parametrize("schedule", ["daily", "every", "every x", "every 0", "every -1", "every nan", "every inf"])
async def test_a_schedule_that_is_none_is_refused_with_a_sentence(store: Store, schedule: str):
    with pytest.raises(BadSchedule, match="a schedule is empty"):
        await store.add_job(speaking(schedule=schedule))
    assert await store.jobs("owner") == []


@pytest.mark.parametrize("due", [float("nan"), float("inf"), float("-inf")])
async def test_a_job_that_is_due_at_no_time_is_refused(store: Store, due: float):
    with pytest.raises(BadSchedule, match="a job is due at a time"):
        await store.add_job(speaking(due=due))


@given(st.floats(1, 1e7), st.floats(0, 4e9), st.floats(0, 4e9))
def test_a_next_time_is_never_past_and_never_far(every: float, due: float, later: float):
    then = next_due(f"every {every!r}", due, due + later)
    assert then is not None
    assert due + later < then <= due + later + 2 * every


# KeepFile


async def test_a_job_is_kept_as_it_was_given_and_once(store: Store):
    jobs = [speaking(), working(due=LONG_AGO + 1)]
    assert [await store.add_job(job) for job in jobs] == [True, True]
    assert not await store.add_job(speaking(due=5.0, text="something else"))
    assert [row.job for row in await store.jobs("owner")] == jobs
    assert await store.jobs("ann") == []


async def test_a_job_is_dropped_by_its_owner_alone(store: Store):
    await store.add_job(speaking())
    assert [await store.drop_job(who, "j") for who in ("ann", "owner", "owner")] == [False, True, False]
    assert (await store.fire(), await store.jobs("owner")) == ([], [])


async def test_a_job_that_is_over_is_not_taken_in_again_for_a_month(home: Home, store: Store):
    (now,) = (await home.rows("SELECT created FROM users"))[0]
    await store.add_job(speaking(due=now))
    assert len(await store.fire()) == 1
    assert not await store.add_job(speaking(due=now))
    await home.write("UPDATE jobs SET until = until - 31 * 86400")
    await store.add_job(speaking("another", now))
    await store.fire()
    assert [row.job.id for row in await store.jobs("owner")] == ["another"]


async def test_the_timers_of_an_older_everloop_are_jobs_now(home: Home):
    await home.connect(migrations=schema.MIGRATIONS[:7])
    await home.write("INSERT INTO threads(id, owner, session, created) VALUES('t', 'ann', 'test:chat', 1)")
    body = (
        '{"address":{"channel":"timer","chat":"t","thread":""},"event":"approval:t:2:0",'
        '"letter":{"type":"decision","thread":"t","answer":2,"place":0,"verdict":"expired"},"owner":"owner"}'
    )
    await home.write(f"INSERT INTO timers(key, thread, owner, due, body) VALUES('k', 't', 'ann', 5, '{body}')")
    store = await home.connect()
    assert await store.fire() == ["t"]
    assert [mail.letter for mail in await store.mail("t")] == [Decision("t", 2, 0, "expired")]
    assert await home.rows("SELECT count(*) FROM timers") == [(0,)]
    assert await home.rows("SELECT owner FROM inbox") == [("ann",)]


# Speaking


async def test_a_due_job_posts_its_letter_once_and_is_done(home: Home, pair: list[Store]):
    await pair[0].add_job(speaking())
    fired = await asyncio.gather(*(store.fire() for store in pair * 3))
    threads = [thread for each in fired for thread in each]
    row = await pair[0].session(str(CHAT))
    assert row is not None
    assert threads == [row.id]
    assert [mail.letter for mail in await pair[1].mail(row.id)] == [letter().letter]
    assert await events(home) == [f"job:j:{LONG_AGO:.15g}"]
    assert standing(await pair[0].jobs("owner")) == [("j", "done", LONG_AGO, 0, "")]


async def test_a_job_waits_for_its_time(store: Store):
    await store.add_job(speaking(due=4e9))
    assert await store.fire() == []


async def test_a_job_of_many_times_goes_on_after_now(home: Home, store: Store):
    await store.add_job(speaking(schedule="every 86400"))
    assert len(await store.fire()) == 1
    assert await store.fire() == []
    (row,) = await store.jobs("owner")
    (now,) = (await home.rows("SELECT at FROM inbox"))[0]
    assert 0 < row.job.due - now <= 86400
    assert (row.job.due - LONG_AGO) % 86400 == 0


async def test_only_the_jobs_of_the_owner_who_was_named_are_fired(home: Home, store: Store):
    await store.add_job(speaking("mine"))
    await store.add_job(speaking("hers", owner="ann", address=Address("test", "ann")))
    assert len(await store.fire("ann")) == 1
    assert await events(home) == [event_of("hers", LONG_AGO)]


async def test_a_job_for_a_session_that_is_anothers_fails_and_says_so(home: Home, store: Store):
    await store.receive(letter(owner="ann"))
    await store.add_job(speaking())
    assert await store.fire() == []
    assert [(row.state, row.result) for row in await store.jobs("owner")] == [
        ("failed", "its conversation is gone, or is not theirs")
    ]
    assert await events(home) == ["any"]


@pytest.mark.parametrize("place", ["job.claimed", "job.posted"])
async def test_what_breaks_in_the_middle_leaves_the_job_as_it_was(home: Home, store: Store, place: str, monkeypatch):
    monkeypatch.setenv("EVERLOOP_TEST", "1")
    await store.add_job(speaking(schedule="every 60"))
    before = await store.jobs("owner")
    for nth in (1, 2):  # SQLite tries each transaction that failed among others once more, alone
        failpoints.arm(place, nth, "raise")
    try:
        with pytest.raises(failpoints.Reached):
            await store.fire()
    finally:
        failpoints.disarm()
    assert (await store.jobs("owner"), await events(home)) == (before, [])
    assert len(await store.fire()) == 1


# Working


async def test_work_is_claimed_by_one_and_is_done_with_its_result(pair: list[Store]):
    await pair[0].add_job(working())
    claimed = await asyncio.gather(*(claim(store) for store in pair * 3))
    rows = [row for each in claimed for row in each]
    assert [(row.job, row.state, row.attempts) for row in rows] == [(working(), "working", 1)]
    holder = next(store for store, each in zip(pair * 3, claimed, strict=True) if each)
    assert await holder.settle_job(rows[0], "tidy now")
    assert standing(await pair[0].jobs("owner")) == [("w", "done", LONG_AGO, 0, "tidy now")]
    assert [await claim(store) for store in pair] == [[], []]


async def test_work_of_a_kind_that_nobody_here_knows_is_left(store: Store):
    await store.add_job(working())
    assert await store.claim_jobs({"other"}, 30.0) == []


async def test_a_claim_holds_until_its_time_and_then_is_anothers(home: Home, pair: list[Store]):
    await pair[0].add_job(working())
    (first,) = await claim(pair[0])
    assert (await claim(pair[1]), await pair[0].prolong_job(first, 30.0)) == ([], True)
    await home.write("UPDATE jobs SET until = 1")
    (second,) = await claim(pair[1])
    assert not await pair[0].prolong_job(first, 30.0)
    assert not await pair[0].settle_job(first, "too late")
    assert await pair[1].settle_job(second, "in time")
    assert standing(await pair[0].jobs("owner")) == [("w", "done", LONG_AGO, 0, "in time")]


async def test_a_claim_that_has_run_out_is_not_prolonged_but_lets_its_result_in(home: Home, store: Store):
    await store.add_job(working())
    (row,) = await claim(store)
    await home.write("UPDATE jobs SET until = 1")
    assert not await store.prolong_job(row, 30.0)
    assert await store.settle_job(row, "done all the same")


async def test_work_that_failed_is_tried_again_later_and_keeps_its_beat(home: Home, store: Store):
    await store.add_job(working(schedule="every 60"))
    (row,) = await claim(store)
    assert await store.settle_job(row, "the disk is full", again_in=3600)
    assert standing(await store.jobs("owner")) == [("w", "waiting", LONG_AGO, 1, "the disk is full")]
    assert await claim(store) == []
    await home.write("UPDATE jobs SET until = until - 3600")
    (row,) = await claim(store)
    assert (row.attempts, await store.settle_job(row, "tidy")) == (2, True)
    (kept,) = await store.jobs("owner")
    assert ((kept.job.due - LONG_AGO) % 60, kept.state, kept.attempts) == (0, "waiting", 0)


async def test_work_that_was_dropped_counts_for_nothing_even_when_it_comes_again(store: Store):
    await store.add_job(working())
    (row,) = await claim(store)
    await store.drop_job("owner", "w")
    assert not await store.settle_job(row, "nobody wants it")
    await asyncio.sleep(0.002)  # of two jobs with one name within a millisecond nobody knows
    await store.add_job(working())
    (again,) = await claim(store)
    assert not await store.settle_job(row, "of the one before")
    assert await store.settle_job(again, "of this one")


async def test_the_claims_and_leases_of_a_process_that_was_killed_pass_on(home: Home, pair: list[Store]):
    await pair[0].add_job(working())
    assert await pair[0].hold("clock", 30.0)
    (lost,) = await claim(pair[0])
    await home.lose(pair[0])
    await home.write("UPDATE jobs SET until = 0" if "Postgres" in type(home).__name__ else "SELECT 1")
    await home.write("UPDATE leases SET until = 0" if "Postgres" in type(home).__name__ else "SELECT 1")
    (row,) = await claim(pair[1])
    assert row.epoch > lost.epoch
    assert await pair[1].hold("clock", 30.0)


# Leases


async def test_a_lease_is_held_by_one_until_it_is_given_back(home: Home, pair: list[Store]):
    held = await asyncio.gather(*(store.hold("clock", 30.0) for store in pair))
    assert sorted(held) == [False, True]
    first, second = pair if held[0] else reversed(pair)
    assert (await first.hold("clock", 30.0), await second.hold("clock", 30.0)) == (True, False)
    await second.let_go("clock")
    assert not await second.hold("clock", 30.0)
    await first.let_go("clock")
    assert (await second.hold("clock", 30.0), await first.hold("clock", 30.0)) == (True, False)
    await home.write("UPDATE leases SET until = 1")
    assert await first.hold("clock", 30.0)


async def test_whoever_stands_under_anothers_lease_does_not_get_their_own(pair: list[Store]):
    assert await pair[0].hold("clock", 30.0)
    assert not await pair[1].hold("clock:ann", 30.0, under="clock")
    await pair[0].let_go("clock")
    assert await pair[1].hold("clock:ann", 30.0, under="clock")
    assert await pair[0].hold("clock", 30.0)


async def test_a_lease_that_lasts_is_not_written_again(home: Home, store: Store):
    assert await store.hold("clock", 30.0)
    before = await home.rows("SELECT * FROM leases")
    assert await store.hold("clock", 30.0)
    assert await home.rows("SELECT * FROM leases") == before


# All of it, in any order

Deed = tuple[str, int, int]
DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["add", "fire", "claim", "settle", "fail", "pass", "drop", "lapse"]), *[st.integers(0, 1)] * 2
    ),
    min_size=4,
    max_size=25,
)


@given(DEEDS)
@settings(examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
async def test_however_they_interleave_each_time_is_one_letter_and_each_claim_has_one_holder(
    home: Home, pair: list[Store], deeds: list[Deed]
):
    await home.write("DELETE FROM jobs")
    await home.write("DELETE FROM inbox")
    expected: set[str] = set()
    claims: dict[str, tuple[Store, JobRow]] = {}
    added = 0
    for deed, which, n in deeds:
        store, other = pair[which], pair[1 - which]
        match deed:
            case "add":
                await store.add_job(speaking(f"j{n}", LONG_AGO, "every 60" if n else ""))
                await store.add_job(working(f"w{added}"))
                added += 1
            case "fire":
                due = await home.rows(
                    "SELECT id, due FROM jobs WHERE session <> '' AND state = 'waiting' AND due < 1.5e9"
                )
                expected |= {event_of(id, at) for id, at in due}
                await asyncio.gather(store.fire(), other.fire(), store.fire())
            case "claim":
                for each, rows in zip(pair, await asyncio.gather(*map(claim, pair)), strict=True):
                    for row in rows:
                        assert row.job.id not in claims
                        claims[row.job.id] = (each, row)
            case "settle" | "fail" if claims:
                _, (each, row) = claims.popitem()
                stranger = pair[0] if each is pair[1] else pair[1]
                assert not await stranger.settle_job(row, "not mine")
                assert await each.settle_job(row, "so it is", 0.0 if deed == "fail" else None)
            case "pass":
                await home.write("UPDATE jobs SET due = due - 864000000 WHERE state = 'waiting'")
            case "drop":
                await store.drop_job("owner", f"j{n}")
            case "lapse" if claims:
                await home.write("UPDATE jobs SET until = 0 WHERE state = 'working'")
                claims.clear()
            case _:
                pass
    told = await events(home)
    assert (len(told), set(told)) == (len(set(told)), expected)


# Letters to other threads


async def begun(store: Store, event: str = "e1", address: Address = PARENT) -> Lease:
    receipt = await store.receive(Inbound(address, event, Said(said("hi"), "ann", str(address))))
    lease = Lease(receipt.thread)
    committed = await store.commit(lease, Commit([UserSaid(said("hi"), "ann")], absorbed=[receipt.id]))
    lease.epoch, lease.head = committed.epoch, committed.head
    return lease


async def test_a_commit_posts_letters_to_other_threads_once_per_event(store: Store):
    lease, other = await begun(store), await begun(store, "e2", Address("test", "other"))
    posts = [Posting(letter("by session")), Posting(letter("by thread", address=Address("child", "x")), other.thread)]
    for _ in range(2):
        committed = await store.commit(lease, Commit([UserSaid(said("on"), "ann")], posts=posts))
        lease.head = committed.head
    made = await store.session(str(CHAT))
    assert made is not None
    assert [mail.letter for mail in await store.mail(made.id)] == [posts[0].inbound.letter]
    assert [mail.letter for mail in await store.mail(other.thread)] == [posts[1].inbound.letter]
    assert await store.session("child:x") is None


async def test_a_commit_that_is_fenced_posts_nothing(home: Home, store: Store):
    lease = await begun(store)
    with pytest.raises(Fenced):
        await store.commit(Lease(lease.thread, lease.epoch + 1, lease.head), Commit(posts=[Posting(letter())]))
    assert await events(home) == ["e1"]


async def test_a_letter_to_nobody_or_to_another_owner_is_not_posted_and_the_commit_stands(home: Home, store: Store):
    lease = await begun(store)
    hers = await store.receive(Inbound(Address("test", "hers"), "h", Said(said("hi"), "ann"), "ann"))
    posts = [
        Posting(letter(address=Address("test", "hers"))),
        Posting(Inbound(CHAT, "a", letter().letter), hers.thread),
        Posting(Inbound(CHAT, "b", letter().letter), "gone"),
        Posting(Inbound(CHAT, "c", Decision("gone", 1, 0, "denied"))),
    ]
    committed = await store.commit(lease, Commit([UserSaid(said("on"), "ann")], posts=posts))
    assert committed.head == lease.head + 1
    assert sorted(await events(home)) == ["e1", "h"]


async def test_many_who_post_to_one_another_at_once_lose_nothing(home: Home, pair: list[Store]):
    leases = [(pair[n % 2], await begun(pair[n % 2], f"e{n}", Address("test", f"p{n}"))) for n in range(12)]
    await asyncio.gather(
        *(
            store.commit(
                lease,
                Commit(
                    posts=[
                        Posting(Inbound(Address("test", f"q{to}"), f"{lease.thread}-{n}", letter().letter), to.thread)
                        for n, (_, to) in enumerate(leases)
                        if to is not lease
                    ]
                ),
            )
            for store, lease in leases
        )
    )
    assert await home.rows("SELECT count(*), count(DISTINCT event) FROM inbox WHERE event LIKE '%-%'") == [(132, 132)]


async def test_a_child_knows_the_call_that_it_works_for_and_a_branch_has_its_parent_apart(store: Store):
    lease = await begun(store)
    child = Address("child", "1")
    post = Posting(Inbound(child, "do", letter().letter), spawned_by=f"{lease.thread}:4:0")
    for _ in range(2):  # the second time as after a commit whose answer was lost
        lease.head = (await store.commit(lease, Commit([UserSaid(said("on"), "ann")], posts=[post]))).head
    made = await store.session(str(child))
    assert made is not None
    assert made.spawned_by == f"{lease.thread}:4:0"
    assert (await store.open(lease.thread)).row.spawned_by == ""
    assert [mail.letter for mail in await store.mail(made.id)] == [post.inbound.letter]
    assert {found.parent for found in await store.conversations("owner")} == {""}


async def test_a_conversation_in_which_something_was_said_becomes_nobodys_child(store: Store):
    lease, other = await begun(store), await begun(store, "e2", Address("test", "other"))
    waits = await store.receive(Inbound(Address("test", "waits"), "e3", letter().letter))
    hers = await store.receive(Inbound(Address("test", "hers"), "h", Said(said("hi"), "ann"), "ann"))
    by = f"{lease.thread}:4:0"
    posts = [
        Posting(Inbound(Address("test", "other"), "a", letter().letter), spawned_by=by),
        Posting(Inbound(Address("test", "other"), "b", letter().letter), other.thread, by),
        Posting(Inbound(Address("test", "waits"), "c", letter().letter), spawned_by=by),
        Posting(Inbound(Address("test", "hers"), "d", letter().letter), spawned_by=by),
    ]
    await store.commit(lease, Commit([UserSaid(said("on"), "ann")], posts=posts))
    threads = (other.thread, waits.thread, hers.thread)
    assert [(await store.open(thread)).row.spawned_by for thread in threads] == ["", "", ""]


async def test_a_child_that_a_fenced_commit_wanted_is_the_next_ones(store: Store):
    lease = await begun(store)
    post = Posting(Inbound(Address("child", "1"), "do", letter().letter), spawned_by=f"{lease.thread}:4:0")
    with pytest.raises(Fenced):
        await store.commit(Lease(lease.thread, lease.epoch + 1, lease.head), Commit(posts=[post]))
    await store.commit(lease, Commit(posts=[post]))
    made = await store.session("child:1")
    assert made is not None
    assert made.spawned_by == f"{lease.thread}:4:0"
