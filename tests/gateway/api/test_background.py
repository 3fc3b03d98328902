"""The API lists what is in the background of one's chats, sends what runs there, takes it back and ends it."""

import asyncio
from pathlib import Path

from aiohttp.test_utils import TestClient, TestServer

from everloop.app import open_desk
from everloop.testing import Say, Wait
from tests.gateway.api.stand_in import stand_in
from tests.gateway.api.test_api import OWNER, READER, USER, get, post
from tests.runtime.test_background import by_last, say

CHAT = "page:home"


async def test_what_runs_goes_to_the_background_and_comes_back(tmp_path: Path):
    gate = asyncio.Event()
    model = by_last(dig=[(Wait(gate), Say("gold"))], look=[(Wait(gate), Say("seen"))])
    async with open_desk(tmp_path, {}, provider=model) as agent, TestClient(TestServer(stand_in(agent))) as client:
        await say(agent, "dig deep", CHAT)
        await model.called(1)
        thread = (await agent.store.session(CHAT)).id
        sending = f"/api/sessions/{thread}/background"
        refused = [(await post(client, sending, {}, who))[0] for who in (USER, READER)]
        status, moved = await post(client, sending, {}, OWNER)
        again = await post(client, sending, {}, OWNER)
        await say(agent, "/bg look around", CHAT)
        await model.called(2)
        _, told = await get(client, "/api/background", OWNER)
        nothing = (await get(client, "/api/background", USER))[1]
        nowhere = await post(client, f"/api/sessions/{moved['thread']}/background", {}, OWNER)
        front = f"/api/background/{thread}/front"
        others = [(await post(client, front, {}, who))[0] for who in (USER, READER)]
        back = await post(client, front, {}, OWNER)
        twice = await post(client, front, {}, OWNER)
        second = told["tasks"][1]["id"]
        stopped = await post(client, f"/api/background/{second}/stop", {}, OWNER)
        gate.set()
    assert (refused, status) == ([404, 403], 200)
    assert moved["thread"] not in ("", thread)
    assert "as task 1;" in moved["reply"]
    assert again[1] == moved  # a second click means the first
    assert [(each["kind"], each["number"], each["title"], each["stage"]) for each in told["tasks"]] == [
        ("turn", 1, "dig deep", "running"),
        ("turn", 2, "look around", "running"),
    ]
    assert ({each["parent"] for each in told["tasks"]}, told["open"]) == ({moved["thread"]}, 2)
    assert nothing == {"tasks": [], "open": 0}
    assert nowhere[0] in (404, 409)  # nothing has been said there yet
    assert others == [404, 403]
    assert (back[0], back[1]["thread"], back[1]["session"]) == (200, thread, CHAT)
    assert twice[0] == 404  # it is no task any more
    assert stopped == (200, {"stopped": 1})
