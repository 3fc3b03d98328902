"""Heartbeats: what was seen is kept with the letter that it leads to, once, whoever looks and whoever is killed."""

import asyncio
import json
import os
import signal
import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

import everloop
from everloop.core.mail import Address, Inbound, Notice
from everloop.core.people import Role
from everloop.ports import Store
from everloop.ports.backup import RestoredCopy
from everloop.ports.directory import Person
from everloop.ports.heartbeat import AT_ONCE, HEARTBEAT, HeartbeatRow, HeartbeatState
from everloop.testing import failpoints
from everloop.testing.channel import delivered_of, sends_in
from everloop.testing.clock import SimulatedClock

CHAT = "test:chat"
WORKER = Path(__file__).with_name("heart_worker.py")
BEGAN = 1_800_000_000.0
SEEN = HeartbeatState(looked=5.0, decided="asked", why="new", asked=5.0, lines=("a",), event="job:1", channel="test")
NOT_SEEN = HeartbeatState(looked=5.0, decided="nowhere", why="nobody is there")


def letter(owner: str = "owner", event: str = "job:1") -> Inbound:
    notice = Notice("look", f"heartbeat:{owner}", owner, CHAT, unattended=True)
    return Inbound(Address.parse(CHAT), event, notice, owner)


async def letters(store: Store) -> int:
    row = await store.session(CHAT)
    return len(await store.mail(row.id)) if row else 0


async def test_a_heartbeat_is_planned_once_due_at_once_and_goes_on_by_another_rule(store: Store):
    assert await store.heartbeat("owner") == HeartbeatRow("owner")
    for _ in range(2):
        await store.plan_heartbeat("owner", 1800)
    (row,) = await store.claim_jobs({HEARTBEAT}, 30.0)
    assert (row.job.id, row.job.owner, row.job.schedule, row.job.payload) == (
        "heartbeat:owner",
        "owner",
        "every 1800",
        "",
    )
    await store.settle_job(row, "looked")
    first = (await store.heartbeat("owner")).next
    await store.plan_heartbeat("owner", 60)
    then = (await store.heartbeat("owner")).next
    assert first is not None
    assert then is not None
    assert 1700 < first - then < 1800
    assert await store.beating() == ["owner"]
    await store.drop_heartbeat("owner")
    assert (await store.beating(), (await store.heartbeat("owner")).next) == ([], None)


async def test_what_was_seen_is_kept_with_its_letter_and_by_the_first_alone(home: Any, store: Store):
    await store.plan_heartbeat("owner", 1800)
    other = await home.connect()
    kept = await asyncio.gather(*(each.keep_beat("owner", 1, SEEN, letter(), NOT_SEEN) for each in (store, other) * 3))
    session = await store.session(CHAT)
    assert session is not None
    assert sorted(kept, key=str) == sorted([session.id, *[None] * 5], key=str)
    row = await other.heartbeat("owner")
    assert (row.state, row.version, row.busy, await letters(store)) == (SEEN, 2, True, 1)


async def test_what_cannot_be_posted_is_kept_as_not_asked_about(store: Store):
    await store.receive(letter("ann", "e1"))  # it is hers
    await store.plan_heartbeat("owner", 1800)
    assert await store.keep_beat("owner", 1, SEEN, letter(), NOT_SEEN) == ""
    assert (await store.heartbeat("owner")).state == NOT_SEEN
    assert await store.keep_beat("owner", 2, NOT_SEEN, None, NOT_SEEN) == ""


async def test_one_that_somebody_asks_for_is_due_at_once_and_says_so_until_it_is_looked_at(store: Store):
    assert not await store.hasten_heartbeat("owner")
    await store.plan_heartbeat("owner", 1800)
    (row,) = await store.claim_jobs({HEARTBEAT}, 30.0)
    await store.settle_job(row, "quiet hours", 3600.0)
    assert await store.claim_jobs({HEARTBEAT}, 30.0) == []
    assert await store.hasten_heartbeat("owner")
    (row,) = await store.claim_jobs({HEARTBEAT}, 30.0)
    assert row.job.payload == AT_ONCE
    assert await store.hasten_heartbeat("owner")
    assert await store.prolong_job(row, 30.0)  # who is at it stays at it
    await store.keep_beat("owner", 1, SEEN, None, SEEN)
    assert [each.job.payload for each in await store.jobs("owner")] == [""]


async def test_in_a_restored_copy_a_first_one_is_neither_due_nor_hastened_until_that_is_adopted(store: Store):
    await store.hold_back(RestoredCopy("a.tar.gz", 1.0, 2.0), [])
    await store.plan_heartbeat("owner", 1800)
    assert (await store.hasten_heartbeat("owner"), await store.claim_jobs({HEARTBEAT}, 30.0)) == (False, [])
    await store.adopt()
    assert await store.claim_jobs({HEARTBEAT}, 30.0) == []  # it goes on at its next time
    assert await store.hasten_heartbeat("owner")
    assert len(await store.claim_jobs({HEARTBEAT}, 30.0)) == 1


async def test_who_is_blocked_or_a_guest_is_barred(store: Store):
    await store.introduce(Person("ann", "Ann", Role.GUEST))
    await store.introduce(Person("bob", "Bob", Role.USER))
    await store.change_person("bob", blocked=True)
    assert [(await store.heartbeat(each)).barred for each in ("ann", "bob", "owner")] == [
        "schedules are not for guests, which they are now",
        "whoever it is for is blocked",
        "",
    ]


async def test_how_its_turn_has_ended_is_kept_of_the_last_letter_alone(store: Store):
    await store.plan_heartbeat("owner", 1800)
    await store.keep_beat("owner", 1, SEEN, letter(), NOT_SEEN)
    session = await store.session(CHAT)
    assert session is not None
    (mail,) = await store.mail(session.id)
    other = await store.receive(letter(event="job:2"))
    await store.settle_beat(mail.id, "The build is red.", 0.5)
    await store.settle_beat(other.id, "of another", 9.0)
    row = await store.heartbeat("owner")
    assert (row.result, row.cost) == ("The build is red.", 0.5)


# Breaking off

POINTS = ["heartbeat.kept", "heartbeat.looked", "heartbeat.posted"]
BEFORE = {"asked": ["heartbeat:owner"], "answers": ["hello", "The report is new."], "decided": "unchanged"}


def test_every_failpoint_of_a_beat_is_tried():
    names = failpoints.names_in_source(Path(everloop.__file__).parent)
    assert sorted(name for name in names if name.startswith("heartbeat.")) == POINTS


async def test_what_breaks_while_it_is_posted_leaves_all_as_it_was(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EVERLOOP_TEST", "1")
    await store.plan_heartbeat("owner", 1800)
    for nth in (1, 2):  # SQLite tries each transaction that failed among others once more, alone
        failpoints.arm("heartbeat.posted", nth, "raise")
    try:
        with pytest.raises(failpoints.Reached):
            await store.keep_beat("owner", 1, SEEN, letter(), NOT_SEEN)
    finally:
        failpoints.disarm()
    row = await store.heartbeat("owner")
    assert (row.state, row.version, await letters(store)) == (HeartbeatState(), 1, 0)


async def lived(folder: Path, url: str, clock: str = "moves", **environment: str) -> tuple[int, dict[str, Any]]:
    process = await create_subprocess_exec(
        sys.executable, str(WORKER), str(folder), url, clock, env={**os.environ, **environment}, stdout=PIPE
    )
    out, _ = await process.communicate()
    return process.returncode or 0, json.loads(out) if process.returncode == 0 else {}


def begin(folder: Path) -> Path:
    workspace = folder / "home" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "HEARTBEAT.md").write_text("- [ ] tell me of new reports\n")
    (folder / "clock").write_text(repr(BEGAN))
    return folder


@pytest.mark.timeout(300)
@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_in_the_middle_neither_loses_nor_doubles_what_is_asked(home: Any, tmp_path: Path, point: str):
    await live_twice(begin(tmp_path / "one"), getattr(home, "url", ""), f"{point}:1:kill")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("home", ["sqlite"], indirect=True)
@pytest.mark.parametrize("point", ["model.intended", "model.answered", "turn.ended"])
async def test_a_turn_of_it_that_is_killed_goes_on_and_is_told_once(home: Any, tmp_path: Path, point: str):
    await live_twice(begin(tmp_path / "one"), "", f"{point}:2:kill")


async def live_twice(folder: Path, url: str, point: str) -> None:
    status, _ = await lived(folder, url, EVERLOOP_TEST="1", EVERLOOP_FAILPOINT=point)
    assert status == -signal.SIGKILL
    assert await lived(folder, url) == (0, BEFORE)
    # The answer from before may have been on its way at the kill: then it is sent again, under its own key.
    sent = [each.text for each in delivered_of(sends_in(folder / "sent"))]
    assert ["The report is new." in text for text in sent if "(may be repeated)" not in text] == [False, True], sent


@pytest.mark.timeout(300)
async def test_two_processes_ask_once(home: Any, tmp_path: Path):
    folder, url = begin(tmp_path / "one"), getattr(home, "url", "")
    passing = asyncio.ensure_future(let_time_pass(folder))
    try:
        assert await asyncio.gather(*(lived(folder, url, "stands") for _ in range(2))) == [(0, BEFORE)] * 2
    finally:
        passing.cancel()


async def let_time_pass(folder: Path) -> None:
    """As long as anybody goes by it: nobody knows who is ready first. Faster once both answers have been sent."""
    clock, sent = SimulatedClock(folder / "clock"), folder / "sent"
    while True:
        clock.set(clock.now() + (60 if sent.exists() and len(sends_in(sent)) > 1 else 1))
        await asyncio.sleep(0.01)
