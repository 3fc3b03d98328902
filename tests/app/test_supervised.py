"""Whatever runs for long in an open gateway is begun again when it breaks, and the house goes on."""

import asyncio
from pathlib import Path
from typing import Any

from everloop.ports import Deliver
from everloop.testing import Say, ScriptedModel
from tests.gateway.api.test_setup import Door, opened
from tests.permissions.owners_house import Room

ALWAYS = {"scheduler", "memory", "schedules", "heartbeat", "titles", "keys", "lanes mail", "lanes leases", "hub"}
SETTINGS = {
    "telemetry": {"otlp_endpoint": "http://127.0.0.1:9"},
    "channels": {"webhook": {"url": "http://127.0.0.1:9/", "secret": "s" * 20}},
}


class Listening(Room):
    """A channel that listens for as long as it is open."""

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        await asyncio.Event().wait()


async def break_off(names: set[str]) -> None:
    """Have each of these tasks fail where it waits; one that is at work just now waits in a moment. That nobody has
    ended it is told apart from an end."""
    left = {f"everloop-{name}" for name in names}
    async with asyncio.timeout(60):
        while left:
            for task in asyncio.all_tasks():
                waits: Any = getattr(task, "_fut_waiter", None)  # nothing else reaches into a task without ending it
                if task.get_name() in left and waits is not None and waits.cancel():
                    left.discard(task.get_name())
            await asyncio.sleep(0)


async def until_begun_again(door: Door, names: set[str]) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            tasks = {each["name"]: each for each in (await door.get("/api/tasks"))["tasks"]}
            if all(tasks[name]["restarts"] and tasks[name]["state"] != "waiting" for name in names & tasks.keys()):
                return tasks
            await asyncio.sleep(0.05)


async def test_whatever_runs_for_long_is_begun_again_and_the_house_goes_on(tmp_path: Path):
    room = Listening()
    async with opened(tmp_path, SETTINGS, provider=ScriptedModel(lambda shown: Say("hi")), channels=[room]) as door:
        await room.listens.wait()
        tasks = (await door.get("/api/tasks"))["tasks"]
        running = {each["name"] for each in tasks if each["state"] == "running"} - {
            "channel webhook"
        }  # which is called
        await break_off(running)
        after = await until_begun_again(door, running)
        answer = await door.ask("still there?")
    assert {*ALWAYS, "spans", "channel fake", "outbox fake", "lease fake", "outbox webhook", "channels"} <= running
    assert {after[name]["state"] for name in running} <= {"running", "standby"}
    assert answer == "hi"
