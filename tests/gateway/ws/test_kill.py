"""The gateway is killed under load, again and again, and what every client shows in the end is the log."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from everloop.testing import Call, Pause, Say, Shown
from everloop.testing.model_server import ModelServer
from tests.cli.person import Person
from tests.cli.test_gateway_command import new_token, start, until, wire_to
from tests.ports import free_port

CLIENTS = 16
MESSAGES = 5
KILLS = 4


def lines(shown: Shown) -> Any:
    """Each answer comes in pieces, and every second one after a look around."""
    id = shown.asked.split()[0]
    if shown.step == 0 and int(id.partition("-")[2]) % 2:
        return [Say(f"looking for {id} "), Call("list_dir", {"path": "."})]
    pieces = [act for n in range(6) for act in (Say(f"{id}.{n} "), Pause(0.005))]
    return [*pieces, Say("done")]


def answer_to(id: str) -> str:
    return "".join(f"{id}.{n} " for n in range(6)) + "done"


class Watch:
    """What all clients together have seen, for whoever wants to kill at a bad moment."""

    def __init__(self) -> None:
        self.frames = 0
        self.open: set[str] = set()  # acknowledged and not answered
        self.moved = asyncio.Condition()

    async def note(self, frame: dict[str, Any]) -> None:
        async with self.moved:
            self.frames += 1
            if frame["type"] == "ack":
                self.open.add(frame["id"])
            if frame["type"] == "response":
                self.open.discard(frame["id"])
            self.moved.notify_all()

    async def hit(self, unfinished: set[str], frames: int) -> set[str]:
        """Wait until these are answered, so that no turn is hit three times, and for so many frames more."""
        async with self.moved:
            await self.moved.wait_for(lambda: not unfinished & self.open)
            target = self.frames + frames
            await self.moved.wait_for(lambda: self.frames >= target and len(self.open) > 1)
            return set(self.open)


class Client:
    """Keeps to the rules of docs/websocket.md: resumes where it was, and says again what has no response."""

    def __init__(self, name: int, url: str, token: str, watch: Watch) -> None:
        self.session = f"api:k{name}"
        self.ids = [f"{name}-{n}" for n in range(MESSAGES)]
        self.responses: dict[str, str] = {}
        self.answers: dict[int, str] = {}  # by position, as shown: streamed whole, or read from the log
        self.connections = 0
        self._url, self._token, self._watch = url, token, watch
        self._thread: str | None = None
        self._seq = 0
        self._drafts: dict[str, str] = {}

    @property
    def _next(self) -> str | None:
        return next((id for id in self.ids if id not in self.responses), None)

    async def talk(self) -> None:
        while self._next is not None:
            try:
                async with wire_to(self._url, self._token) as wire:
                    self.connections += 1
                    await self._converse(wire)
            except (aiohttp.ClientError, ConnectionError, TypeError):  # TypeError: a close instead of a text
                await asyncio.sleep(0.05)  # it is being started again

    async def _converse(self, wire: aiohttp.ClientWebSocketResponse) -> None:
        self._drafts.clear()
        self.answers = {seq: text for seq, text in self.answers.items() if seq <= self._seq}  # the rest comes again
        await wire.send_json({"type": "resume", "session": self.session, "thread": self._thread, "after": self._seq})
        while (id := self._next) is not None:
            said = {"type": "message", "id": id, "session": self.session, "content": f"{id} please"}
            await wire.send_json(said)
            while self._next == id:
                frame = await wire.receive_json(timeout=60)
                self._take(frame)
                await self._watch.note(frame)

    def _take(self, frame: dict[str, Any]) -> None:
        if frame["thread"]:
            self._thread, self._seq = frame["thread"], frame["seq"]
        match frame["type"]:
            case "history_result":
                for entry in frame["entries"]:
                    if entry["kind"] == "model_said":
                        self._show(entry["seq"], entry["text"])
            case "stream_start":
                self._drafts[frame["msg"]] = ""
            case "stream_chunk":
                self._drafts[frame["msg"]] += frame["delta"]
            case "stream_end" if frame["kept"]:
                called = int(frame["msg"].rpartition(":")[2])
                self._show(called + 1, self._drafts.pop(frame["msg"]))
            case "response":
                assert self.responses.setdefault(frame["id"], frame["content"]) == frame["content"]
            case "error":
                raise AssertionError(frame)

    def _show(self, seq: int, text: str) -> None:
        assert self.answers.setdefault(seq, text) == text


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer(lines) as server:
        yield server


@pytest.fixture
async def person(tmp_path: Path, model: ModelServer) -> AsyncIterator[Person]:
    person = Person(tmp_path, model)
    yield person
    await person.leave()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2])
async def test_clients_that_stream_while_it_is_killed_end_up_with_the_log(person: Person, seed: int):
    chosen, port, watch = random.Random(seed), free_port(), Watch()
    gateway = await start(person, port)
    token = await new_token(person, "clients")
    clients = [Client(n, gateway.url, token, watch) for n in range(CLIENTS)]
    unfinished: set[str] = set()
    cut = 0
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.talk())
        for _ in range(KILLS):
            unfinished = await watch.hit(unfinished, chosen.randrange(20, 200))
            cut += len(unfinished)
            await gateway.kill()
            gateway = await start(person, port)
    logs = {}
    async with wire_to(gateway.url, token) as wire:
        for client in clients:
            await wire.send_json({"type": "history", "session": client.session, "limit": 500})
            logs[client.session] = (await until(wire, "history_result"))[-1]["entries"]
    await gateway.stop()
    assert cut >= KILLS
    assert sum(client.connections for client in clients) > CLIENTS
    for client in clients:
        log = logs[client.session]
        assert client.responses == {id: answer_to(id) for id in client.ids}
        assert [entry["id"] for entry in log if entry["kind"] == "user_said"] == client.ids
        said = {entry["seq"]: entry["text"] for entry in log if entry["kind"] == "model_said"}
        assert client.answers == said
        assert Counter(said.values()) == Counter(
            [*(answer_to(id) for id in client.ids), *(f"looking for {id} " for id in client.ids[1::2])]
        )
