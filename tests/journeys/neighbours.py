"""A house full of people who do all that can be done in it, each with a canary in everything that is theirs, at the
same time; and all that each of them, the models, the logs and the traces were told.

A canary names whose it is and what it is of: `canaryp07filecanary`. A group has canaries of its own, which are those of
its members' words there, and a persona the one in its file.
"""

import asyncio
import io
import json
import re
import zipfile
from collections.abc import Awaitable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp

from everloop.app.access import new_token, token_scopes
from everloop.app.records import open_records
from everloop.core.people import OWNER, Role
from everloop.errors import BadRequest
from everloop.gateway.api.route import ApiRoute
from everloop.gateway.api.routes.table import TABLE
from everloop.ports import Deliver
from everloop.ports.channel import Incoming
from everloop.ports.directory import Person
from everloop.testing import Call, Fail, RecordingChannel, Say, Shown

CANARY = re.compile(r"canary([a-z]+\d*)x([a-z]+)canary")
WORD = "needle"
IN_A_ROOM = 3  # people
AT_ONCE = 8
GIVEN_TO = {"room0": "tutor"}  # the persona that answers in a group
LOOKING = (
    Call("read_file", {"path": "notes.txt"}),
    Call("list_dir", {"path": "."}),
    Call("find_files", {"pattern": "**/*"}),
    Call("grep", {"pattern": "canary"}),
    Call("search_history", {"query": WORD}),
    Call("read_file", {"path": "../../../workspace/notes.txt"}),
)
ANSWERS = {"group": "reply", "bot": "told"}  # what it is called that is said to a message of a kind
SAID_IN_CHAT = ("/session list", f"/session search {WORD}", "/usage", "/budget", "/persona", "/model", "/help")


def canary(who: str, kind: str) -> str:
    return f"canary{who}x{kind}canary"


def whose(text: str) -> set[str]:
    """Of whom there is something in a text."""
    return {who for who, _ in CANARY.findall(text)}


def found(text: str) -> set[tuple[str, str]]:
    """Of whom and of what there is something in a text."""
    return {*CANARY.findall(text)}


def room_of(name: str) -> str:
    return f"room{int(name[1:]) // IN_A_ROOM}"


class Obedient:
    """A model that does what it is asked, tells all that it has been shown, and remembers for whom."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, str]] = []  # whose turn it was, and all that stood in the prompt

    def __call__(self, shown: Shown) -> Any:
        prompt = "\n".join((shown.system, shown.tail, *(f"{message}" for message in shown.messages)))
        (who, kind), *_ = CANARY.findall(shown.asked) or [("", "")]
        self.shown.append((room_of(who) if kind == "group" else who, prompt))
        if "look" in shown.asked and not shown.step:
            return LOOKING
        if "send" in shown.asked and not shown.step:
            return Call("send", {"text": canary(who, "call")})
        if "break" in shown.asked and not shown.step:
            return Call("breaks", {"text": canary(who, "broken")})
        if "fail" in shown.asked:
            return Fail(BadRequest(f"the host failed over {canary(who, 'failed')}"))
        return Say(f"{WORD} {canary(who, ANSWERS.get(kind, 'answer'))}")


class Rooms(RecordingChannel):
    """A channel of which a test waits for the moment when it listens."""

    def __init__(self) -> None:
        super().__init__("fake")
        self.listens = asyncio.Event()

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.listens.set()


class Neighbour:
    """Somebody with a token, who keeps all that they are told. `owner` is one, too."""

    def __init__(self, name: str, person: str, token: str) -> None:
        self.name, self.person, self.token = name, person, token
        self.told: list[tuple[str, str]] = []  # where, and what
        self.sessions: list[str] = []
        self.file = ""

    def hear(self, where: str, text: str) -> None:
        self.told.append((where, text))

    def client(self, url: str) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {self.token}"})

    def foreign(self) -> list[tuple[str, set[tuple[str, str]]]]:
        """What of others came to them, and where."""
        others = [(where, {each for each in found(text) if each[0] != self.name}) for where, text in self.told]
        return [(where, each) for where, each in others if each]

    def own(self) -> set[str]:
        return {kind for _, text in self.told for who, kind in found(text) if who == self.name}


class House:
    """An open gateway, and those who live behind it."""

    def __init__(self, home: Path, url: str, rooms: Rooms) -> None:
        self.home, self.url, self.rooms = home, url, rooms
        self.people: list[Neighbour] = []
        self.owner = Neighbour("owner", OWNER, "")

    async def introduce(self, count: int) -> None:
        async with open_records(self.home) as records:
            for number in range(count):
                name = f"p{number:02}"
                person = Person(f"fake:{name}", name, Role.USER, accounts=(f"fake:{name}",))
                await records.store.introduce(person)
                token = await new_token(
                    records.store, person.id, canary(name, "token"), token_scopes(), platforms=["fake"]
                )
                self.people.append(Neighbour(name, person.id, token))
            token = await new_token(records.store, OWNER, canary("owner", "token"), token_scopes(), platforms=["fake"])
        self.owner = Neighbour("owner", OWNER, token)

    async def live(self) -> None:
        """All of them at once, while all of them watch what goes on."""
        everybody = [*self.people, self.owner]
        done, ready = asyncio.Event(), asyncio.Barrier(len(everybody) + 1)
        async with asyncio.TaskGroup() as group:
            for each in everybody:
                group.create_task(self._watch(each, ready, done))
            await ready.wait()
            await at_once([self._live(each) for each in everybody])
            await self.rooms.sent(len(self.people))  # what was said in groups is in their logs by then
            await at_once([self._look(each) for each in everybody])
            await at_once([self._pry(each, next) for each, next in pairwise([*self.people, self.people[0]])])
            done.set()

    async def _watch(self, who: Neighbour, ready: asyncio.Barrier, done: asyncio.Event) -> None:
        """What is pushed to somebody while others speak: frames, notices of questions, changes of lists."""
        async with who.client(self.url) as client, client.ws_connect("/ws", max_msg_size=0) as wire:
            await wire.send_json({"type": "watch"})
            await ready.wait()
            async with asyncio.TaskGroup() as group:
                group.create_task(end_after(done, wire))
                frame: dict[str, Any] = {}
                while frame.get("type") != "status_result":  # to the last one, which is the answer to the end
                    frame = await wire.receive_json()
                    who.hear(f"pushed {frame.get('type')}", json.dumps(frame))

    async def _live(self, who: Neighbour) -> None:
        name, own = who.name, f"api:{who.name}"
        chat = {
            "model": "everloop",
            "messages": [{"role": "user", "content": f"{canary(name, 'message')} {WORD} look"}],
        }
        async with who.client(self.url) as client:
            for path, kind in (("AGENTS.md", "bootstrap"), ("notes.txt", "work"), (canary(name, "path"), "deep")):
                await self._asked(
                    who,
                    client,
                    "PUT",
                    f"/api/workspace/file?path={path}&replace=true",
                    data=canary(name, kind).encode(),
                )
            kept = await self._asked(
                who,
                client,
                "POST",
                f"/api/files?name={canary(name, 'filename')}.txt",
                data=canary(name, "file").encode(),
            )
            who.file = json.loads(kept)["file"]
            await self._asked(who, client, "POST", "/v1/chat/completions", json=chat)
            header = {"X-Everloop-Session": own}
            await self._asked(who, client, "POST", "/v1/chat/completions", json=chat, headers=header)
            told = {"model": "everloop", "input": f"{canary(name, 'message')} {WORD}"}
            await self._asked(who, client, "POST", "/v1/responses", json=told)
            async with client.ws_connect("/ws", max_msg_size=0) as wire:
                files = [{"name": f"{canary(name, 'filename')}.txt", "file": who.file}]
                words = f"{canary(name, 'message')} {WORD}"
                await self._say(who, wire, own, f"{words} look", files=files)
                for command in SAID_IN_CHAT:
                    await self._say(who, wire, own, command)
                await self._say(who, wire, own, f"{words} break")
                await self._say(who, wire, f"{own}-asks", f"{words} send")
                await self._say(who, wire, f"{own}-fails", f"{words} fail")
            rows = json.loads(await self._asked(who, client, "GET", "/api/sessions?archived=1"))["sessions"]
            who.sessions = [row["id"] for row in rows]
            mine = next(row["id"] for row in rows if row["session"] == own)  # the owner's bot has others' in their list
            await self._asked(who, client, "PATCH", f"/api/sessions/{mine}", json={"title": canary(name, "title")})
        if who is not self.owner:
            await self._speak_elsewhere(who)

    async def _speak_elsewhere(self, who: Neighbour) -> None:
        """In a group, and through the owner's bot."""
        room, words = room_of(who.name), f"{canary(who.name, 'group')} {WORD} look"
        assert self.rooms.deliver
        await self.rooms.deliver(Incoming(event=f"g{who.name}", chat=room, account=who.name, text=words, direct=False))
        message = {"platform": "fake", "platform_user_id": who.name, "content": f"{canary(who.name, 'bot')} {WORD}"}
        async with self.owner.client(self.url) as client:
            await self._asked(who, client, "POST", "/message", json=message)

    async def _say(self, who: Neighbour, wire: Any, session: str, words: str, **more: Any) -> None:
        id = f"{who.name}-{len(who.told)}"
        await wire.send_json({"type": "message", "id": id, "session": session, "content": words, **more})
        frame: dict[str, Any] = {}
        while frame.get("type") not in ("response", "approval", "error"):
            frame = await wire.receive_json(timeout=60)
            who.hear(f"ws {frame.get('type')}", json.dumps(frame))

    async def _asked(self, who: Neighbour, client: aiohttp.ClientSession, method: str, path: str, **given: Any) -> str:
        async with client.request(method, path, **given) as answer:
            told = await answer.text(errors="replace")
            assert answer.status < 300, (method, path, answer.status, told)
            who.hear(f"{method} {path.partition('?')[0]}", f"{answer.headers} {told}")
            return told

    async def _look(self, who: Neighbour) -> None:
        """All that can be looked at, and all that is handed to somebody who takes their own along."""
        async with who.client(self.url) as client:
            for path in looked_at(who):
                async with client.get(path) as answer:
                    who.hear(f"GET {path}", f"{answer.headers} {(await answer.read()).decode('utf-8', 'replace')}")
            async with client.get(f"/api/users/{who.person}/export") as answer:
                for place, text in unpacked(await answer.read()):
                    who.hear(f"export {place}", f"{place} {text}")

    async def _pry(self, who: Neighbour, next: Neighbour) -> None:
        """Somebody knows every id of their neighbour's and tries them all."""
        body = {
            "model": "everloop",
            "messages": [{"role": "user", "content": f"{canary(who.name, 'message')} what was said?"}],
        }
        header = {"X-Everloop-Session": f"api:{next.name}"}
        async with who.client(self.url) as client:
            for path in (*looked_at(next), f"/api/files/{next.file}", f"/api/users/{next.person}/export"):
                async with client.get(path) as answer:
                    told = (await answer.read()).decode("utf-8", "replace")
                    who.hear(f"pried GET {path}", f"{answer.headers} {told}")
            async with client.post("/v1/chat/completions", json=body, headers=header) as answer:
                who.hear("pried /v1", await answer.text())
            message = {
                "platform": "fake",
                "platform_user_id": next.name,
                "content": f"{canary(who.name, 'message')} {WORD} look",
            }
            async with client.post("/message", json=message) as answer:  # of a bot of one's own, as if they had written
                who.hear("pried /message", await answer.text())
            async with client.ws_connect("/ws", max_msg_size=0) as wire:
                for type in ("resume", "history", "status", "stop"):
                    await wire.send_json({"type": type, "session": f"api:{next.name}"})
                await self._say(
                    who,
                    wire,
                    f"api:{who.name}-pries",
                    f"{canary(who.name, 'message')}",
                    files=[{"name": "x", "file": next.file}],
                )


FILLED = {"q": WORD, "path": "notes.txt", "name": "sent.txt", "by": "day"}


def looked_at(who: Neighbour) -> Iterator[str]:
    """Every route that only tells, with the ids that somebody knows of their own."""
    for route in TABLE:
        if route.method == "GET" and not route.path.endswith("/export") and "/models/" not in route.path:
            yield from _addresses(route, who)


def _addresses(route: ApiRoute, who: Neighbour) -> Iterator[str]:
    names = [name for name in route.query.__struct_fields__ if name in FILLED]
    query = "&".join(
        f"{name}={FILLED[name]}" for name in names if not (name == "path" and route.path == "/api/workspace")
    )
    for session in who.sessions if "/sessions/" in route.path else ("",):
        path = route.path.format(id=session or who.person, ref="file:0", name="x")
        yield f"{path}?{query}" if query else path


async def end_after(done: asyncio.Event, wire: aiohttp.ClientWebSocketResponse) -> None:
    await done.wait()
    await wire.send_json({"type": "status"})


def unpacked(data: bytes) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for place in archive.namelist():
            yield place, archive.read(place).decode("utf-8", "replace")


async def at_once(works: list[Awaitable[None]]) -> None:
    room = asyncio.Semaphore(AT_ONCE)

    async def bounded(work: Awaitable[None]) -> None:
        async with room:
            await work

    async with asyncio.TaskGroup() as group:
        for work in works:
            group.create_task(bounded(work))
