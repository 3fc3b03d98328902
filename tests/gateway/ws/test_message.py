"""A word of the agent's own, seen in the conversation that it is told in by those who watch it."""

import asyncio
from typing import Any

from everloop.app.records import open_records
from everloop.testing import Call, Calls, Say, ScriptedModel, Shown

from ..test_files_out import fetched, ref, token_of

WORD = {"session": "page:home", "text": "Lunch is at one.", "files": ["menu.txt"]}


def line(shown: Shown) -> Any:
    if shown.asked == "tell" and shown.step == 0:
        return Calls(Call("write_file", {"path": "menu.txt", "content": "soup"}), Call("message", WORD))
    return Say("done")


async def test_whoever_watches_the_conversation_sees_it_at_once_with_its_files(openings):
    door = await openings(ScriptedModel(line))
    token = await door.token()
    async with door.socket(token) as there, door.socket(token) as here:
        await there.ask("hi", "m1", "page:home")
        await here.ask("tell", "m2", "api:work")
        frames = await there.until("response")
        await there.send("resume", session="page:home", thread=frames[-1]["thread"], after=3)
        (entry,) = (await there.next())["entries"]
    (file,) = frames[-1]["files"]
    assert [(frame["type"], frame.get("event")) for frame in frames] == [
        ("event", "thinking_finished"),
        ("response", None),
    ]
    assert frames[-1] == {
        "type": "response",
        "session": "page:home",
        "thread": frames[-1]["thread"],
        "seq": 4,
        "id": None,
        "content": "Lunch is at one.",
        "files": [file],
        "unknown": [],
    }
    assert (file["name"], file["file"]) == ("menu.txt", ref("soup"))
    assert (await fetched(door, file["url"], token))[:2] == (200, b"soup")
    assert (await fetched(door, file["url"], await token_of(door, "ada")))[0] == 404
    async with open_records(door.home) as records, door.client(token) as client, asyncio.timeout(30):
        while await records.store.unshown("page:home"):  # that it was seen is noted in no hurry
            await client.get("/health")
    assert (entry["kind"], entry["text"], entry["sender"]) == ("agent_told", "Lunch is at one.", "api:work")
    assert entry["links"] == [file]


async def test_whoever_watches_another_conversation_is_told_nothing(openings):
    door = await openings(ScriptedModel(line))
    async with door.socket() as there, door.socket() as here, door.socket() as beside:
        await beside.ask("hi", "m0", "page:garden")
        await there.ask("hi", "m1", "page:home")
        await here.ask("tell", "m2", "api:work")
        await there.until("response", content="Lunch is at one.")
        frames = await beside.ask("and?", "m3", "page:garden")
    assert {frame["session"] for frame in frames} == {"page:garden"}


async def test_it_is_found_and_counted_where_it_was_told(openings):
    door = await openings(ScriptedModel(line))
    token = await door.token()
    async with door.socket(token) as there, door.socket(token) as here:
        await there.ask("hi", "m1", "page:home")
        await here.ask("tell", "m2", "api:work")
        thread = (await there.until("response", content="Lunch is at one."))[-1]["thread"]
    async with door.client(token) as client:
        async with client.get("/api/search", params={"q": "lunch"}) as answer:
            found = {(each["thread"], each["who"]) for each in (await answer.json())["found"]}
        async with client.get(f"/api/sessions/{thread}") as answer:
            messages = (await answer.json())["session"]["messages"]
    assert (thread, "assistant") in found
    assert messages == 3
