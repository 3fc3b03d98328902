"""The API shows whoever asks the tasks of their own, lets them be read, and ends them."""

import asyncio
from pathlib import Path

from aiohttp.test_utils import TestClient, TestServer

from everloop.app import open_desk
from everloop.testing import Say, Wait
from tests.gateway.api.stand_in import stand_in
from tests.gateway.api.test_api import OWNER, READER, USER, get, post
from tests.runtime.test_subagents import by_task, spawn


async def test_ones_own_tasks_are_listed_read_and_ended_and_nobody_elses(tmp_path: Path):
    gate = asyncio.Event()
    model = by_task([(spawn("a"), spawn("b", wait=True)), Say("done")], a=[(Wait(gate), Say("A"))], b=[Say("B")])
    async with open_desk(tmp_path, {}, provider=model) as agent, TestClient(TestServer(stand_in(agent))) as client:
        await agent.ask("go")
        status, told = await get(client, "/api/subagents", READER)
        first, second = told["subagents"]
        parent = first["spawned_by"].partition(":")[0]
        assert (status, first["title"], first["stage"], second["title"], second["stage"]) == (
            200,
            "a",
            "running",
            "b",
            "done",
        )
        assert (await get(client, f"/api/subagents?session={parent}", OWNER))[1] == told
        assert (await get(client, "/api/subagents", USER))[1] == {"subagents": []}
        _, log = await get(client, f"/api/sessions/{second['thread']}/entries", OWNER)
        assert [entry["kind"] for entry in log["entries"]] == ["user_said", "model_called", "model_said"]
        stop = f"/api/subagents/{first['thread']}/stop"
        assert (await post(client, stop, {}, USER))[0] == 404
        assert (await post(client, stop, {}, READER))[0] == 403
        assert await post(client, stop, {}, OWNER) == (200, {"stopped": 1})
        while (await get(client, "/api/subagents"))[1]["subagents"][0]["stage"] != "stopped":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        assert (await post(client, stop, {}, OWNER))[0] == 409
        listed = (await get(client, "/api/sessions", OWNER))[1]["sessions"]
        assert [each["id"] for each in listed] == [parent]
