"""Schedules in an open house: made by the tool, by a command and by hand; what they do, cost and are not allowed."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import everloop
from everloop.app import open_desk
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.people import OWNER, Role
from everloop.core.tool import Risk
from everloop.errors import BadRequest, BadSchedule, MailRefused
from everloop.ports.directory import Person
from everloop.ports.events import ScheduleFired
from everloop.ports.schedules import Asker
from everloop.readings.cron_order import CronOrder, order_of
from everloop.runtime.schedule_times import seconds_in, when_of
from everloop.runtime.scheduled_work import condition_holds
from everloop.testing import Call, Fail, RecordingChannel, Say, ScriptedModel
from everloop.testing.clock import SimulatedClock
from everloop.testing.script import Shown
from everloop.tools.cron import cron_tool

from .test_groups import Room

BEGAN, HOUR, DAY = 1_800_000_000.0, 3600.0, 86400.0  # Friday 2027-01-15 08:00 UTC
CHAT = "fake:chat"
ME = Asker(OWNER, Role.OWNER, CHAT, by_hand=True)


class Simulated:
    """A house by a clock that stands still, with what its model was shown."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.clock = SimulatedClock(folder / "clock")
        self.clock.set(BEGAN)
        self.shown: list[Shown] = []
        self.channel = RecordingChannel("fake")
        self.answer: Callable[[Shown], Any] = lambda shown: Say("hello")
        self.settings: dict[str, Any] = {"schedules": {"timezone": "UTC"}}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[everloop.Agent]:
        given = {"channels": (self.channel,), "clock": self.clock, "provider": ScriptedModel(self._say)}
        async with open_desk(self._folder / "home", self.settings, **given) as agent:
            yield agent

    def _say(self, shown: Shown) -> Any:
        self.shown.append(shown)
        return self.answer(shown)

    @property
    def sent(self) -> list[str]:
        return [each.text for each in self.channel.sends]

    async def pass_until(self, true: Callable[[], Any], step: float = 1.0) -> None:
        while not true():
            self.clock.set(self.clock.now() + step)
            await asyncio.sleep(0.005)


@pytest.fixture
def simulated(tmp_path: Path) -> Simulated:
    return Simulated(tmp_path)


async def say(agent: everloop.Agent, text: str, event: str, author: str = OWNER, address: str = CHAT) -> str:
    """The answer that is sent there."""
    at = Address.parse(address)
    return (await agent.answer(Inbound(at, event, Said(said(text), author, address), author))).content


# When


@pytest.mark.parametrize(
    ("text", "rule", "first"),
    [
        ("at 09:30", "", BEGAN + 1.5 * HOUR),
        ("at 08:00", "", BEGAN + DAY),
        ("at 2027-01-16 08:00", "", BEGAN + DAY),
        ("at 2027-01-16T08:00+01:00", "", BEGAN + DAY - HOUR),
        ("after 2h30m", "", BEGAN + 2.5 * HOUR),
        ("in 20 min", "", BEGAN + 1200),
        ("every 2h", "every 7200", BEGAN + 2 * HOUR),
        ("cron 0 8 * * 1-5", "cron UTC 0 8 * * 1-5", None),
        ("0 8 * * 1-5", "cron UTC 0 8 * * 1-5", None),
        ("@daily", "cron UTC @daily", None),
    ],
)
def test_people_say_when_in_these_words(text: str, rule: str, first: float | None):
    when = when_of(text, "UTC", BEGAN)
    assert (when.rule, when.first) == (rule, first)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no time; say when as `at 08:00`"),
        ("whenever", "is no time; say when as `at 08:00`"),
        ("at 25:00", "there is no 25:00 on a clock"),
        ("at 2020-01-01 08:00", "that time is over"),
        ("at 2200-01-01 08:00", "more than 50 years ahead"),
        ("every 0s", "between 1s and 50 years"),
        ("every now and then", "say one such as 20m"),
        ("after 1", "say one such as 20m"),
        ("at 08:00" * 50, "too long for a time"),
    ],
)
def test_what_is_no_time_is_told_with_what_is(text: str, why: str):
    with pytest.raises(BadSchedule, match=why):
        when_of(text, "UTC", BEGAN)


def test_a_length_of_time_has_units():
    assert [seconds_in(text) for text in ("90s", "1h 30m", "7d", "2W")] == [90, 5400, 604800, 1209600]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("contains Open", True),
        ("contains closed", False),
        ("lacks closed", True),
        ("lacks open", False),
        ("changes", True),
        ("whatever", False),
    ],
)
def test_a_condition_is_about_words_or_a_change(condition: str, holds: bool):
    assert condition_holds(condition, "we are open", "seen before", "seen now") is holds
    assert not condition_holds("changes", "x", "", "seen now")  # the first look is no change


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("", CronOrder("list")),
        ("LIST", CronOrder("list")),
        ("remove ab12", CronOrder("remove", "ab12")),
        (
            "add every 2h message: drink: water",
            CronOrder("add", "", {"does": "message", "text": "drink: water", "when": "every 2h"}),
        ),
        (
            'add cron 0 8 * * 1-5 zone=UTC max_runs=3 poll=https://a/?b=c condition="contains a b" turn: go\nnow',
            CronOrder(
                "add",
                "",
                {
                    "does": "turn",
                    "text": "go\nnow",
                    "zone": "UTC",
                    "max_runs": 3,
                    "polls": "https://a/?b=c",
                    "condition": "contains a b",
                    "when": "cron 0 8 * * 1-5",
                },
            ),
        ),
        ("edit ab12 every 3h", CronOrder("edit", "ab12", {"when": "every 3h"})),
        ("edit ab12 message: tea", CronOrder("edit", "ab12", {"does": "message", "text": "tea"})),
    ],
)
def test_an_order_is_one_line_for_people_and_models_alike(text: str, order: CronOrder):
    assert order_of(text) == order


@pytest.mark.parametrize(
    ("text", "why"), [("add x", "say it as"), ("fly", "there is no 'fly'"), ("add a=b turn: x", "no 'a'")]
)
def test_what_is_no_order_is_told_with_what_is(text: str, why: str):
    with pytest.raises(MailRefused, match=why):
        order_of(text)


# Making


async def test_the_model_makes_one_schedule_for_one_call_and_is_told_its_next_times(simulated: Simulated):
    args = {"order": "add cron 0 8 * * 1-5 zone=UTC message: good morning"}
    simulated.answer = lambda shown: Say("done") if shown.step else Call("cron", args)
    async with simulated.open() as agent:
        assert await say(agent, "remind me", "e1") == "done"
        (row,) = await agent.store.schedules(OWNER)
        schedule = row.schedule
        assert (schedule.does, schedule.text, schedule.session, schedule.by_hand) == (
            "message",
            "good morning",
            CHAT,
            False,
        )
        assert row.next == BEGAN + 3 * DAY  # Monday
        again = await agent.schedules.act(ME, "add", "", {"when": "every 2h", "text": "x"}, "k")
        assert await agent.schedules.act(ME, "add", "", {"when": "every 2h", "text": "x"}, "k") == again
        assert len(await agent.store.schedules(OWNER)) == 2
    result = simulated.shown[-1].messages[-1]
    assert "next Mon 2027-01-18 08:00, Tue 2027-01-19 08:00, Wed 2027-01-20 08:00" in str(result)


async def test_the_command_makes_lists_runs_and_removes_and_costs_no_call(simulated: Simulated):
    async with simulated.open() as agent:
        made = await say(agent, "/cron add every 2h message: drink water", "e1")
        id = made.split()[0]
        assert made == (
            f"{id}  drink water  (every 2h, UTC; next Fri 2027-01-15 10:00, Fri 2027-01-15 12:00, "
            "Fri 2027-01-15 14:00)  tells you: drink water"
        )
        assert await say(agent, "/cron", "e2") == made
        assert await say(agent, f"/cron run {id}", "e3") == "drink water: done"
        assert await say(agent, f"/cron log {id}", "e4") == "Fri 2027-01-15 08:00  done"
        assert "disabled" in await say(agent, f"/cron disable {id}", "e5")
        assert "next Fri" in await say(agent, f"/cron enable {id}", "e6")
        edited = await say(agent, f"/cron edit {id} every 3h message: drink tea", "e7")
        assert "every 3h" in edited
        assert await say(agent, f"/cron remove {id}", "e8") == "Removed: drink water"
        assert await say(agent, "/cron", "e9") == "There are no schedules."
        assert await say(agent, "/cron remove nothing", "e10") == "There is no schedule 'nothing' of yours."
        assert "Say it as `add WHEN turn: TEXT`" in await say(agent, "/cron add something", "e11")
        assert "/cron add WHEN" in await say(agent, "/cron help", "e12")
    assert simulated.shown == []


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"when": "every 1m", "text": "x"}, "at least 300 seconds lie between two turns"),
        ({"when": "cron * * * * *", "text": "x"}, "at least 300 seconds lie between two turns"),
        ({"when": "every 30s", "text": "x", "does": "message"}, "at least 60 seconds lie between two times"),
        ({"when": "every 2h", "text": " "}, "some text, at most 10,000 characters"),
        ({"when": "every 2h", "text": "x", "does": "dance"}, "does is one of turn, message, command, not 'dance'"),
        ({"when": "every 2h", "text": "x", "overlap": "both"}, "overlap is skip or queue"),
        ({"when": "every 2h", "text": "x", "retries": 99}, "retries is a number from 0 to 5"),
        ({"when": "every 2h", "text": "x", "owner": "ann"}, "a schedule has no 'owner'"),
        ({"when": "every 2h", "text": "x", "zone": "Nowhere"}, "there is no time zone 'Nowhere'"),
        ({"when": "cron 0 8 * * 1-5", "text": "x", "zone": "Nowhere"}, "there is no time zone 'Nowhere'"),
        ({"when": "every 2h", "text": "x", "polls": "https://a"}, "a poll needs both"),
        ({"when": "every 2h", "text": "x", "session": "nowhere"}, "say where it is to answer"),
        ({"when": "at 09:00", "text": "x", "polls": "https://a", "condition": "changes"}, "looks again and again"),
    ],
)
async def test_what_is_no_schedule_is_refused_with_a_sentence(simulated: Simulated, fields: dict[str, Any], why: str):
    async with simulated.open() as agent:
        with pytest.raises(MailRefused, match=why):
            await agent.schedules.desk.create(ME, fields)
        assert await agent.store.schedules() == []


async def test_guests_make_none_and_nobody_touches_anothers(simulated: Simulated):
    async with simulated.open() as agent:
        await agent.store.introduce(Person("web:ann", "Ann", Role.USER))
        desk = agent.schedules.desk
        row = await desk.create(ME, {"when": "every 2h", "text": "mine"})
        ann = Asker("web:ann", Role.USER, "web:ann")
        guest = Asker("web:gus", Role.GUEST, "web:gus")
        with pytest.raises(MailRefused, match="schedules are not for guests"):
            await desk.create(guest, {"when": "every 2h", "text": "x"})
        for deed in (desk.remove, desk.run, desk.log):
            with pytest.raises(MailRefused, match="there is no schedule"):
                await deed(ann, row.schedule.id)
        with pytest.raises(MailRefused, match=f"there is no conversation '{CHAT}' of yours"):
            await desk.create(ann, {"when": "every 2h", "text": "x", "session": CHAT})
        assert await desk.listed(ann, everyones=True) == []
        hers = await desk.create(ann, {"when": "every 2h", "text": "hers"})
        with pytest.raises(MailRefused, match="there is no schedule"):  # words with her rights are hers alone
            await desk.edit(ME, hers.schedule.id, {"text": "other words"})
        assert len(await desk.listed(ME, everyones=True)) == 2
        assert (await desk.enable(ME, hers.schedule.id, False)).enabled is False
        assert (await desk.remove(ME, hers.schedule.id)).text == "hers"


class Here:
    """The circumstances of a call."""

    def __init__(self, outside: bool) -> None:
        self.outside = outside


class Clerk:
    async def act(self, asker: Asker, action: str, id: str, fields: Mapping[str, Any], key: str = "") -> str:
        return ""


@pytest.mark.parametrize("outside", [True, False])
def test_where_strangers_words_have_been_read_a_person_is_asked_before_one_is_made(outside: bool):
    spec = cron_tool(Clerk, lambda args, situation: Risk("high", mutates=True)).spec
    assert spec.risk is not None
    risks: dict[str, Any] = {
        order: spec.risk({"order": order}, Here(outside))  # type: ignore[arg-type]
        for order in ("add every 2h turn: x", "edit a turn: x", "enable a", "run a", "list", "log a", "remove a", "?")
    }
    assert {order.split()[0] for order, risk in risks.items() if risk.leaves} == (
        {"add", "edit", "enable", "run"} if outside else set()
    )
    elsewhere = spec.risk({"order": "add after 1s session=fake:stranger message: x"}, Here(outside))  # type: ignore[arg-type]
    assert elsewhere.leaves  # as `message` is asked about, which says it at once
    command = spec.risk({"order": "add every 2h command: rm"}, Here(outside))  # type: ignore[arg-type]
    assert (command.level, command.leaves) == ("high", outside)


# Running


async def test_a_week_of_reminders_is_told_and_no_model_is_asked(simulated: Simulated):
    """The lines of 0 tokens: nothing but what was to be told is told."""
    async with simulated.open() as agent:
        await say(agent, "/cron add cron 0 9 * * * message: stand up", "e1")
        for day in range(7):
            simulated.clock.set(BEGAN + day * DAY + HOUR)
            await simulated.pass_until(lambda day=day: simulated.sent.count("stand up") == day + 1)
        assert await agent.store.spent() == []
    assert simulated.shown == []


async def test_a_reminder_that_was_missed_while_down_is_told_late_and_says_so(simulated: Simulated):
    async with simulated.open() as agent:
        await say(agent, "/cron add at 08:30 message: call mum", "e1")
    simulated.clock.set(BEGAN + 1.2 * HOUR)
    async with simulated.open():
        # The answer to /cron is among them, if it was not sent before.
        await simulated.pass_until(lambda: any(each.startswith("call mum") for each in simulated.sent))
    assert re.fullmatch(r"call mum\n\(due at 08:30, delivered 09:\d\d\)", simulated.sent[-1])


async def test_a_turn_is_asked_for_answered_in_its_chat_and_kept_with_its_end(simulated: Simulated):
    async with simulated.open() as agent:
        with agent.events() as events:
            made = await say(agent, "/cron add at 09:00 turn: summarise my inbox", "e1")
            simulated.clock.set(BEGAN + HOUR)
            await simulated.pass_until(lambda: "hello" in simulated.sent)
            id = made.split()[0]

            async def state() -> str:
                return (await agent.store.schedule_runs(id))[0].result

            while await state() != "hello":  # noqa: ASYNC110  it happens in the store
                await asyncio.sleep(0.005)
            fired = [each for each in await events.next_ones(0.1) or [] if isinstance(each, ScheduleFired)]
        assert [(each.schedule, each.state) for each in fired] == [(id, "running")]
        (run,) = await agent.store.schedule_runs(id)
        assert run.state == "done"
    (shown,) = simulated.shown
    assert f"everloop itself says this, not a person: cron:{id}" in str(shown.messages[-1])


async def test_what_a_schedule_has_said_begins_nothing(simulated: Simulated):
    """Own output is never input again: 20 rounds of a chat that echoes what is sent into itself would be new letters of
    the bot's own, and there are none."""
    async with simulated.open() as agent:
        await say(agent, "/cron add every 1m message: tick", "e1")
        for minute in range(20):
            simulated.clock.set(BEGAN + 60 * (minute + 1))
            await simulated.pass_until(lambda minute=minute: simulated.sent.count("tick") > minute)
    assert simulated.shown == []


@pytest.mark.parametrize("order", ["add after 1s turn: go on", "run {id}", "edit {id} after 1s", "enable {id}"])
async def test_no_schedule_leads_to_another_that_asks_the_agent(simulated: Simulated, order: str):
    """A turn that nobody has asked for would begin the next, and that the one after it."""
    async with simulated.open() as agent:
        id = (await say(agent, "/cron add at 09:00 turn: begin", "e1")).split()[0]
        simulated.answer = lambda shown: Say("done") if shown.step else Call("cron", {"order": order.format(id=id)})
        simulated.clock.set(BEGAN + HOUR)
        await simulated.pass_until(lambda: "done" in simulated.sent)
        waiting = [row for row in await agent.store.schedules(OWNER) if not row.over]
        assert ("it could go on for ever" in str(simulated.shown[-1].messages[-1]), waiting) == (True, [])
        await say(agent, "now I ask for it", "e2")  # whoever is there sees where it ends
    asked = [str(each.messages[-1]) for each in simulated.shown if each.asked == "now I ask for it" and each.step]
    assert ["it could go on for ever" in each for each in asked] == [False]


async def test_a_turn_of_a_schedule_may_make_a_reminder(simulated: Simulated):
    order = {"order": "add after 1h message: the meeting"}
    simulated.answer = lambda shown: Say("done") if shown.step else Call("cron", order)
    async with simulated.open() as agent:
        await say(agent, "/cron add at 09:00 turn: begin", "e1")
        simulated.clock.set(BEGAN + HOUR)
        await simulated.pass_until(lambda: "done" in simulated.sent)
        assert [row.schedule.text for row in await agent.store.schedules(OWNER) if not row.over] == ["the meeting"]


async def test_whoever_has_left_a_group_neither_changes_nor_reads_what_works_there(simulated: Simulated):
    """Nobody knows who has left it: so it is done where they can be heard."""
    room = Room()
    simulated.channel = room
    async with simulated.open() as agent:
        await agent.store.introduce(Person("fake:ann", "Ann", Role.USER, accounts=("fake:ann",)))
        for number, text in enumerate(("hi", "/cron add every 1h message: GROUP")):
            await room.says("ann", text)
            await room.sent(number + 1)
        desk, there = agent.schedules.desk, Asker("fake:ann", Role.USER, "fake:room")
        (row,) = await desk.listed(there)
        id, elsewhere = row.schedule.id, Asker("fake:ann", Role.USER, "web:ann")
        changes = (
            lambda who: desk.edit(who, id, {"does": "command", "text": "cat memory/MEMORY.md"}),
            lambda who: desk.run(who, id),
            lambda who: desk.enable(who, id, True),
        )
        for change in changes:
            with pytest.raises(MailRefused, match="works in a group"):
                await change(elsewhere)
            await change(there)

        async def results(who: Asker) -> set[str]:
            return {run.result for run in await desk.log(who, id)}

        while not (found := await results(there) - {""}):
            simulated.clock.set(simulated.clock.now() + 1)
            await asyncio.sleep(0.005)
        assert (bool(found), await results(elsewhere)) == (True, {""})
        assert not (await desk.enable(elsewhere, id, False)).enabled
        await desk.remove(elsewhere, id)


async def test_a_command_runs_in_the_sandbox_without_a_model_and_its_output_is_told(simulated: Simulated):
    def outputs() -> list[str]:
        return [each for each in simulated.sent if "runs a command" not in each]  # an answer to /cron

    async with simulated.open() as agent:
        await say(agent, "/cron add at 09:00 command: echo it is $((6 * 7)); touch made", "e1")
        await say(agent, "/cron add at 09:00 command: true", "e2")
        failing = (await say(agent, "/cron add at 09:00 command: echo oh; exit 3", "e3")).split()[0]
        simulated.clock.set(BEGAN + HOUR)
        await simulated.pass_until(lambda: len(outputs()) == 2)
        (run,) = await agent.store.schedule_runs(failing)
        assert run.state == "failed"
    assert simulated.shown == []
    # One of the three has said nothing.
    assert sorted(outputs()) == ["echo oh; exit 3 failed: [exit code 3]\noh", "it is 42"]


WRITES = (
    "echo OWNED >> AGENTS.md; mkdir -p skills/evil memory; echo '- OWNED' >> memory/MEMORY.md; "
    "printf -- '---\\ndescription: OWNED\\n---\\n' > skills/evil/SKILL.md; echo written"
)


@pytest.mark.parametrize("by", ["schedule", "hand"])
async def test_what_a_command_has_written_into_files_that_stand_in_prompts_waits_for_a_person(
    simulated: Simulated, tmp_path: Path, by: str
):
    async with simulated.open() as agent:
        await say(agent, "hello", "e1")
        if by == "schedule":
            await say(agent, f"/cron add at 09:00 name=writer command: {WRITES}", "e2")
            simulated.clock.set(BEGAN + HOUR)
            await simulated.pass_until(lambda: "written" in simulated.sent)
            # What it has left is judged once it was told.
            while any(row.state == "working" for row in await agent.store.jobs(OWNER)):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        else:
            process = await asyncio.create_subprocess_shell(WRITES, cwd=tmp_path / "home" / "workspace")
            assert await process.wait() == 0
        await say(agent, "hello again", "e3", address="fake:other")
        told = simulated.shown[-1].system.count("OWNED")
        waits = sorted(each.tool for each in await agent.approvals())
        lasting = await agent.store.taints(str(tmp_path / "home" / "workspace"))
    held = ["AGENTS.md", "memory/MEMORY.md", "skills/evil/SKILL.md"]
    assert (told, waits, lasting) == ((0, held, []) if by == "schedule" else (3, [], []))


@pytest.mark.parametrize("removed", [True, False])
async def test_a_turn_that_was_to_be_tried_again_is_not_once_its_schedule_is_removed(
    simulated: Simulated, removed: bool
):
    simulated.answer = lambda shown: Fail(BadRequest("no"))
    async with simulated.open() as agent:
        id = (await say(agent, "/cron add after 1m retries=1 turn: go", "e1")).split()[0]

        async def retries() -> list[str]:
            return [row.job.id for row in await agent.store.jobs(OWNER) if row.job.kind == "retry"]

        while not await retries():
            simulated.clock.set(simulated.clock.now() + 1)
            await asyncio.sleep(0.005)
        if removed:
            await say(agent, f"/cron remove {id}", "e2")
        assert len(await retries()) == (0 if removed else 1)


@pytest.mark.parametrize("by_hand", [True, False])
async def test_a_command_that_a_person_would_be_asked_about_runs_only_if_it_was_made_by_hand(
    simulated: Simulated, by_hand: bool
):
    simulated.settings["tools"] = {"policy": [{"tool": "exec", "stance": "ask"}]}
    async with simulated.open() as agent:
        asker = Asker(OWNER, Role.OWNER, CHAT, by_hand=by_hand)
        row = await agent.schedules.desk.create(asker, {"when": "at 09:00", "does": "command", "text": "echo hi"})
        simulated.clock.set(BEGAN + HOUR)

        async def ended() -> str:
            runs = await agent.store.schedule_runs(row.schedule.id)
            return runs[0].state if runs else ""

        while (state := await ended()) not in ("done", "failed"):
            simulated.clock.set(simulated.clock.now() + 1)
            await asyncio.sleep(0.005)
    assert state == ("done" if by_hand else "failed")


async def test_a_poll_looks_until_its_condition_holds(simulated: Simulated, tmp_path: Path):
    workspace = tmp_path / "home" / "workspace"
    async with simulated.open() as agent:
        (workspace / "state.txt").write_text("closed")
        fields = {"when": "every 10m", "does": "message", "text": "the shop is open"}
        polls = {"polls": 'read_file {"path": "state.txt"}', "condition": "contains open"}
        row = await agent.schedules.desk.create(ME, {**fields, **polls})

        async def looked() -> int:
            found = await agent.store.schedule(row.schedule.id)
            return found.fires if found else -1

        simulated.clock.set(BEGAN + 600)
        while not await looked():
            simulated.clock.set(simulated.clock.now() + 1)
            await asyncio.sleep(0.005)
        assert simulated.sent == []
        (workspace / "state.txt").write_text("open")
        simulated.clock.set(BEGAN + 1300)
        await simulated.pass_until(lambda: bool(simulated.sent))
        assert [row.over for row in await agent.store.schedules()] == ["its condition held"]
    assert simulated.sent[0].startswith("the shop is open\n(read_file")
    assert simulated.shown == []


async def test_a_poll_that_cannot_look_says_why_in_its_log_and_goes_on(simulated: Simulated):
    async with simulated.open() as agent:
        fields = {"when": "every 10m", "does": "message", "text": "it is there"}
        polls = {"polls": 'read_file {"path": "none.txt"}', "condition": "contains open"}
        row = await agent.schedules.desk.create(ME, {**fields, **polls})
        for time in (600, 1200):
            simulated.clock.set(BEGAN + time)
            while not await agent.store.schedule_runs(row.schedule.id) or simulated.clock.now() < BEGAN + time + 20:
                simulated.clock.set(simulated.clock.now() + 1)
                await asyncio.sleep(0.005)
        runs = await agent.store.schedule_runs(row.schedule.id)
        assert [each.over for each in await agent.store.schedules()] == [""]
    assert [(run.state, "none.txt" in run.result) for run in runs] == [("failed", True)]
    assert simulated.sent == []
