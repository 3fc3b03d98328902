"""A process that looks at a HEARTBEAT.md, asks about it, and looks again, and is killed at the failpoint that its
environment names. It writes down how things stand in the end: the same, whatever was killed before."""

import asyncio
import json
import os
import sys
from pathlib import Path

import everloop
from everloop.app import open_desk
from everloop.core.log import ModelSaid, UserSaid
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.testing import Line, RecordingChannel, Say, ScriptedModel, Shown
from everloop.testing.clock import SimulatedClock

SESSION = "fake:chat"


def answer(shown: Shown) -> Line:
    return Say("The report is new." if "This is your heartbeat" in shown.asked else "hello")


async def main(folder: Path, url: str, moves: bool) -> None:
    clock = SimulatedClock(folder / "clock")
    lease = 1 if "EVERLOOP_FAILPOINT" in os.environ else 30  # whoever is killed is succeeded when it runs out
    store = {"url": url, "lease_seconds": lease} if url else {}
    settings = {"store": store, "memory": {"enabled": False}}
    given = {
        "provider": ScriptedModel(answer),
        "clock": clock,
        "channels": (RecordingChannel("fake", folder / "sent"),),
    }
    async with open_desk(folder / "home", settings, **given) as agent, asyncio.timeout(100):
        await agent.tell(Inbound(Address.parse(SESSION), "e1", Said(said("hi"), "owner", SESSION)))
        while not await has_asked(agent):
            await pass_time(clock, moves * 1)
        version = (await agent.store.heartbeat("owner")).version
        while (await agent.store.heartbeat("owner")).version < version + 2:
            await pass_time(clock, moves * 60)
        row = await agent.store.session(SESSION)
        assert row is not None
        log = await agent.store.read(row.id)
        decided = (await agent.store.heartbeat("owner")).state.decided
    asked = [each.source for each in log if isinstance(each, UserSaid) and each.source]
    answers = [each.text for each in log if isinstance(each, ModelSaid)]
    sys.stdout.write(json.dumps({"asked": asked, "answers": answers, "decided": decided}))


async def pass_time(clock: SimulatedClock, seconds: float) -> None:
    """One process alone moves a clock on that several share."""
    if seconds:
        clock.set(clock.now() + seconds)
    await asyncio.sleep(0.01)


async def has_asked(agent: everloop.Agent) -> bool:
    """It has, and all that follows is written and sent."""
    row = await agent.store.heartbeat("owner")
    thread = await agent.store.session(SESSION)
    over = thread is not None and thread.state == "resting" and thread.head > 0
    return bool(row.state.asked) and not row.busy and over and not await agent.store.unshown(SESSION)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "moves"))
