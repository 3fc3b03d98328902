"""A week of a restored copy: heartbeat, schedules, memory and titles are due, and nothing begins before `adopt`."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.store.test_idle_week import BEGAN, CHAT, DAY, ME, answer
from tests.store.test_restored import COPY

import everloop
from everloop.app import open_desk
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.people import OWNER
from everloop.ports import Store
from everloop.ports.jobs import JobRow
from everloop.runtime.ownership import Ownership
from everloop.testing import RecordingChannel
from everloop.testing.clock import SimulatedClock
from everloop.testing.model_server import ModelServer

HOUR = 3600.0
LISTED = "page:one"


class RestoredHome:
    """In which somebody has spoken before the backup, on the page and in a chat, and which is a copy since. A job for
    its heartbeat there never was."""

    def __init__(self, home: Any, folder: Path, server: ModelServer) -> None:
        self._settings: dict[str, Any] = {
            "store": {"url": getattr(home, "url", "")},
            "schedules": {"timezone": "UTC"},
            "backup": {"every": "daily"},
            "agents": {"defaults": {"model": "custom/large", "small_model": "custom/small", "context_window": 100_000}},
            "providers": {"custom": {"api_base": server.url, "api_key": "sk-canary-copy"}},
        }
        self._home = folder / "home"
        self.clock = SimulatedClock(folder / "clock")
        self.clock.set(BEGAN)
        self.server = server
        self.channel = RecordingChannel("fake")

    def open(self, **settings: Any) -> Any:
        return open_desk(self._home, self._settings | settings, clock=self.clock, channels=(self.channel,))

    async def begin(self) -> None:
        asleep = {"memory": {"enabled": False}, "backup": {}, "heartbeat": {"enabled": False}}
        async with self.open(**asleep) as agent:
            await say(agent, CHAT, "hi")
            once = {"when": "in 1h", "does": "turn", "text": "now", "session": CHAT}
            await agent.schedules.desk.create(ME, once)
            await agent.schedules.desk.create(ME, once | {"when": "cron 0 7 * * *"})
            await agent.store.hold_back(COPY, [])
        workspace = self._home / "workspace"
        workspace.mkdir(exist_ok=True)
        (workspace / "HEARTBEAT.md").write_text("# Tell me what is new\n- [ ] look\n")

    async def pass_time(self, seconds: float, step: float = HOUR) -> None:
        for _ in range(int(seconds / step)):
            self.clock.set(self.clock.now() + step)
            await asyncio.sleep(0.005)


async def say(agent: everloop.Agent, session: str, text: str) -> str:
    event = f"{session}-{text}"
    done = await agent.answer(Inbound(Address.parse(session), event, Said(said(text), OWNER, session), OWNER))
    return done.content


async def claimed(store: Store) -> list[JobRow]:
    rows = [*await store.jobs(OWNER), *await store.jobs("")]
    return [row for row in rows if row.attempts or row.state in ("working", "done") or row.result]


async def waiting(store: Store) -> set[str]:
    """The kinds of what is to be done."""
    return {row.job.kind for row in await store.jobs(OWNER) if row.state == "waiting"}


@pytest.fixture
async def restored(home: Any, tmp_path: Path) -> AsyncIterator[RestoredHome]:
    async with ModelServer(answer, models=("large", "small")) as server:
        found = RestoredHome(home, tmp_path, server)
        await found.begin()
        yield found


@pytest.mark.timeout(120)
async def test_in_a_week_a_copy_asks_no_model_and_claims_nothing_until_it_is_adopted(restored: RestoredHome):
    async with restored.open() as agent:
        before, earlier = restored.server.calls, await claimed(agent.store)
        sent = len(restored.channel.sends)  # by the original
        answered = await say(agent, LISTED, "who are you?")  # a person's word, and no title comes of it
        spoken = restored.server.calls - before
        await agent.schedules.desk.create(ME, {"when": "every 6h", "does": "turn", "text": "new", "session": CHAT})
        # There is something to claim.
        while not {"heartbeat", "schedule", "title"} <= await waiting(agent.store):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        await restored.pass_time(7 * DAY)
        asked, works = restored.server.calls - before, await claimed(agent.store)
        assert (answered, spoken, asked, works, len(restored.channel.sends)) == ("hello", 1, 1, earlier, sent)
        assert {"heartbeat", "schedule", "title"} <= await waiting(agent.store)
        await agent.store.adopt()
        begun: set[str] = set()
        while not {"heartbeat", "title", "consolidate", "tidy", "backup"} <= begun:
            await restored.pass_time(2 * HOUR, 600.0)
            begun |= {row.job.kind for row in await claimed(agent.store) if row not in earlier}
        assert restored.server.calls > before + spoken


async def test_what_one_process_does_for_all_is_done_in_a_copy_by_none(store: Store):
    await store.hold_back(COPY, [])
    ownership, done = Ownership(store, "channel:test"), asyncio.Event()
    holding = asyncio.ensure_future(ownership.run())

    async def listen() -> None:
        done.set()

    listening = asyncio.ensure_future(ownership.during(listen))
    try:
        assert not await store.hold("channel:test", 30.0)
        assert await store.hold("clock", 30.0, in_copy=True)
        assert not done.is_set()
        await store.adopt()
        await asyncio.wait_for(done.wait(), 30.0)
    finally:
        listening.cancel()
        holding.cancel()
        await asyncio.wait([listening, holding])
