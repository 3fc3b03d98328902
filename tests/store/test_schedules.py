"""Schedules: each time of one is one run and one letter, by its policies, whoever asks and whoever is killed."""

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

import everloop
from everloop.core.log import ModelCalled, ModelSaid, UserSaid
from everloop.core.mail import Address, Inbound, Notice, Said, Telling
from everloop.core.message import said
from everloop.core.people import Role
from everloop.errors import BadSchedule, MailRefused
from everloop.ports import Store
from everloop.ports.directory import Person
from everloop.ports.rows import Commit, Lease
from everloop.ports.schedules import FiredSchedule, Schedule, ScheduledWork
from everloop.store.schedule import event_of
from everloop.testing import failpoints

LONG_AGO = 1_000_000.0
CHAT = "test:chat"


def reminder(id: str = "s", **rest: Any) -> Schedule:
    given = {"owner": "owner", "name": "water", "does": "message", "text": "water the plants", "session": CHAT}
    return Schedule(id=id, **{**given, **rest})


def turn(**rest: Any) -> Schedule:
    return reminder(does="turn", text="summarise my inbox", **rest)


async def now_of(home: Any, store: Store) -> float:
    """By the store's clock."""
    await store.receive(Inbound(Address("test", "clock"), f"at {id(home)} {store.holder}", Said(said("x"), "owner")))
    return float((await home.rows("SELECT max(at) FROM inbox"))[0][0])


async def letters(store: Store) -> list[object]:
    row = await store.session(CHAT)
    return [mail.letter for mail in await store.mail(row.id)] if row else []


async def states(store: Store, id: str = "s") -> list[tuple[str, str]]:
    return [(run.state, run.result) for run in await store.schedule_runs(id)]


async def end_turn(store: Store) -> int:
    """As the driver does; the number of the letter."""
    row = await store.session(CHAT)
    assert row is not None
    (mail,) = await store.mail(row.id)
    entries = [UserSaid(said("x"), "owner", CHAT, mail.id), ModelCalled("m"), ModelSaid("done", model="m")]
    commit = Commit(entries, absorbed=[mail.id], ended=[(mail.id, row.head + 3)], release=True, state="resting")
    await store.commit(Lease(row.id, head=row.head), commit)
    return mail.id


# Keeping


async def test_a_schedule_is_kept_as_it_was_given_once_and_told_with_its_next_time(store: Store):
    kept = reminder(rule="every 60", when="every 1m", zone="Europe/Berlin", retries=2, until=5e9, max_runs=7)
    assert [await store.add_schedule(kept, 4e9, 10), await store.add_schedule(reminder(), 4e9, 10)] == [True, False]
    (row,) = await store.schedules("owner")
    assert (row.schedule, row.enabled, row.next, row.fires, row.over) == (kept, True, 4e9, 0, "")
    assert await store.schedules("ann") == []
    assert await store.schedule("s") == row
    assert await store.schedule("t") is None


async def test_nobody_has_more_schedules_than_they_may_and_those_that_are_over_do_not_count(store: Store):
    assert await store.add_schedule(reminder("a"), LONG_AGO, 2)
    assert await store.add_schedule(reminder("b"), 4e9, 2)
    with pytest.raises(MailRefused, match="there are 2 schedules of yours already, and more than 2 nobody may have"):
        await store.add_schedule(reminder("c"), 4e9, 2)
    assert await store.add_schedule(reminder("hers", owner="ann", session="test:ann"), 4e9, 2)
    await store.fire_schedules()
    assert await store.add_schedule(reminder("c"), 4e9, 2)


@pytest.mark.parametrize(("rule", "due"), [("now and then", 4e9), ("cron Nowhere 0 8 * * *", 4e9), ("", float("nan"))])
async def test_what_has_no_times_is_not_kept(store: Store, rule: str, due: float):
    with pytest.raises(BadSchedule):
        await store.add_schedule(reminder(rule=rule), due, 10)
    assert await store.schedules() == []


async def test_a_schedule_is_changed_stopped_and_dropped_by_its_owner_alone(store: Store):
    await store.add_schedule(reminder(rule="every 60"), LONG_AGO, 10)
    hers = reminder(owner="ann", rule="every 60")
    assert [await store.change_schedule(hers, 4e9, True), await store.drop_schedule("ann", "s")] == [False, False]
    assert await store.change_schedule(reminder(rule="every 60"), LONG_AGO, False)
    assert await store.fire_schedules() == []
    assert [(row.enabled, row.next) for row in await store.schedules()] == [(False, None)]
    assert await store.change_schedule(reminder(text="other words"), LONG_AGO, True)
    assert len(await store.fire_schedules()) == 1
    (letter,) = await letters(store)
    assert isinstance(letter, Telling)
    assert letter.text.startswith("other words")
    assert [await store.drop_schedule("owner", "s"), await store.drop_schedule("owner", "s")] == [True, False]
    assert (await store.schedules(), await store.schedule_runs("s")) == ([], [])


# Firing


async def test_a_due_reminder_is_told_once_whoever_asks_and_no_model_is_asked(home: Any, store: Store):
    other = await home.connect()
    due = await now_of(home, store)
    await store.add_schedule(reminder(), due, 10)
    assert await store.is_due([])
    fired = await asyncio.gather(*(each.fire_schedules() for each in (store, other) * 3))
    row = await store.session(CHAT)
    assert row is not None
    assert [each for some in fired for each in some] == [FiredSchedule("s", "water", "owner", "done", row.id)]
    assert await letters(store) == [Telling("water the plants", (), CHAT, "the schedule s", "owner")]
    assert (event_of("s", due),) in await home.rows("SELECT event FROM inbox")
    assert [(row.next, row.fires, row.over) for row in await store.schedules()] == [
        (None, 1, "it has run as often as it was to")
    ]
    assert await states(other) == [("done", "")]
    assert not await store.is_due([])


async def test_a_turn_is_begun_by_the_house_for_its_owner_with_nobody_there(store: Store):
    await store.add_schedule(turn(misfire="late", principal=""), LONG_AGO, 10)
    (fired,) = await store.fire_schedules()
    (letter,) = await letters(store)
    assert isinstance(letter, Notice)
    assert (letter.source, letter.by, letter.address, letter.unattended) == ("cron:s", "owner", CHAT, True)
    assert fired.state == "running"


async def test_what_was_missed_is_told_late_once_and_says_so(home: Any, store: Store):
    now = await now_of(home, store)
    await store.add_schedule(reminder(rule="every 3600", zone="Asia/Kolkata"), now - 10 * 86400, 10)
    assert len(await store.fire_schedules()) == 1
    assert await store.fire_schedules() == []
    (letter,) = await letters(store)
    assert isinstance(letter, Telling)
    told = r"water the plants\n\(due at \d{4}-\d\d-\d\d \d\d:\d\d, delivered \d\d:\d\d\)"
    assert re.fullmatch(told, letter.text)
    (row,) = await store.schedules()
    assert row.next is not None
    assert 0 < row.next - now <= 3600
    assert round((row.next - now) % 3600, 2) in (0.0, 3600.0)  # on the same beat


async def test_what_is_a_moment_late_is_not_called_late(home: Any, store: Store):
    await store.add_schedule(reminder(misfire="skip"), await now_of(home, store) - 30, 10)
    await store.fire_schedules()
    assert [letter.text for letter in await letters(store) if isinstance(letter, Telling)] == ["water the plants"]


async def test_by_its_policy_what_was_missed_is_left_out_or_asked_about(store: Store):
    await store.add_schedule(turn(rule="every 60", misfire="skip"), LONG_AGO, 10)
    (fired,) = await store.fire_schedules()
    assert (fired.state, fired.thread) == ("skipped", "")
    assert fired.result.startswith("it was missed, by ")
    assert await letters(store) == []
    await store.change_schedule(turn(rule="every 60", misfire="ask"), LONG_AGO + 60, True)
    (asked,) = await store.fire_schedules()
    (letter,) = await letters(store)
    assert asked.state == "asked"
    assert isinstance(letter, Telling)  # which no model reads
    assert letter.text == (
        "water: It was due at 1970-01-12 13:47, when nobody was there. Run it now with `/cron run s`, or leave it."
    )
    assert [row.fires for row in await store.schedules()] == [0]


@pytest.mark.parametrize(("overlap", "then"), [("skip", "skipped"), ("queue", "running")])
async def test_while_a_turn_is_not_over_the_next_is_left_out_or_waits(store: Store, overlap: Any, then: str):
    again = turn(rule="every 60", overlap=overlap)
    await store.add_schedule(again, LONG_AGO, 10)
    await store.fire_schedules()
    await store.change_schedule(again, LONG_AGO + 5, True)
    assert [each.state for each in await store.fire_schedules()] == [then]
    assert len(await letters(store)) == (1 if overlap == "skip" else 2)


async def test_a_turn_whose_end_nobody_has_told_counts_as_over(store: Store):
    """Who would have told it was killed: the letter is answered, and that is what counts."""
    await store.add_schedule(turn(rule="every 60"), LONG_AGO, 10)
    await store.fire_schedules()
    assert [state for state, _ in await states(store)] == ["running"]
    await end_turn(store)
    assert [state for state, _ in await states(store)] == ["done"]
    await store.change_schedule(turn(rule="every 60"), LONG_AGO + 5, True)
    assert [each.state for each in await store.fire_schedules()] == ["running"]


async def test_the_end_of_a_turn_is_kept_with_what_it_cost(store: Store):
    await store.add_schedule(turn(), LONG_AGO, 10)
    await store.fire_schedules()
    mail = await end_turn(store)
    await store.settle_turn(mail, failed=False, result="two letters", cost=0.25)
    (run,) = await store.schedule_runs("s")
    assert (run.state, run.result, run.cost) == ("done", "two letters", 0.25)


async def test_a_turn_that_fails_is_tried_again_as_often_as_its_schedule_says(home: Any, store: Store):
    await store.add_schedule(turn(retries=1), LONG_AGO, 10)
    await store.fire_schedules()
    await store.settle_turn(await end_turn(store), failed=True, result="no answer", cost=None, pause=0.0)
    assert [state for state, _ in await states(store)] == ["running"]
    assert len(await store.fire()) == 1
    (letter,) = await letters(store)
    assert isinstance(letter, Notice)
    await store.settle_turn(await end_turn(store), failed=True, result="no answer", cost=None, pause=0.0)
    assert await states(store) == [("failed", "no answer")]
    assert await store.fire() == []


@pytest.mark.parametrize("then", ["nothing", "removed", "erased", "a guest"])
async def test_a_turn_is_tried_again_only_while_its_schedule_and_the_right_to_it_last(
    home: Any, store: Store, then: str
):
    await store.introduce(Person("ann", "Ann", Role.USER))
    await store.add_schedule(turn(owner="ann", retries=3), LONG_AGO, 10)
    await store.fire_schedules()
    if then == "a guest":
        await store.change_person("ann", role=Role.GUEST)
    await store.settle_turn(await end_turn(store), failed=True, result="no answer", cost=None, pause=0.0)
    if then == "removed":
        await store.drop_schedule("ann", "s")
    if then == "erased":  # and what its letter says lies in a group's job
        await home.rows("DELETE FROM schedule_runs WHERE owner = 'ann' RETURNING event")
    assert len(await store.fire("")) == (then == "nothing")
    assert [row.job.id for row in await store.jobs("ann") if row.state == "waiting"] == []


async def test_runs_that_are_to_be_so_many_and_times_that_are_over_end_it(home: Any, store: Store):
    now = await now_of(home, store)
    await store.add_schedule(reminder("many", rule="every 1", max_runs=1), now, 10)
    await store.add_schedule(reminder("long", rule="every 3600", until=now + 60), now, 10)
    await store.add_schedule(reminder("past", rule="every 3600", until=now - 60), now, 10)
    fired = await store.fire_schedules()
    assert sorted(each.schedule for each in fired) == ["long", "many"]
    assert {row.schedule.id: (row.next, row.over) for row in await store.schedules()} == {
        "many": (None, "it has run as often as it was to"),
        "long": (None, "its time is over"),
        "past": (None, "its time is over"),
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"blocked": True}, "whoever it is for is blocked"),
        ({"role": Role.GUEST}, "schedules are not for guests, which they are now"),
        ({"role": Role.ADMIN}, ""),
    ],
)
async def test_rights_are_those_of_the_moment(store: Store, change: dict[str, Any], why: str):
    await store.introduce(Person("web:ann", "Ann", Role.USER))
    await store.add_schedule(turn(owner="web:ann", rule="every 60"), LONG_AGO, 10)
    await store.change_person("web:ann", **change)
    (fired,) = await store.fire_schedules()
    assert (fired.state, fired.result) == (("barred", why) if why else ("running", ""))
    assert len(await letters(store)) == (0 if why else 1)


async def test_only_the_schedules_of_whom_a_process_acts_for_are_fired_by_it(store: Store):
    await store.add_schedule(reminder("hers", owner="ann", session="test:ann"), LONG_AGO, 10)
    assert await store.fire_schedules("owner") == []
    assert len(await store.fire_schedules("ann")) == 1


async def test_a_schedule_whose_conversation_is_anothers_ends_and_says_so(store: Store):
    await store.receive(Inbound(Address("test", "chat"), "e", Said(said("mine"), "ann"), "ann"))
    await store.add_schedule(reminder(rule="every 60"), LONG_AGO, 10)
    (fired,) = await store.fire_schedules()
    assert (fired.state, fired.result) == ("failed", "its conversation is gone, or is not theirs")
    assert [(row.next, row.over) for row in await store.schedules()] == [
        (None, "its conversation is gone, or is not theirs")
    ]


async def test_in_a_group_it_is_the_persons_turn_in_the_chats_conversation(store: Store):
    group = "chat:test/chat"
    await store.receive(Inbound(Address("test", "chat"), "e", Said(said("hi"), "web:ann", principal=group), group))
    await store.add_schedule(turn(owner="web:ann", principal=group), LONG_AGO, 10)
    await store.fire_schedules()
    letter = (await letters(store))[-1]
    assert isinstance(letter, Notice)
    assert (letter.by, letter.principal) == ("web:ann", group)


async def test_it_can_be_run_at_once_beside_its_times_once_for_a_key(store: Store):
    await store.add_schedule(reminder(rule="every 60"), 4e9, 10)
    first = await store.run_schedule("s", "k")
    assert first is not None
    assert [await store.run_schedule("s", "k"), await store.run_schedule("none", "k")] == [None, None]
    assert [letter.text for letter in await letters(store) if isinstance(letter, Telling)] == ["water the plants"]
    assert [(row.next, row.fires) for row in await store.schedules()] == [(4e9, 0)]


async def test_a_schedule_whose_time_zone_is_gone_ends_and_holds_up_no_other(home: Any, store: Store):
    await store.add_schedule(reminder("a", rule="cron Europe/Berlin 0 8 * * *"), LONG_AGO, 10)
    await store.add_schedule(reminder("b", rule="every 60"), LONG_AGO + 1, 10)
    await home.write("UPDATE jobs SET schedule = 'cron Atlantis/Capital 0 8 * * *' WHERE id = 'schedule:a'")
    assert [each.schedule for each in await store.fire_schedules()] == ["b"]
    assert {row.schedule.id: row.over for row in await store.schedules()} == {
        "a": "there is no time zone 'Atlantis/Capital'; one is called as in Europe/Berlin, or UTC",
        "b": "",
    }


# Commands and polls


async def test_a_command_is_a_piece_of_work_whose_output_is_told_once(store: Store):
    await store.add_schedule(reminder(does="command", text="date"), LONG_AGO, 10)
    assert [(each.state, each.thread) for each in await store.fire_schedules()] == [("running", "")]
    (row,) = await store.claim_jobs({"command"}, 30.0)
    work = ScheduledWork("s", event_of("s", LONG_AGO), LONG_AGO, "owner")
    assert (msgspec.json.decode(row.job.payload, type=ScheduledWork), row.job.owner) == (work, "owner")
    thread = await store.finish_run(work, "done", "exit 0", "Monday")
    assert thread
    assert await store.finish_run(work, "failed", "again", "Tuesday") == ""
    assert await letters(store) == [Telling("Monday", (), CHAT, "the schedule s", "owner")]
    assert await states(store) == [("done", "exit 0")]


async def test_a_command_of_a_schedule_that_was_dropped_is_not_done(store: Store):
    await store.add_schedule(reminder(does="command", text="date"), LONG_AGO, 10)
    await store.fire_schedules()
    await store.drop_schedule("owner", "s")
    assert await store.claim_jobs({"command"}, 30.0) == []


async def test_a_poll_looks_until_its_condition_holds_then_does_what_it_does_once(store: Store):
    poll = reminder(rule="every 60", polls="https://example.org", condition="contains open")
    await store.add_schedule(poll, LONG_AGO, 10)
    assert await store.fire_schedules() == []
    (row,) = await store.claim_jobs({"poll"}, 30.0)
    assert row.job.payload == "s"
    assert await store.note_look("s", "closed", False) is None
    assert await store.settle_job(row, "closed")
    fired = await store.note_look("s", "open", True)
    assert fired is not None
    assert await store.note_look("s", "open", True) is None
    assert [letter.text for letter in await letters(store) if isinstance(letter, Telling)] == [
        "water the plants\n(open)"
    ]
    assert [(row.fires, row.next, row.over) for row in await store.schedules()] == [(2, None, "its condition held")]


# Leaving


async def test_a_schedule_goes_with_its_conversation(store: Store):
    await store.receive(Inbound(Address("test", "chat"), "e", Said(said("hi"), "owner")))
    row = await store.session(CHAT)
    assert row is not None
    await store.add_schedule(reminder(rule="every 60"), 4e9, 10)
    await store.add_schedule(reminder("other", session="test:other"), 4e9, 10)
    await store.delete("owner", [row.id])
    assert [each.schedule.id for each in await store.schedules()] == ["other"]
    assert [each.job.id for each in await store.jobs("owner") if each.job.kind == "schedule"] == ["schedule:other"]


async def test_what_is_over_is_forgotten_after_a_month(home: Any, store: Store):
    await store.add_schedule(reminder(), LONG_AGO, 10)
    await store.add_schedule(reminder("on", rule="every 60"), 4e9, 10)
    await store.fire_schedules()
    assert "schedules" not in await store.forget_expired()
    await home.write("UPDATE schedules SET over_at = over_at - 31 * 86400 WHERE over_at > 0")
    await home.write("UPDATE schedule_runs SET begun = begun - 31 * 86400")
    gone = await store.forget_expired()
    assert (gone["schedules"], gone["runs of schedules"]) == (1, 1)
    assert [row.schedule.id for row in await store.schedules()] == ["on"]


# Breaking off

POINTS = ["schedule.claimed", "schedule.posted"]


def test_every_failpoint_of_a_fire_is_tried():
    names = failpoints.names_in_source(Path(everloop.__file__).parent)
    assert sorted(name for name in names if name.startswith("schedule.")) == POINTS


@pytest.mark.parametrize("place", POINTS)
@pytest.mark.parametrize("does", ["turn", "message", "command"])
async def test_what_breaks_in_the_middle_leaves_all_as_it_was(
    home: Any, store: Store, place: str, does: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("EVERLOOP_TEST", "1")
    await store.add_schedule(structs.replace(reminder(rule="every 60"), does=does), LONG_AGO, 10)
    before = await store.schedules()
    for nth in (1, 2):  # SQLite tries each transaction that failed among others once more, alone
        failpoints.arm(place, nth, "raise")
    try:
        with pytest.raises(failpoints.Reached):
            await store.fire_schedules()
    finally:
        failpoints.disarm()
    assert (await store.schedules(), await letters(store), await states(store)) == (before, [], [])
    assert await store.claim_jobs({"command"}, 30.0) == []
    assert len(await store.fire_schedules()) == 1
    assert await store.fire_schedules() == []
