"""However often the line breaks, a client that resumes from the last position it saw ends up with the log itself."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from everloop.app import open_desk
from everloop.gateway.server import serve
from everloop.ports import Feed
from everloop.ports.events import Event
from everloop.settings.shape import GatewaySection
from everloop.testing import Call, Calls, Pause, Say, ScriptedModel, Think, Wait

from ..conftest import Door, plain

TURN = [
    (Think(["I ", "look. "]), Say(["Let ", "me ", "see."]), Pause(0.01), Call("list_dir", {"path": "."})),
    Calls(Call("list_dir", {"path": "."}), Call("write_file", {"path": "a.txt", "content": "x"})),
    (Pause(0.01), Say(["It ", "is ", "all "]), Pause(0.01), Say(["done", "."])),
]


class Client:
    """What a client keeps over its connections: the entries and the drafts, by the rules of docs/websocket.md."""

    def __init__(self) -> None:
        self.entries: dict[int, dict] = {}
        self.thread: str | None = None
        self.seq = 0
        self.drafts: dict[str, str] = {}
        self.whole: dict[str, str] = {}
        self.responses: list[tuple[str | None, str]] = []

    def take(self, frame: dict) -> None:
        match frame["type"]:
            case "history_result":
                for entry in frame["entries"]:
                    assert self.entries.setdefault(entry["seq"], entry) == entry
                if not frame["entries"] or frame["more"]:
                    return
            case "stream_start":
                self.drafts[frame["msg"]] = ""
            case "stream_chunk":
                self.drafts[frame["msg"]] += frame["delta"]
            case "stream_end" if frame["kept"]:
                self.whole[frame["msg"]] = self.drafts.pop(frame["msg"])
            case "response":
                self.responses.append((frame["id"], frame["content"]))
        if frame["thread"] and not frame["type"].startswith("stream_"):
            self.thread = frame["thread"]

    def note(self) -> None:
        """Where to go on from: the last entry that is here, for what was only streamed is not kept."""
        self.seq = max(self.entries, default=0)
        self.drafts.clear()


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_breaks_the_client_has_the_log_once_and_the_answer(openings, seed):
    chosen = random.Random(seed)
    door = await openings(ScriptedModel(TURN))
    token = await door.token()
    client = Client()
    async with door.socket(token) as wire:
        await wire.send("message", id="m1", session="api:r", content="go")
        for _ in range(chosen.randrange(1, 6)):
            client.take(await wire.next())
    answered = False
    while not answered:
        client.note()
        async with door.socket(token) as wire:
            await wire.send("resume", session="api:r", thread=client.thread, after=client.seq)
            for _ in range(chosen.randrange(1, 25)):
                frame = await wire.next()
                client.take(frame)
                answered = bool(client.responses) or _is_over(client)
                if answered:
                    break
    async with door.socket(token) as wire:
        await wire.send("resume", session="api:r", after=max(client.entries, default=0))
        client.take(await wire.next())
        await wire.send("history", session="api:r", limit=500)
        log = (await wire.next())["entries"]
        again = await wire.ask("go", "m1", "api:r")
    assert [client.entries[seq] for seq in sorted(client.entries)] == log
    said = {f"{client.thread}:{entry['seq'] - 1}": entry["text"] for entry in log if entry["kind"] == "model_said"}
    assert {msg: said[msg] for msg in client.whole} == client.whole
    assert set(client.responses) <= {("m1", "It is all done.")}
    assert len(client.responses) <= 1
    assert [(frame["type"], frame.get("content")) for frame in again] == [
        ("ack", None),
        ("response", "It is all done."),
    ]


def _is_over(client: Client) -> bool:
    return any(entry["kind"] == "model_said" and not entry.get("calls") for entry in client.entries.values())


@pytest.mark.parametrize("seed", range(12))
async def test_a_client_that_goes_by_the_frames_positions_has_seen_every_answer(openings, seed):
    """It keeps what was streamed whole, and asks for what follows the position of the last frame."""
    chosen = random.Random(seed)
    door = await openings(ScriptedModel(TURN))
    token = await door.token()
    client, seq, over = Client(), 0, False
    async with door.socket(token) as wire:
        await wire.send("message", id="m1", session="api:r", content="go")
        for _ in range(chosen.randrange(1, 9)):
            frame = await wire.next()
            client.take(frame)
            seq = frame["seq"]
    while not over:
        client.drafts.clear()
        async with door.socket(token) as wire:
            await wire.send("resume", session="api:r", thread=client.thread, after=seq)
            for _ in range(chosen.randrange(1, 25)):
                frame = await wire.next()
                client.take(frame)
                seq = frame["seq"]
                over = bool(client.responses) or _is_over(client)
                if over:
                    break
    async with door.socket(token) as wire:
        await wire.send("history", session="api:r", limit=500)
        log = (await wire.next())["entries"]
    said = {entry["seq"] - 1: entry["text"] for entry in log if entry["kind"] == "model_said"}
    streamed = {int(msg.rpartition(":")[2]): text for msg, text in client.whole.items()}
    read = {entry["seq"] - 1: entry["text"] for entry in client.entries.values() if entry["kind"] == "model_said"}
    assert {**read, **streamed} == said


class LateFeed:
    """Sets `over` when whoever hears it is through with the end of a turn."""

    def __init__(self, feed: Feed, heard: asyncio.Event, over: asyncio.Event) -> None:
        self._feed, self._heard, self._over = feed, heard, over
        self._events: Sequence[Event] | None = ()

    async def next_ones(self) -> Sequence[Event] | None:
        if any(event.name == "thinking_finished" for event in self._events or ()):
            self._over.set()
        self._events = await self._feed.next_ones()
        await self._heard.wait()
        return self._events


class Delayed:
    """A house whose events are heard only when they are let through, and whose log ends its turn while it is read."""

    def __init__(self, agent, gate: asyncio.Event) -> None:
        self.agent = agent
        self.heard = asyncio.Event()
        self.heard.set()
        self.over = asyncio.Event()
        self.gate = gate
        self.store = self

    def __getattr__(self, name: str):
        found = getattr(self.agent, name, None)
        return getattr(self.agent.store, name) if found is None else found

    @contextmanager
    def events(self):
        with self.agent.events() as events:
            yield LateFeed(events, self.heard, self.over)

    async def history(self, thread: str, after: int, limit: int):
        found = await self.agent.store.history(thread, after, limit)
        if not self.gate.is_set():
            self.gate.set()
            await self.over.wait()
        return found


async def test_a_turn_that_ends_while_its_log_is_read_is_told_with_the_id_it_was_begun_with(tmp_path: Path):
    gate = asyncio.Event()
    script = ScriptedModel([(Say("half "), Wait(gate), Say("whole"))])
    async with open_desk(home=tmp_path / "home", provider=script) as agent:
        house = Delayed(agent, gate)
        async with serve(house, GatewaySection(port=0), tmp_path / "home") as gateway:
            door = Door(tmp_path / "home", gateway.url, gateway.link)
            async with door.socket() as wire:
                await wire.send("message", id="m1", session="api:r", content="go")
                await wire.until("stream_chunk")
            async with door.socket() as wire:
                await wire.send("resume", session="api:r")
                frames = await wire.until("response")
    client = Client()
    for frame in frames:
        client.take(frame)
    read = [entry["text"] for entry in client.entries.values() if entry["kind"] == "model_said"]
    assert [*client.whole.values(), *read] == ["half whole"]
    assert plain(frames)[-1] == ("response", "half whole")
    assert frames[-1]["id"] == "m1"


async def test_what_the_log_has_told_is_not_told_again_by_events_that_come_late(tmp_path: Path):
    gate = asyncio.Event()
    gate.set()
    script = ScriptedModel([Say(["one ", "two"]), Say("three")])
    async with open_desk(home=tmp_path / "home", provider=script) as agent:
        house = Delayed(agent, gate)
        house.heard.clear()
        async with serve(house, GatewaySection(port=0), tmp_path / "home") as gateway:
            door = Door(tmp_path / "home", gateway.url, gateway.link)
            async with door.socket() as wire:
                answered = await wire.ask("go", "m1", "api:r")
                await wire.send("resume", session="api:r")
                read = await wire.next()
                house.heard.set()
                after = await wire.ask("go on", "m2", "api:r")
    assert plain(answered) == [("ack", "m1"), ("response", "one two")]
    assert [entry["kind"] for entry in read["entries"]] == ["user_said", "model_called", "model_said"]
    assert [frame for frame in plain(after) if frame[0] != "event"] == [
        ("ack", "m2"),
        ("stream_start", "m2"),
        ("stream_chunk", "three"),
        ("stream_end", True),
        ("response", "three"),
    ]
    assert [frame["event"] for frame in after if frame["type"] == "event"] == [
        "thinking_started",
        "metrics",
        "thinking_finished",
    ]
