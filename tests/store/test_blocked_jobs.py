"""Who is blocked has nothing done: their jobs pass, whether they are theirs or with their rights in a group."""

import pytest

from everloop.core.mail import Address, Decision, Inbound, Letter, Notice, Said, Telling
from everloop.core.message import said
from everloop.core.people import Role
from everloop.ports import Store
from everloop.ports.directory import Person
from everloop.ports.jobs import Job

LONG_AGO = 1_000_000.0
ANN, GROUP = "web:ann", "chat:web/room"
AT = Address("web", "ann")


def job(id: str, owner: str, letter: Letter, schedule: str = "") -> Job:
    address = Address("web", f"{owner}-{id}".replace(":", "-").replace("/", "-"))
    return Job(id, "reminder", LONG_AGO, owner, schedule, Inbound(address, "", letter, owner))


JOBS = [
    job("said", ANN, Said(said("up"), ANN)),
    job("notice", ANN, Notice("up", "job:notice", ANN)),
    job("told", ANN, Telling("up", by=ANN)),
    job("again", ANN, Notice("up", "job:again", ANN), "every 86400"),
    job("in a group", GROUP, Notice("up", "job:group", ANN)),
]
OTHERS = [
    job("another's in that group", GROUP, Notice("up", "job:group", "web:ben")),
    job("owner's", "owner", Notice("up", "job:owner", "owner")),
]


async def states(store: Store) -> dict[str, tuple[str, str]]:
    rows = [row for owner in (ANN, GROUP, "owner") for row in await store.jobs(owner)]
    return {row.job.id: (row.state, row.result) for row in rows}


@pytest.mark.parametrize("blocked", [True, False])
async def test_a_blocked_persons_jobs_post_nothing_and_others_do(store: Store, blocked: bool):
    await store.introduce(Person(ANN, "Ann", Role.USER))
    await store.change_person(ANN, blocked=blocked)
    for each in (*JOBS, *OTHERS):
        assert await store.add_job(each)
    fired = len(await store.fire())
    why = "whoever it is for is blocked" if blocked else ""
    passed = {each.id: ("waiting" if each.schedule else "done", why) for each in JOBS}
    assert await states(store) == passed | {each.id: ("done", "") for each in OTHERS}
    assert fired == (len(OTHERS) if blocked else len(OTHERS) + len(JOBS))
    assert await store.fire() == []  # what has passed does not come again


async def test_who_is_blocked_no_more_is_reminded_at_the_next_time_alone(home, store: Store):
    await store.introduce(Person(ANN, "Ann", Role.USER))
    await store.change_person(ANN, blocked=True)
    await store.add_job(JOBS[3])
    await store.fire()
    await store.change_person(ANN, blocked=False)
    assert await store.fire() == []
    await home.write(f"UPDATE jobs SET due = {LONG_AGO}")
    assert len(await store.fire()) == 1


async def test_a_question_of_theirs_runs_out_all_the_same(store: Store):
    await store.introduce(Person(ANN, "Ann", Role.USER))
    receipt = await store.receive(Inbound(AT, "e1", Said(said("hi"), ANN), ANN))
    await store.change_person(ANN, blocked=True)
    expiry = Inbound(Address("timer", receipt.thread), "", Decision(receipt.thread, 1, 0, "expired"), ANN)
    await store.add_job(Job("timer", "timer", LONG_AGO, ANN, letter=expiry))
    assert await store.fire() == [receipt.thread]


async def test_who_is_blocked_is_less_than_a_guest(store: Store):
    roles = []
    for blocked in (False, True, False):
        await store.introduce(Person(ANN, "Ann", Role.ADMIN))
        await store.change_person(ANN, blocked=blocked)
        roles.append(await store.role(ANN))
    assert (roles, await store.role("web:nobody")) == ([Role.ADMIN, Role.BLOCKED, Role.ADMIN], Role.GUEST)
    assert min(set(Role) - {Role.BLOCKED}) > Role.BLOCKED
