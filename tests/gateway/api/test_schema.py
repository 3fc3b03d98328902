"""Whatever can be asked of the API is answered as its OpenAPI document says, whoever asks: schemathesis tries.

A real gateway on loopback is asked by `schemathesis run` in a process of its own. Its report says whether answers were
as documented; who got in where is told by the gateway's own count of requests, which the client cannot gild.
`make torture` tries more than `make test` has time for; EVERLOOP_SCHEMA_EXAMPLES=300 is more still.
"""

import asyncio
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from everloop.app import open_desk
from everloop.app.records import open_records
from everloop.core.people import Role
from everloop.gateway.access.permissions import PUBLIC, Route
from everloop.gateway.api.openapi import document
from everloop.gateway.api.route import ApiRoute, served
from everloop.gateway.api.routes.table import TABLE
from everloop.gateway.api.shapes import Me, SessionList
from everloop.ports.permission import Grant
from everloop.testing import Call, Say, ScriptedModel, Shown
from tests.channels.dead_letters import give_up
from tests.effort import in_full
from tests.fake_mcp import FakeMcp, offering, reading
from tests.processes import kill

from .stand_in import stand_in

EXAMPLES = int(os.environ.get("EVERLOOP_SCHEMA_EXAMPLES", in_full(100, 8)))
FEW = max(2, EXAMPLES // 4)
SECONDS = 300 + EXAMPLES * 10
ALL = "examples,coverage,fuzzing,stateful"  # phases of schemathesis
BRIEF = in_full(ALL, "examples,fuzzing")  # where it matters who is let in, and the owner's run looks at every shape

METHODS = in_full(["get", "put", "post", "delete", "options", "patch", "trace", "query"], ["trace"])  # not of a route
TRIED = in_full(1, 6)  # of every so many paths one is asked for by whom few let in; tests/permissions asks for all
MISSED = in_full(0, 5)  # of 111 paths: with few examples, a name that exists is not always among them
COVERED = in_full(1, 5)  # of every so many paths one is asked for with every edge of its shape, which takes longest
BY_EDGES = ("/api/personas", "/api/personas/{name}")  # only with these does anybody say what it takes
pytestmark = [
    pytest.mark.skipif(find_spec("schemathesis") is None, reason="schemathesis is not installed"),
    pytest.mark.shortened,
    pytest.mark.timeout(SECONDS + 60),
]

NEEDS = {(route.method, route.path): route.permission.scopes for route in TABLE}
COUNTED = re.compile(r'everloop_requests_total\{method="(\w+)",route="([^"]+)",status="(\d+)"\} (\S+)')


def lines(shown: Shown) -> Any:
    if "send" in shown.asked and shown.step == 0:
        return Call("send", {})
    return Say(f"you said: {shown.asked}")


async def tried(
    folder: Path,
    described: Mapping[str, Any],
    url: str,
    token: str,
    known: Mapping[str, list[str]] = {},
    *,
    examples: int = EXAMPLES,
    phases: str = ALL,
) -> Any:
    """The report of a run over the document by someone with this token, or nobody; `known` are names that exist."""
    schema, report, config = folder / "openapi.json", folder / "report.json", folder / "schemathesis.toml"
    schema.write_bytes(msgspec.json.encode(described))
    config.write_text(settings_of(known, described["paths"]))
    headers = ["--header", f"Authorization: Bearer {token}"] if token else []
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run", str(schema), "--url", url),
        *(
            "--max-examples",
            str(examples),
            "--phases",
            phases,
            "--generation-deterministic",
            "--no-color",
            "--continue-on-failure",
        ),
        *("--report", "json", "--report-json-path", str(report), "--request-timeout", "60", *headers),
        cwd=folder,
        env={**os.environ, "NO_PROXY": "*"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(SECONDS):
            said, _ = await process.communicate()
    finally:
        await kill(process)
    (folder / "said.txt").write_bytes(said)  # whoever finds a failure will want to read it
    assert report.exists(), said.decode()
    return msgspec.json.decode(report.read_bytes())


def settings_of(known: Mapping[str, list[str]], paths: Iterable[str]) -> str:
    """Half of the names in these places are some that exist, so that what is behind them is reached."""
    dictionaries = {f"known{n}": names for n, names in enumerate(known.values())}
    refusals = ["400", "401", "403", "404", "405", "409", "413", "415"]
    told = [f"[checks.negative_data_rejection]\nexpected-statuses = {refusals}\n"]
    told += [f"[phases.coverage]\nunexpected-methods = {METHODS}\n"]
    if passed_by := [path for place, path in enumerate(paths) if place % COVERED and path not in BY_EDGES]:
        told.append(f"[[operations]]\ninclude-path = {passed_by}\nphases = {{ coverage = {{ enabled = false }} }}\n")
    told += [f"[dictionaries.{name}]\nvalues = {names}\n" for name, names in dictionaries.items()]
    for place, name in zip(known, dictionaries, strict=True):
        path, _, parameter = place.rpartition(" ")
        use = f'{{ dictionary = "{name}", probability = 0.5 }}'
        where = parameter if "." in parameter else f"path.{parameter}"
        told.append(f'[[operations]]\ninclude-path-regex = "{path}"\nparameters = {{ "{where}" = {use} }}\n')
    return "\n".join(told)


def some_of(described: Mapping[str, Any]) -> dict[str, Any]:
    """The same document, of a part of the paths."""
    return {**described, "paths": dict([*described["paths"].items()][::TRIED])}


def verdict(report: Any) -> dict[str, Any]:
    return {name: report[name] for name in ("complete", "failures", "errors")} | {
        "untested": report["operations"]["total"] - report["operations"]["tested"]
    }


OUR_OWN = Counter({("GET", "/metrics", 200): 1})  # looking at what was counted is counted, too
FINE = {"complete": True, "failures": [], "errors": [], "untested": 0}


def put_into(folder: Path) -> list[str]:
    names = [f"file-{n}.txt" for n in range(40)]
    for name in names:
        (folder / name).write_text("some words")
    return names


@pytest.fixture
async def house(openings, gated_send) -> Any:
    """A gateway with conversations, a question that waits, and a file; `known` are their names."""
    servers = FakeMcp(files=offering(reading("list")))
    door = await openings(ScriptedModel(lines), tools=[gated_send], mcp=servers)
    door.owner = await door.token(name="the owner's")
    async with door.socket(door.owner) as wire:
        for n in range(4):
            await wire.ask(f"say {n}", f"m{n}", f"page:{n}")
        await wire.send("message", id="m", session="page:asks", content="send it")
        asked = (await wire.until("approval"))[-1]
    async with door.client(door.owner) as client:
        door.described = await (await client.get("/openapi.json")).json()
        listed = await (await client.get("/api/sessions")).json()
        kept = await (await client.post("/api/files", data=b"some words")).json()
        for n in range(12):
            reminder = {
                "when": "every 1d",
                "text": "drink",
                "session": "page:0",
                "does": "message",
                "name": f"water-{n}",
            }
            assert (await client.post("/api/schedules", json=reminder)).status == 201
        values = {"command": "files-server"}
        reviewed = await (await client.post("/api/mcp-reviews", json={"name": "files", "values": values})).json()
        adding = {"values": values, "pin": reviewed["review"]["pin"]}
        assert (await client.put("/api/mcp/files", json=adding)).status == 200
        schedules = (await (await client.get("/api/schedules")).json())["schedules"]
        backup = await (await client.post("/api/backup")).json()
    (door.home / "workspace" / "HEARTBEAT.md").write_text("check: true\n")
    async with open_records(door.home) as records:
        await records.store.keep_grant(Grant("ab12", "owner", "owner", "send", any=True, until=4e9))
        await give_up(records.store, *map(str, range(12)))
        await records.members.add("Anna", Role.USER, Role.OWNER, "web:7")
        undelivered = [str(each.id) for each in await records.store.undelivered()]
    door.known = {
        "^/api/sessions/ id": [each["id"] for each in listed["sessions"]],
        "^/api/approvals/ id": [asked["approval"]],
        "^/api/backup/files/ name": [backup["name"]],
        "^/api/files/ ref": [kept["file"]],
        "^/api/grants/ id": ["ab12"],
        "^/api/keys/ name": ["openai"],
        "^/api/mcp/ name": ["files"],
        "^/api/outbox/ id": undelivered,
        "^/api/schedules/ id": [each["id"] for each in schedules],
        "^/api/workspace/ query.path": put_into(door.home / "workspace"),
        "^/api/users/ id": ["owner", "web:7"],
    }
    return door


async def counted(door) -> Counter[tuple[str, str, int]]:
    """How many answers were given so far, by method, route and status."""
    async with door.client(door.owner) as client:
        text = await (await client.get("/metrics")).text()
    return Counter({(method, route, int(status)): float(n) for method, route, status, n in COUNTED.findall(text)})


async def test_the_owner_is_answered_as_the_document_says(house, tmp_path: Path):
    report = await tried(tmp_path, house.described, house.url, house.owner, house.known)
    assert verdict(report) == FINE
    reached = {(method, route) for method, route, status in await counted(house) if status < 300}
    documented = {(m.upper(), path) for path, methods in house.described["paths"].items() for m in methods}
    # A model that was handed over cannot be tried, has no host, and is the only one; nobody guesses ids, codes, places.
    of_models = {f"/api/models/{name}" for name in ("test", "look", "connect", "embedded/fetch", "embedded/leave")}
    untried = {
        *of_models,
        "/api/hosts/{name}/models",
        *("/api/sessions/{id}", "/api/sessions/{id}/regenerate"),  # of one that ends with an answer
        "/api/pairings",
        "/api/memory/restore",  # a version,
        "/api/personas/{name}/use",
        *("/api/skills", "/api/skill-reviews"),  # of an archive
        *("/api/skills/{name}", "/api/skills/{name}/change"),  # that is there
        "/api/users/{id}/erase",  # with their name
        "/api/schedules",  # nor words that say when
        *("/api/subagents/{id}/stop", "/api/background/{id}/stop"),  # nor a task that is open
        *("/api/background/{id}/front", "/api/sessions/{id}/background"),  # nor a turn that runs
        "/api/me/keys/{name}",  # the owner's are the house's
        "/api/me/credentials/{name}",  # nobody guesses a host
        *(f"/api/channels/{{name}}{more}" for more in ("", "/test", "/login")),  # nor a channel and its settings
        "/api/import",  # nor a place where another agent has lived
        *("/api/speech/transcribe", "/api/sessions/{id}/speech"),  # nor does anybody transcribe or speak here
        "/api/mcp-questions/{id}",  # nor what is asked just now
        "/api/mcp-reviews",  # nor a server that is there
        *(f"/api/mcp/{{name}}{more}" for more in ("", "/allow", "/deny", "/test", "/login")),  # nor a digest, or a tool
    }
    missed = {path for _, path in documented - reached} - untried
    assert len(missed) <= MISSED, missed


@pytest.mark.parametrize("scope", ["read", "chat"])
async def test_a_token_is_answered_where_its_scope_reaches_and_refused_elsewhere(house, tmp_path: Path, scope: str):
    before = await counted(house)
    described, token = some_of(house.described), await house.token(scope)
    report = await tried(tmp_path, described, house.url, token, house.known, examples=FEW, phases=BRIEF)
    assert verdict(report) == FINE
    answers = await counted(house) - before - OUR_OWN
    assert {NEEDS[method, route] for method, route, status in answers if status < 300} == {(scope,)}
    beyond = {status for method, route, status in answers if NEEDS.get((method, route), (scope,)) != (scope,)}
    assert {403} <= beyond <= {401, 403}


async def test_nobody_is_refused_everywhere(house, tmp_path: Path):
    before = await counted(house)
    report = await tried(tmp_path, some_of(house.described), house.url, "", house.known, examples=FEW, phases=BRIEF)
    assert verdict(report) == FINE
    assert {status for _, _, status in await counted(house) - before - OUR_OWN} == {401}


async def lies(call: Any) -> web.Response:
    return web.json_response({"user": 5})


async def falls(call: Any) -> web.Response:
    raise RuntimeError("broken on purpose")


async def lets_all_in(request: web.Request) -> web.Response:
    return web.json_response({"sessions": []})


BROKEN = (
    ApiRoute("GET", "/api/lies", "Answers with something else", lies, Me),
    ApiRoute("GET", "/api/falls", "Fails", falls, Me),
    ApiRoute("GET", "/api/open", "Asks nobody who they are", lies, SessionList),
)


async def test_a_route_that_is_broken_on_purpose_is_found(tmp_path: Path):
    """The control: the same run, over routes that lie, fail, and let everyone in."""
    async with open_desk(tmp_path / "home", provider=ScriptedModel([])) as agent:
        broken = [Route("GET", route.path, served(route, agent), route.permission) for route in BROKEN[:2]]
        app = stand_in(agent, [*broken, Route("GET", "/api/open", lets_all_in, PUBLIC)])
        async with TestServer(app) as server:
            report = await tried(tmp_path, document(BROKEN, "1"), str(server.make_url("")), "owner", examples=5)
    found = {(operation, failure["type"]) for failure in report["failures"] for operation in failure["operations"]}
    assert found == {
        ("GET /api/lies", "JsonSchemaError"),
        ("GET /api/falls", "ServerError"),
        ("GET /api/falls", "UndefinedStatusCode"),
        ("GET /api/open", "IgnoredAuth"),
    }
