"""An idle week of a whole house costs nothing: heartbeat, schedules and memory are on, and no model is asked."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.effort import in_full

import everloop
from everloop.app import open_desk
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.people import OWNER, Role
from everloop.ports.schedules import Asker
from everloop.testing import Call, Line, RecordingChannel, Say, ScriptedModel, Shown
from everloop.testing.clock import SimulatedClock

BEGAN, MINUTE, DAY = 1_800_000_000.0, 60.0, 86_400.0
CHAT = "fake:chat"
ME = Asker(OWNER, Role.OWNER, CHAT, by_hand=True)
HEARTBEAT = """\
watch: reports/*.csv, HEARTBEAT.md
# When a report changes, tell me what is new
<!-- - [ ] nothing of this -->
- [x] call the dentist
"""


def answer(shown: Shown) -> Line:
    if "save_memory" in shown.tools:
        return Call("save_memory", {"history_entry": "They said hello.", "facts": []})
    return Say("HEARTBEAT_OK" if "This is your heartbeat" in shown.asked else "hello")


class Week:
    def __init__(self, folder: Path, url: str, every: int) -> None:
        self._every = every
        self._settings = {
            "store": {"url": url},
            "schedules": {"timezone": "UTC"},
            "heartbeat": {"every": every},
        }
        self._home = folder / "home"
        self.workspace = self._home / "workspace"
        (self.workspace / "reports").mkdir(parents=True)
        (self.workspace / "reports" / "a.csv").write_text("1")
        (self.workspace / "build.txt").write_text("red")
        (self.workspace / "HEARTBEAT.md").write_text(HEARTBEAT)
        self.clock = SimulatedClock(folder / "clock")
        self.clock.set(BEGAN)
        self.model = ScriptedModel(answer)
        self.channel = RecordingChannel("fake")

    def open(self) -> Any:
        given = {"provider": self.model, "clock": self.clock, "channels": (self.channel,)}
        return open_desk(self._home, self._settings, **given)

    async def begin(self, agent: everloop.Agent) -> None:
        """Somebody has spoken, and that is remembered; there are a poll and a reminder."""
        await agent.answer(Inbound(Address.parse(CHAT), "e1", Said(said("hi"), OWNER, CHAT), OWNER))
        desk = agent.schedules.desk
        await desk.create(ME, {"when": "cron 0 7 * * *", "does": "message", "text": "good morning", "session": CHAT})
        polls = {"polls": 'read_file {"path": "build.txt"}', "condition": "contains green", "session": CHAT}
        await desk.create(ME, {"when": "every 6h", "does": "turn", "text": "tell me", **polls})
        while not await agent.store.memory_version(OWNER):
            await self.pass_time(10.0)

    async def pass_time(self, seconds: float) -> None:
        self.clock.set(self.clock.now() + seconds)
        await asyncio.sleep(0.005)

    async def beat(self, agent: everloop.Agent) -> str:
        """Until the next look is settled."""
        store = agent.store
        before = await store.heartbeat(OWNER)
        assert before.next is not None
        self.clock.set(max(self.clock.now(), before.next))
        while (await store.heartbeat(OWNER)).version == before.version:
            await self.pass_time(1.0)
        while any(row.state == "working" for row in await store.jobs(OWNER)) or (await store.heartbeat(OWNER)).busy:
            await self.pass_time(0.0)
        return (await store.heartbeat(OWNER)).state.decided

    async def pass_days(self, agent: everloop.Agent, days: int) -> set[str]:
        return {await self.beat(agent) for _ in range(days * 24 * 60 // self._every)}


@pytest.fixture
def week(home: Any, tmp_path: Path) -> Week:
    return Week(tmp_path, getattr(home, "url", ""), in_full(30, 240))


@pytest.mark.shortened
@pytest.mark.timeout(600)
async def test_an_idle_week_with_heartbeat_schedules_and_memory_asks_no_model(week: Week):
    async with week.open() as agent:
        await week.begin(agent)
        calls = week.model.calls
        decided = await week.pass_days(agent, 7)
        looks = (await agent.schedules.desk.listed(ME))[0].fires, (await agent.schedules.desk.listed(ME))[1].fires
        spent = sum(row.calls for row in await agent.store.spent())
        while await agent.store.waiting() or agent.store.running or await agent.store.unshown(CHAT):
            await week.pass_time(1.0)  # what was to be told last is on its way
    told = [each.text for each in week.channel.sends if "good morning" in each.text]
    assert (week.model.calls - calls, decided, len(told), spent) == (0, {"unchanged"}, 7, calls)
    assert min(looks) >= 7  # the poll and the reminder were at it


@pytest.mark.shortened
@pytest.mark.timeout(600)
async def test_a_file_that_changes_in_that_week_makes_one_call(week: Week):
    async with week.open() as agent:
        await week.begin(agent)
        calls = week.model.calls
        before = await week.pass_days(agent, 3)
        (week.workspace / "reports" / "a.csv").write_text("2")
        changed = await week.beat(agent)
        after = await week.pass_days(agent, 3)
    assert (before, changed, after) == ({"unchanged"}, "asked", {"unchanged"})
    assert week.model.calls - calls == 1
    assert not any("HEARTBEAT_OK" in each.text for each in week.channel.sends)
