"""A house in which all that is the owner's has a canary of its kind in it, and people who try every door for it.

`ownersWORKcanary` is what lies in the workspace, `ownersSKILLcanary` a skill, and so on. A model that is asked to
`look` aims a few tools at what is the owner's, and every one that there is when it is to look everywhere.
"""

import asyncio
import io
import json
import re
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from everloop.app import serve
from everloop.app.access import new_token, token_scopes
from everloop.app.records import open_records
from everloop.core.people import OWNER, Role
from everloop.gateway.api.routes.table import TABLE
from everloop.ports import Deliver
from everloop.ports.channel import Incoming
from everloop.ports.directory import Person
from everloop.readings.commands import COMMANDS
from everloop.testing import Call, RecordingChannel, Say, ScriptedModel, Shown

CANARY = re.compile(r"owners([A-Z]+)canary")
WORD = "needle"  # by which all of it can be searched for
PROMPTED = ("AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md")
KINDS = {"PROMPT", "HEARTBEAT", "WORK", "MEMORY", "FACT", "SKILL", "INSTALLED", "FILE", "SAID", "SCHEDULE"}
HIDDEN = {"CREDENTIAL", "SETTING"}  # told to nobody at all
DONE = "done"


def canary(kind: str) -> str:
    return f"owners{kind}canary {WORD}"


def skill(name: str, kind: str) -> str:
    return f"---\nname: {name}\ndescription: {canary(kind)}\n---\n{canary(kind)}\n"


def furnished(home: Path) -> Path:
    """The home as the owner has it, before anybody speaks."""
    work = home / "workspace"
    texts = {
        **{work / name: canary("PROMPT") for name in PROMPTED},
        work / "HEARTBEAT.md": f"# {canary('HEARTBEAT')}",
        work / "notes.txt": canary("WORK"),
        work / "memory" / "MEMORY.md": f"- {canary('MEMORY')}",
        work / "skills" / "secret" / "SKILL.md": skill("secret", "SKILL"),
        home / "skills" / "house" / "SKILL.md": skill("house", "INSTALLED"),
        home / "backups" / "backup.txt": canary("WORK"),
        home / "logs" / "everloop.log": canary("WORK"),
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return home


SETTINGS = {
    "gateway": {"port": 0, "mcp_tools": ["*"], "connections_per_address": 500},
    "tools": {
        "policy": [{"tool": "*", "stance": "allow"}],
        "mcp_servers": {"shop": {"command": "/bin/true", "env": {"TOKEN": canary("SETTING")}, "enabled": False}},
    },
    "channels": {"webhook": {"url": "https://127.0.0.1:9/", "secret": canary("SETTING"), "enabled": False}},
    "personas": {"tutor": {"prompt": "You are a tutor.", "open_to": "user", "places": ["chat:fake:room"]}},
    "users": {"strangers": "guest"},
    "heartbeat": {"people": True},
}


class Prying:
    """A model that tries every tool when it is asked to look, tells what came of it, and keeps what it was shown."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.file = self.thread = ""  # of the owner's, once they are there
        self.shown: list[Shown] = []

    def __call__(self, shown: Shown) -> Any:
        self.shown.append(shown)
        if "look" not in shown.asked:
            return Say(f"{WORD} heard")
        if not shown.step:
            return [*self.tries()] if "everywhere" in shown.asked else [*self.glances()]
        return Say("\n".join(text for role, text in shown.said if role == "tool") or DONE)

    def glances(self) -> Iterator[Call]:
        yield Call("read_file", {"path": "notes.txt"})
        yield Call("read_file", {"path": f"{self._home}/workspace/notes.txt"})
        yield Call("grep", {"pattern": WORD, "path": "."})
        yield Call("search_history", {"query": WORD})
        yield Call("recall", {"query": WORD})

    def tries(self) -> Iterator[Call]:
        """Every tool, aimed at all that is the owner's."""
        home, up = self._home, "../../.."
        for path in (
            *("notes.txt", "AGENTS.md", "memory/MEMORY.md", "HEARTBEAT.md", f"{up}/workspace/notes.txt"),
            *(f"{home}/workspace/{name}" for name in (*PROMPTED, "notes.txt", "memory/MEMORY.md")),
            *(f"{home}/{name}" for name in ("config.json", "skills/house/SKILL.md", "logs/everloop.log")),
            *("skill:secret/SKILL.md", "skill:house/SKILL.md", "skills/secret/SKILL.md"),
        ):
            yield Call("read_file", {"path": path})
        for folder in (".", f"{home}/workspace", f"{up}/workspace", str(home), "skill:house"):
            yield Call("list_dir", {"path": folder})
            yield Call("find_files", {"pattern": "**/*", "path": folder})
            yield Call("grep", {"pattern": WORD, "path": folder})
        reading = f"cat notes.txt {up}/workspace/notes.txt; grep -rs {WORD} {home} . {up} | head -40; env; ls -a {home}"
        for command in (reading, f"cp -r {home}/workspace here; cat here/*"):
            yield Call("exec", {"command": command})
        yield Call("run_with_credential", {"command": "env", "credential": "owners-key"})
        yield Call("fetch_with_credential", {"url": "http://127.0.0.1:9/", "credential": "owners-key"})
        yield Call("run_python", {"code": f"import os\nprint(os.popen('cat {home}/workspace/*.*').read())"})
        patch = f"*** Begin Patch\n*** Update File: {home}/workspace/notes.txt\n@@\n-x\n+y\n*** End Patch"
        yield Call("apply_patch", {"patch": patch})
        yield Call("edit_file", {"path": f"{home}/workspace/notes.txt", "old_text": "no such", "new_text": "x"})
        yield Call("write_file", {"path": f"{home}/workspace/notes.txt", "content": "gone"})
        yield Call("create_document", {"path": "made.pdf", "content": "x"})
        yield Call("load_file", {"file": self.file})
        yield Call("send_file", {"path": f"{home}/workspace/notes.txt"})
        yield Call("message", {"text": "hi", "session": "api:owners", "files": [f"{home}/workspace/notes.txt"]})
        for name in ("search_history", "recall", "forget", "find_tools", "web_search"):
            yield Call(name, {"query": f"{WORD} canary"})
        yield Call("read_history", {"first": 1, "count": 20})
        yield Call("remember", {"text": "a thing"})
        yield Call("web_fetch", {"url": f"file://{home}/workspace/notes.txt"})
        for name in ("exec_output", "exec_stop"):
            yield Call(name, {"id": "1"})
        yield Call("exec_input", {"id": "1", "text": "x"})
        yield Call("call_tool", {"name": "read_file", "arguments": {"path": f"{home}/workspace/notes.txt"}})
        yield Call("react", {"emoji": "👍"})
        yield Call("edit_message", {"text": "x"})
        yield Call("delete_message", {})
        yield Call("spawn", {"task": "look", "wait": True})

    def prompts(self, since: int) -> list[str]:
        """All that it was shown, from one moment on."""
        found = self.shown[since:]
        return [f"{each.system}\n{each.tail}\n{each.messages}\n{each.tools}" for each in found]


class Room(RecordingChannel):
    """A channel of which a test waits for the moment when it listens."""

    def __init__(self) -> None:
        super().__init__("fake")
        self.listens = asyncio.Event()

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.listens.set()


class OwnersHouse:
    def __init__(self, home: Path, url: str, model: Prying, room: Room, tokens: dict[Role, str]) -> None:
        self.home, self.url, self.model, self.room, self._tokens = home, url, model, room, tokens
        self.ids: dict[str, str] = {}  # of what is the owner's
        self.told: list[tuple[str, str]] = []  # at which door, and what
        self._said = 0
        self._wire: Any = None

    def client(self, role: Role) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(self.url, headers={"Authorization": f"Bearer {self._tokens[role]}"})

    async def live(self) -> None:
        """The owner speaks, keeps a file, a fact, a credential and a schedule."""
        async with self.client(Role.OWNER) as client, client.ws_connect("/ws", max_msg_size=0) as self._wire:
            kept = await self._asked(client, "POST", "/api/files?name=own.txt", data=canary("FILE").encode())
            self.ids["ref"] = self.model.file = json.loads(kept)["file"]
            await self._say(f"remember {canary('SAID')}", "api:owners")
            rows = json.loads(await self._asked(client, "GET", "/api/sessions"))["sessions"]
            self.ids["id"] = rows[0]["id"]
            await self._asked(client, "POST", "/mcp", json=called("remember", {"text": canary("FACT")}))
            plan = {"when": "every 9h", "text": canary("SCHEDULE"), "session": "api:owners", "name": "owners-plan"}
            await self._asked(client, "POST", "/api/schedules", json=plan)
            kept_credential = {"value": canary("CREDENTIAL"), "hosts": ["http://127.0.0.1:9"], "commands": True}
            await self._asked(client, "PUT", "/api/me/credentials/owners-key", json=kept_credential)

    async def try_every_door(self, role: Role) -> tuple[set[str], set[str]]:
        """Of which kinds there is something in what a model was shown, and in what somebody was told."""
        began, self.told = len(self.model.shown), []
        name = role.name.lower()
        async with self.client(role) as client, client.ws_connect("/ws", max_msg_size=0) as self._wire:
            for door in (self._by_letters, self._by_mcp, self._by_what_runs_later, self._by_commands, self._by_api):
                await door(client, name)
        await self._by_channel(name)
        asked = [each.asked for each in self.model.shown[began:]]
        assert sum("look" in each for each in asked) > 20
        assert any("This is your heartbeat" in each for each in asked) is (role > Role.GUEST)
        shown = {kind for each in self.model.prompts(began) for kind in CANARY.findall(each)}
        return shown, {f"{kind} at {where}" for where, text in self.told for kind in CANARY.findall(text)}

    async def _by_letters(self, client: aiohttp.ClientSession, name: str) -> None:
        chat = {"model": "everloop", "messages": [{"role": "user", "content": "look"}]}
        platform = {"platform": "discord", "platform_user_id": f"s{name}", "content": "look", "id": f"{name}1"}
        await self._say("look everywhere", f"api:{name}")
        await self._say("look", f"page:{name}")
        await self._asked(client, "POST", "/v1/chat/completions", json=chat)
        await self._asked(client, "POST", "/v1/responses", json={"model": "everloop", "input": "look"})
        await self._asked(client, "POST", "/message", json=platform)
        await self._asked(client, "POST", "/message/stream", json={**platform, "id": f"{name}2"})
        for session in ("api:owners", "cli:direct"):  # the owner's, by name
            headers = {"X-Everloop-Session": session}
            await self._asked(client, "POST", "/v1/chat/completions", json=chat, headers=headers)
            await self._say("look", session)

    async def _by_mcp(self, client: aiohttp.ClientSession, name: str) -> None:
        """Turns, and each tool that the owner exposes, without a turn."""
        await self._asked(client, "POST", "/mcp", json=called("ask", {"message": "look"}))
        await self._asked(client, "POST", "/mcp", json=called("ask", {"message": "look", "conversation": "owners"}))
        for each in self.model.tries():
            await self._asked(client, "POST", "/mcp", json=called(each.name, each.args))

    async def _by_what_runs_later(self, client: aiohttp.ClientSession, name: str) -> None:
        """A schedule that is asked for, a heartbeat, work in the background: nobody waits for these."""
        plan = {"when": "every 9h", "session": f"api:{name}"}
        for does, text in (("turn", "look"), ("command", f"cat {self.home}/workspace/*; cat notes.txt")):
            made = await self._asked(client, "POST", "/api/schedules", json={**plan, "text": text, "does": does})
            if id := re.search(r'"id":\s*"([^"]+)"', made):
                await self._turn_after(client, f"/api/schedules/{id[1]}/run", begins=does == "turn")
        heart = "/api/workspace/file?path=HEARTBEAT.md&replace=true"
        await self._asked(client, "PUT", heart, data=b"- [ ] look\ncheck: cat ../../../workspace/notes.txt")
        await self._turn_after(client, "/api/heartbeat/run", begins=True)
        await self._say("/bg look", f"api:{name}")

    async def _turn_after(self, client: aiohttp.ClientSession, path: str, *, begins: bool) -> None:
        """What is asked for here begins a turn by itself, for whoever may."""
        before = len(self.model.shown)
        async with client.post(path) as answer:
            self.told.append((path, await answer.text()))
        async with asyncio.timeout(60):
            while begins and answer.status < 300 and not self._is_told_since(before):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    def _is_told_since(self, before: int) -> bool:
        return any("look" in each.asked and each.step for each in self.model.shown[before:])

    async def _by_commands(self, client: aiohttp.ClientSession, name: str) -> None:
        session = f"api:{name}"
        for command, what in COMMANDS.items():
            for words in ("", *what.words, *(f"{word} {WORD}" for word in what.words), self.ids["id"]):
                await self._say(f"{command} {words}".strip(), session)
        for words in ("/session resume", "/session fork", "/resume", "/tree"):
            await self._say(f"{words} {self.ids['id']}", session)
        for words in ("/skill show house", "/skill show secret", "/persona tutor", "look", "/cron log owners-plan"):
            await self._say(words, f"{session}-2")

    async def _by_api(self, client: aiohttp.ClientSession, name: str) -> None:
        """Every route that only tells, with the ids of what is the owner's, and what somebody takes along."""
        for route in TABLE:
            if route.method == "GET" and "/models" not in route.path and "/hosts" not in route.path:
                for id in (self.ids["id"], OWNER, "house") if "{" in route.path else ("",):
                    path = route.path.format(id=id, ref=self.ids["ref"], name=id)
                    given = {"q": WORD, "search": WORD, "path": "notes.txt", "document": "MEMORY.md", "version": 1}
                    query = {each: given[each] for each in route.query.__struct_fields__ if each in given}
                    if path == "/api/workspace":
                        query.pop("path", None)
                    await self._asked(client, "GET", path, params=query)
        async with client.get(f"/api/users/web:{name}/export") as answer:
            self.told.append(("export", unpacked(await answer.read())))

    async def _by_channel(self, name: str) -> None:
        """In private, and in a group with a persona."""
        assert self.room.deliver
        for chat, direct in ((name, True), ("room", False)):
            self._said += 1
            sent = len(self.room.sends)
            await self.room.deliver(
                Incoming(event=f"{self._said}", chat=chat, account=name, text="look", direct=direct, mentioned=True)
            )
            await self.room.sent(sent + 1)
        self.told += [("channel", each.text) for each in self.room.sends]

    async def _say(self, words: str, session: str) -> None:
        self._said += 1
        id, frame = f"{self._said}", dict[str, Any]()
        await self._wire.send_json({"type": "message", "id": id, "session": session, "content": words})
        while frame.get("id") != id or frame.get("type") not in ("response", "error"):
            frame = await self._wire.receive_json(timeout=60)
            self.told.append((f"ws {words}", json.dumps(frame)))

    async def _asked(self, client: aiohttp.ClientSession, method: str, path: str, **given: Any) -> str:
        async with client.request(method, path, **given) as answer:
            told = (await answer.read()).decode("utf-8", "replace")
            self.told.append((f"{method} {path.partition('?')[0]}", f"{answer.headers} {told}"))
            return told


def called(tool: str, arguments: Any) -> dict[str, Any]:
    """As an MCP client calls a tool."""
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def unpacked(data: bytes) -> str:
    if not data.startswith(b"PK"):
        return data.decode("utf-8", "replace")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return "\n".join(archive.read(name).decode("utf-8", "replace") for name in archive.namelist())


@asynccontextmanager
async def living(folder: Path) -> AsyncIterator[OwnersHouse]:
    home = furnished(folder / "home")
    model, room = Prying(home), Room()
    async with serve(home, SETTINGS, provider=ScriptedModel(model), channels=[room]) as opened:
        tokens = {}
        async with open_records(home) as records:
            for role in Role.GUEST, Role.USER, Role.ADMIN:
                name = role.name.lower()
                accounts = (f"web:{name}", f"fake:{name}")
                await records.store.introduce(Person(f"web:{name}", name, role, accounts=accounts))
                tokens[role] = await new_token(
                    records.store, f"web:{name}", "theirs", token_scopes(), platforms=["discord"]
                )
            tokens[Role.OWNER] = await new_token(records.store, OWNER, "own", token_scopes(), platforms=["discord"])
        house = OwnersHouse(home, opened.url, model, room, tokens)
        await room.listens.wait()
        await house.live()
        yield house
