"""Over a WebSocket: what goes to the background is no longer streamed, each message is answered once, and what came of
it is told to whoever watches; taken back, it is streamed again."""

import asyncio
from typing import Any

from everloop.testing import Say, ScriptedModel, Shown, Wait

WORDS = ("I dig", " and dig", " and find gold")


class Digging:
    def __init__(self) -> None:
        self.gates = [asyncio.Event(), asyncio.Event()]

    def __call__(self, shown: Shown) -> Any:
        if shown.asked != "dig":
            return Say(f"re {shown.asked}")
        first, second, last = WORDS
        return Say([first]), Wait(self.gates[0]), Say([second]), Wait(self.gates[1]), Say([last])


async def test_it_is_answered_once_and_told_when_it_is_done(openings):
    digging = Digging()
    door = await openings(ScriptedModel(digging))
    async with door.socket() as client:
        await client.send("message", id="m1", session="page:home", content="dig")
        await client.until("stream_chunk")
        sent = await client.ask("/bg", "m2", "page:home")
        moved = await client.until("response", id="m1")
        digging.gates[0].set()
        meanwhile = await client.ask("hey", "m3", "page:home")
        digging.gates[1].set()
        told = await client.until("response", id=None)
    assert "as task 1;" in sent[-1]["content"]
    (event,) = [each for each in moved if each.get("event") == "turn_moved"]
    assert (event["data"]["number"], event["data"]["front"] == sent[-1]["thread"]) == (1, True)
    assert (moved[-1]["content"], moved[-1]["task"]) == ("This goes on in the background as task 1.", 1)
    later = [*meanwhile, *told]
    assert {each["thread"] for each in later} == {sent[-1]["thread"]}  # nothing of what runs behind it
    assert told[-1]["content"] == "Task 1 is done:\n\nI dig and dig and find gold"


async def test_taken_back_it_is_streamed_again(openings):
    digging = Digging()
    door = await openings(ScriptedModel(digging))
    async with door.socket() as client:
        await client.send("message", id="m1", session="page:home", content="dig")
        thread = (await client.until("stream_chunk"))[-1]["thread"]
        await client.ask("/bg", "m2", "page:home")
        back = await client.ask("/fg 1", "m3", "page:home")
        await client.send("resume", session="page:home", thread=thread, after=0)
        frames = await client.until("stream_chunk")
        for gate in digging.gates:
            gate.set()
        end = await client.until("response", content="I dig and dig and find gold")
    assert back[-1]["thread"] == frames[-1]["thread"] == end[-1]["thread"] == thread
    assert frames[-1]["delta"] == "I dig"  # all that was said so far
