"""Two people replay each other's every request on every door, with the other's ids: nothing foreign comes back."""

import itertools
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from everloop.app import serve
from everloop.app.records import open_records
from everloop.core.people import Role
from everloop.gateway import page
from everloop.gateway.api.route import ApiRoute
from everloop.gateway.api.routes.table import TABLE
from everloop.gateway.ws.frames import NEEDS
from everloop.testing import Call, Say, ScriptedModel, Shown
from everloop.tools.decorator import tool

from .asked import PEOPLE, introduce, routes

pytestmark = pytest.mark.asyncio(loop_scope="module")
CANARY = re.compile(r"CANARY-\w+-")  # in all that one of them says, keeps and is asked about
WORD = "needle"  # by which all of it can be searched for
# What somebody who may answer is told: the call that waits, and that they have decided on it.
PEOPLES = ("/api/users", "/api/pairings")  # administrators see to people: see test_membership.py
FOR_APPROVERS = {("GET", "/api/approvals"), ("GET", "/api/grants")}


class Speech:
    """A model each of whose answers is another, so that no two people are told the same by chance."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, shown: Shown) -> Any:
        theirs = f"{next(iter(CANARY.findall(shown.asked)), '')} {WORD}"
        if "send it" in shown.asked and not shown.step:
            return Call("send", {"text": theirs})
        if "write it" in shown.asked and not shown.step:
            return Call("write_file", {"path": "made.txt", "content": theirs})
        self.count += 1
        return Say(f"{WORD} ANSWER-{self.count:04}-")


class Recorded:
    """Every id that somebody came to know, by what it is, and the answers that they were given."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.ids: dict[str, list[str]] = {}
        self.requests: list[tuple[str, str, dict[str, Any]]] = []
        self.answers: set[str] = set()

    def add(self, kind: str, *ids: str) -> None:
        self.ids.setdefault(kind, []).extend(ids)

    def hear(self, text: str) -> None:
        self.answers.update(re.findall(r"ANSWER-\d{4}-", text))

    def finds(self, text: str) -> list[str]:
        return [each for each in (self.said, *sorted(self.answers)) if each in text]


class Door:
    def __init__(self, home: Path, url: str, tokens: dict[Role, str]) -> None:
        self.home, self.url, self.tokens = home, url, tokens
        self.recorded: dict[Role, Recorded] = {}

    def client(self, role: Role) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(self.url, headers={"Authorization": f"Bearer {self.tokens[role]}"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Door]:
    @tool(permission=Role.USER, guarded=True)
    async def send(text: str) -> str:
        """Send something."""
        return "sent"

    home = tmp_path_factory.mktemp("each other") / "home"
    model = ScriptedModel(Speech())
    async with serve(home, {"gateway": {"port": 0}}, provider=model, tools=[send]) as opened:
        async with open_records(home) as records:
            tokens = await introduce(records.store)
        found = Door(home, opened.url, tokens)
        for role in (Role.USER, Role.OWNER):
            found.recorded[role] = await live(found, role)
        yield found


def called(tool: str, **arguments: str) -> dict[str, Any]:
    """As an MCP client calls a tool."""
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


async def live(door: Door, role: Role) -> Recorded:
    """Somebody does all that can be done, and what they sent, were told and can name is kept."""
    kept, own = Recorded(f"CANARY-{role.name}-"), f"api:{role.name.lower()}"
    text = f"{kept.said} {WORD}"
    kept.add("session", own, f"{own}-chat")
    kept.add("path", "own.txt", "made.txt", "../../../workspace/own.txt", "../../web%3Auser/workspace/own.txt")
    chat = {"model": "everloop", "messages": [{"role": "user", "content": text}]}
    response = {"model": "everloop", "input": text}
    platform = {"platform": "discord", "platform_user_id": "7", "content": text, "id": "m1"}
    kept.requests = [
        ("POST", "/mcp", {"json": called("ask", message=text)}),
        ("POST", "/v1/chat/completions", {"json": chat}),
        ("POST", "/v1/chat/completions", {"json": chat, "headers": {"X-Everloop-Session": f"{own}-chat"}}),
        ("POST", "/v1/chat/completions", {"json": chat, "headers": {"Idempotency-Key": "the-same"}}),
        ("POST", "/v1/responses", {"json": response}),
        ("POST", "/message", {"json": platform}),
        ("POST", "/message", {"json": {**platform, "platform_channel_id": "c1", "id": "m2"}}),
        ("POST", "/message/stream", {"json": {**platform, "id": "m3"}}),
        ("POST", "/api/files?name=own.txt", {"data": text.encode()}),
        ("PUT", "/api/workspace/file?path=own.txt", {"data": text.encode()}),
        ("PUT", "/api/memory/document", {"json": {"document": "MEMORY.md", "text": f"- {text}\n", "base": ""}}),
    ]
    async with door.client(role) as client:
        for method, path, given in kept.requests:
            async with client.request(method, path, **given) as answer:
                told = await answer.text()
                assert answer.status < 300, (path, told)
                kept.hear(told)
                kept.add("ref", *re.findall(r"file:[0-9a-f]{12,64}", told))
                kept.add("response", *re.findall(r'"id":\s*"(resp_[^"]+)"', told))
        async with client.ws_connect("/ws") as wire:
            for n, words in enumerate((text, f"write it {text}", f"send it {text}")):
                await wire.send_json({"type": "message", "id": f"w{n}", "session": own, "content": words})
                frame: dict[str, Any] = {}
                while frame.get("type") not in ("response", "approval"):
                    frame = await wire.receive_json(timeout=60)
                    kept.hear(str(frame))
                kept.add("thread", frame["thread"])
                kept.add("approval", *filter(None, [frame.get("approval")]))
        async with client.get("/api/sessions?archived=1") as answer:
            rows = (await answer.json())["sessions"]
        kept.add("thread", *(row["id"] for row in rows))
        kept.add("session", *(row["session"] for row in rows))
        async with client.patch(f"/api/sessions/{rows[0]['id']}", json={"title": text}) as answer:
            assert answer.status == 200
        for row in rows:
            async with client.get(f"/api/sessions/{row['id']}/entries") as answer:
                kept.add("ref", *re.findall(r"file:[0-9a-f]{12,64}", await answer.text()))
        async with client.get("/api/memory/facts") as answer:
            kept.add("fact", *(each["id"] for each in (await answer.json())["facts"]))
        planned = {"when": "every 2h", "text": text, "does": "message", "session": rows[0]["session"]}
        async with client.post("/api/schedules", json=planned) as answer:
            assert answer.status == 201
            kept.add("schedule", (await answer.json())["schedule"]["id"])
        kept.add("person", PEOPLE[role])
    async with open_records(door.home) as records:
        kept.add("token", *(each.id for each in await records.store.tokens(PEOPLE[role])))
    kept.ids = {kind: list(dict.fromkeys(ids)) for kind, ids in kept.ids.items()}
    return kept


KINDS = {"ref": ("ref",), "session": ("session",), "thread": ("thread",), "path": ("path",), "who": ("person",)}
KINDS |= {
    "id": ("thread", "approval", "person", "token", "schedule"),
    "account": ("person",),
    "of": ("person",),
    "file": ("ref",),
}
LISTED = "ids"  # of facts
FILLED: dict[str, Any] = {
    "q": WORD,
    "search": WORD,
    "document": "MEMORY.md",
    "version": 1,
    "old": 0,
    "new": 1,
    "text": "",
    "base": "",
    "seq": 3,
    "at": 1,
    "content": "other words",
    "answer": "decline",
    "allow": False,
    "days": 1,
    "name": "x",
    "archived": True,
    "key": "sk-canary-of-another",
    "value": "sk-canary-of-another",
    "when": "every 2h",
}
# What is asked for beside that is nobody's: how much of it, in which order, what is to be set.
NAMES_NOTHING = {
    "platforms",
    *("every", "keep", "part"),
    *("ended", "limit", "skip", "after", "before", "since", "hidden", "by", "offset", "per", "what", "confirm"),
    *(
        "header",
        "hosts",
        "test",
        "values",
        "commands",
        "address",
        "ahead",
        "blocked",
        "code",
        "files",
        "held",  # of a skill in one's own workspace
        "pin",  # a hash of what one has sent oneself
        "max_tokens",
        "model",
        "money",
        "open_to",
        "pinned",
    ),
    *("install", "tool", "args", "effect"),  # of MCP servers, which are the owner's alone
    *("kind", "upload", "dry_run", "grown", "enable"),  # of moving in, which is the owner's alone
    *("does", "zone", "misfire", "overlap", "retries", "max_runs", "until", "polls", "condition", "enabled"),
    *("place", "places", "prompt", "provider", "replace", "replaces", "role", "scopes", "title", "tokens", "tools"),
}


def fields_of(shape: Any, kept: Recorded) -> Iterator[dict[str, Any]]:
    """What can be filled into a shape of the API with what somebody else knows."""
    if not (isinstance(shape, type) and issubclass(shape, msgspec.Struct)):
        return
    choices: dict[str, list[Any]] = {}
    for field in msgspec.structs.fields(shape):
        if field.name in KINDS:
            choices[field.name] = [each for kind in KINDS[field.name] for each in kept.ids.get(kind, [])]
        elif field.name in FILLED:
            choices[field.name] = [FILLED[field.name]]
        elif field.name == LISTED:
            choices[field.name] = [kept.ids["fact"]]
    for values in itertools.product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


def replayed(route: ApiRoute, kept: Recorded) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """A route of the API with each id of somebody's, wherever it takes one."""
    for at in fields_of(route.at, kept):
        path = route.path.format(**at)
        for query in itertools.islice(fields_of(route.query, kept), 12):
            if "confirm" in route.query.__struct_fields__:
                query = {"confirm": at["id"]}
            given: dict[str, Any] = {"params": {name: str(value) for name, value in query.items()}}
            if route.takes_bytes:
                yield route.method, path, {**given, "data": b"x"}
            elif route.body is None:
                yield route.method, path, given
            else:
                for body in itertools.islice(fields_of(route.body, kept), 3):
                    yield route.method, path, {**given, "json": body}


async def answers(client: aiohttp.ClientSession, asked: Iterator[Any], kept: Recorded) -> list[Any]:
    """Those in which something of somebody else's came back."""
    found = []
    for method, path, given in asked:
        async with client.request(method, path, **given) as answer:
            told = f"{answer.headers} {(await answer.read()).decode('utf-8', 'replace')}"
            if kept.finds(told):
                found.append((method, path, given, answer.status))
    return found


# The routes of other doors than the API at which nothing is told that is somebody's, and why.
TELLS_NOTHING = {
    **dict.fromkeys([("GET", "/health"), ("GET", "/ready"), ("GET", "/metrics")], "of the house as a whole"),
    **dict.fromkeys([("GET", "/login"), ("GET", "/openapi.json")], "the same for everybody"),
    **dict.fromkeys([("GET", "/v1/models"), ("GET", "/v1/models/{name}")], "the settings'"),
    **dict.fromkeys([("POST", f"/auth/{each}") for each in ("login", "logout", "password", "session")], "one's own"),
    ("POST", "/v1/{rest}"): "there is no such route",
    **dict.fromkeys([("GET", "/mcp"), ("DELETE", "/mcp")], "always the same refusal"),
    ("GET", "/files/{ref}/{name}"): "the link is the permission: tests/gateway/test_own_files.py",
    **dict.fromkeys([(each, "/hooks/{channel}{path}") for each in ("GET", "POST")], "each channel knows its callers"),
    ("GET", "/api/log"): "the house's, to the owner alone: tests/gateway/api/test_doctor.py",
    ("GET", "/ws"): "its frames, each by itself: test_no_frame_tells_one_anything_of_the_other",
}
REPLAYED_FRAMES = {"watch", "resume", "history", "status", "stop", "approve", "message"}
PAIRS = [(Role.USER, Role.GUEST), (Role.USER, Role.ADMIN), (Role.OWNER, Role.GUEST), (Role.OWNER, Role.USER)]
PAIRS += [(Role.OWNER, Role.ADMIN), (Role.USER, Role.OWNER)]
SAFE = [route for route in TABLE if route.least < Role.OWNER and "/api/models" not in route.path]


async def test_the_one_finds_all_of_it_and_so_the_tests_below_would_see_it(door: Door):
    """The control, before anybody has changed anything."""
    for one, kept in door.recorded.items():
        async with door.client(one) as client:
            asked = (request for route in SAFE if route.method == "GET" for request in replayed(route, kept))
            found = await answers(client, asked, kept)
        seen = {re.sub(r"file:\w+|[0-9a-f]{16}", "*", path) for _, path, _, _ in found}
        assert {"/api/sessions", "/api/search", "/api/sessions/*", "/api/sessions/*/entries", "/api/files/*"} <= seen
        assert {"/api/workspace/file", "/api/approvals", "/api/sessions/*/trace", "/api/schedules"} <= seen
        assert {"/api/memory/facts", "/api/memory/document", "/api/memory/difference"} <= seen
        kinds = ["approval", "fact", "path", "person", "ref", "response", "schedule", "session", "thread", "token"]
        assert (len(kept.answers) > 5, sorted(kept.ids)) == (True, kinds)


@pytest.mark.parametrize("one, other", PAIRS)
async def test_no_route_of_the_api_tells_one_anything_of_the_other(door: Door, one: Role, other: Role):
    kept, approver = door.recorded[one], other >= Role.ADMIN
    routes = [each for each in SAFE if not (approver and (each.method, each.path) in FOR_APPROVERS)]
    routes = [each for each in routes if each.method == "GET" or not each.path.startswith(PEOPLES)]
    if other is Role.OWNER:  # who is handed all that is somebody's
        routes = [each for each in routes if not each.path.endswith("/export")]
    async with door.client(other) as client:
        asked = [request for route in routes for request in replayed(route, kept)]
        found = await answers(client, iter(asked), kept)
    async with door.client(one) as client, client.get("/api/me") as answer:
        assert answer.status == 200  # their token holds: nobody else has revoked it
    assert (found, len(asked) > 100) == ([], True)


@pytest.mark.parametrize("one, other", PAIRS)
async def test_no_request_that_is_sent_again_by_another_is_answered_with_the_ones_answer(door: Door, one, other):
    """Nor one that goes on in a session, or from a response, of the one's."""
    kept = door.recorded[one]
    foreign = []
    async with door.client(other) as client:
        for method, path, given in sent_again(kept):
            async with client.request(method, path, **given) as answer:
                told = await answer.text()
            if any(each in told for each in kept.answers):
                foreign.append((method, path, given))
    assert foreign == []


def sent_again(kept: Recorded) -> list[tuple[str, str, dict[str, Any]]]:
    """What somebody has sent to other doors than the API, and what goes on with it."""
    more: list[tuple[str, str, dict[str, Any]]] = []
    for session in kept.ids["session"]:
        body = {"model": "everloop", "messages": [{"role": "user", "content": "what was said?"}]}
        more.append(("POST", "/v1/chat/completions", {"json": body, "headers": {"X-Everloop-Session": session}}))
    for response in kept.ids["response"]:
        body = {"model": "everloop", "input": "what was said?", "previous_response_id": response}
        more.append(("POST", "/v1/responses", {"json": body}))
        more.append(("GET", f"/v1/responses/{response}", {}))
    for name in ("recall", "search_history"):
        more.append(("POST", "/mcp", {"json": called(name, query=f"{kept.said} {WORD}")}))
    receipts = [{"id": each} for each in kept.ids["thread"]]
    more.append(("GET", "/message/outbox", {"params": {"wait": "0"}}))
    more.append(("POST", "/message/outbox/receipts", {"json": {"receipts": receipts}}))
    return [*(each for each in kept.requests if each[1].startswith(("/v1", "/message", "/mcp"))), *more]


@pytest.mark.parametrize("one, other", PAIRS)
async def test_no_frame_tells_one_anything_of_the_other(door: Door, one: Role, other: Role):
    kept = door.recorded[one]
    told: list[str] = []
    async with door.client(other) as client, client.ws_connect("/ws") as wire:
        await wire.send_json({"type": "watch"})
        for session in kept.ids["session"]:
            await wire.send_json({"type": "resume", "session": session})
            await wire.send_json({"type": "history", "session": session})
            await wire.send_json({"type": "status", "session": session})
            await wire.send_json({"type": "stop", "session": session})
            for thread in kept.ids["thread"][:3]:
                for mine in (session, f"api:of-{other.name}"):
                    await wire.send_json({"type": "resume", "session": mine, "thread": thread})
                    await wire.send_json({"type": "history", "session": mine, "thread": thread})
        for approval in kept.ids["approval"] if other < Role.ADMIN else ():
            await wire.send_json({"type": "approve", "approval": approval, "allow": True})
        for ref in kept.ids["ref"]:
            files = [{"name": "x", "file": ref}]
            mine = f"api:of-{other.name}"
            await wire.send_json({"type": "message", "id": ref, "session": mine, "content": "read", "files": files})
        await wire.send_json({"type": "status"})
        frame: dict[str, Any] = {}
        while not (frame.get("type") == "status_result" and frame.get("session") is None):
            frame = await wire.receive_json(timeout=60)
            told.append(str(frame))
    assert [each for each in told if kept.finds(each)] == []
    assert len(told) > 5


async def test_a_route_that_nobody_replays_breaks_the_build(door: Door, tmp_path: Path):
    """Of every door: one of the API is replayed by what it takes; one of another is sent again, or tells nothing."""
    pages = {("GET", route.path) for route in page.routes()}
    again = {(method, path) for method, path, _ in sent_again(door.recorded[Role.USER])}
    covered = {(m, re.sub("/v1/responses/.*", "/v1/{rest}", path)) for m, path in again} | {*TELLS_NOTHING} | pages
    covered |= {(route.method, route.path) for route in TABLE}
    assert {(m.replace("HEAD", "GET"), path) for m, path in await routes(tmp_path)} - covered == set()
    never = [(each.method, each.path) for each in SAFE if not any(replayed(each, door.recorded[Role.USER]))]
    assert never == []


async def test_a_field_by_which_something_of_anothers_could_be_named_is_replayed_or_breaks_the_build():
    shapes = [shape for route in TABLE for shape in (route.at, route.query, route.body)]
    structs = [each for each in shapes if isinstance(each, type) and issubclass(each, msgspec.Struct)]
    fields = {name for each in structs for name in each.__struct_fields__}
    assert fields - {*KINDS, *FILLED, *NAMES_NOTHING, LISTED} == set()
    assert {frame.__struct_config__.tag for frame in NEEDS} == REPLAYED_FRAMES


async def test_a_route_and_a_field_that_are_new_would_be_seen(door: Door):
    class Brand(msgspec.Struct):
        diary: str

    async def handle(call: Any) -> Any: ...

    route = ApiRoute("GET", "/api/brand/{diary}", "", handle, at=Brand)
    assert {*Brand.__struct_fields__} - {*KINDS, *FILLED, *NAMES_NOTHING} == {"diary"}
    assert ("GET", "/api/brand/{diary}") not in TELLS_NOTHING
    with pytest.raises(KeyError):  # what it takes cannot be filled in
        next(replayed(route, door.recorded[Role.USER]))
