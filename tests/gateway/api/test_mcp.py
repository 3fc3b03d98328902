"""MCP servers through the API of an open gateway: reviewed, set up, allowed, denied, tried and removed by the owner."""

from pathlib import Path
from typing import Any

import pytest

from everloop.app.records import open_records
from everloop.errors import McpDown
from everloop.ports.mcp_questions import McpFilledIn, McpQuestion
from everloop.testing import ScriptedModel
from tests.fake_mcp import FakeMcp, described, offering, reading
from tests.gateway.api.test_api import OWNER, USER
from tests.gateway.api.test_api import opened as at_stand
from tests.gateway.api.test_setup import Door, opened

KEY = "sk-canary-of-the-api"
FILES = {"command": "files-server", "args": ["--here"], "env": {"API_KEY": KEY}}


def fake() -> FakeMcp:
    return FakeMcp(files=offering(reading("list"), described("write")))


async def review(door: Door, values: Any = FILES, name: str = "files", **more: Any) -> tuple[int, Any]:
    found: tuple[int, Any] = await door.send("POST", "/api/mcp-reviews", {"name": name, "values": values, **more})
    return found


def states(told: Any) -> dict[str, str]:
    return {each["tool"]: each["state"] for each in told["mcp"]["tools"]}


async def test_a_server_is_reviewed_set_up_allowed_denied_tried_and_removed(tmp_path: Path):
    servers = fake()
    async with opened(tmp_path, provider=ScriptedModel([]), mcp=servers) as door:
        nothing = await door.get("/api/mcp")
        _, reviewed = await review(door)
        pin, before = reviewed["review"]["pin"], door.file
        other = await door.send("PUT", "/api/mcp/files", {"values": FILES, "pin": "0" * 64})
        added = await door.send("PUT", "/api/mcp/files", {"values": FILES, "pin": pin})
        [row] = (await door.get("/api/mcp"))["servers"]
        servers.offers["files"] = offering(reading("list", "Lists it all."), described("write"))
        _, again = await door.send("POST", "/api/mcp/files/restart", {})
        [changed] = [each for each in again["mcp"]["tools"] if each["state"] == "changed"]
        stale = await door.send("POST", "/api/mcp/files/allow", {"tools": {"list": "0" * 64}})
        digest = {"list": changed["digest"]}
        allowed = await door.send("POST", "/api/mcp/files/allow", {"tools": digest, "effect": "read"})
        denied = await door.send("POST", "/api/mcp/files/deny", {"tools": ["write"]})
        tried = await door.send("POST", "/api/mcp/files/test", {"tool": "write", "args": {"a": 1}})
        shown = await door.get("/api/mcp/files")
        written = door.file
        removed = await door.send("DELETE", "/api/mcp/files")
        gone = await door.send("GET", "/api/mcp/files")
    assert (nothing, before, [each["tool"] for each in reviewed["review"]["tools"]]) == (
        {"servers": []},
        "",
        ["list", "write"],
    )
    assert (other[0], "offers something else than was shown" in other[1]["error"]["message"]) == (409, True)
    assert (added[0], states(added[1])) == (200, {"list": "allowed", "write": "allowed"})
    assert (row["name"], row["state"], row["allowed"], row["where"]) == ("files", "running", 2, "files-server --here")
    assert '+ description: "Lists it all."' in changed["difference"]
    assert (stale[0], "has changed since it was shown" in stale[1]["error"]["message"]) == (409, True)
    assert (states(allowed[1])["list"], states(denied[1])) == ("allowed", {"list": "allowed", "write": "new"})
    assert (tried, servers.called) == (
        (200, {"text": "write done", "pictures": 0}),
        [("files", "write", {"a": 1})],
    )
    assert next(each["effect"] for each in shown["mcp"]["tools"] if each["tool"] == "list") == "read"
    assert ('API_KEY = "${vault:mcp.files.API_KEY}"' in written, removed) == (
        True,
        (200, {"name": "files", "left": []}),
    )
    assert gone[0] == 404
    assert KEY not in str((reviewed, added, row, again, allowed, shown, written))


@pytest.mark.parametrize(
    ("values", "code", "says"),
    [
        ({"command": "x", "env": {"A": "${HOME}"}}, "setting_refused", "can only be written in the settings file"),
        ({"url": "https://x", "headers": {"A": "${vault:other}"}}, "setting_refused", "can only be written"),
        ({}, "setting_refused", "has neither a command nor a url"),
        ({"command": "x"}, "mcp_down", "Nothing was written"),
        ({"command": "npx", "args": ["-y", "some-server"]}, "install_first", "some-server"),
        ({"command": "docker", "args": ["run", "x"]}, "mcp_refused", "ocker"),
    ],
)
async def test_what_cannot_be_set_up_is_refused_with_a_sentence(tmp_path: Path, values: Any, code: str, says: str):
    async with opened(tmp_path, provider=ScriptedModel([]), mcp=fake()) as door:
        status, told = await review(door, values, "away")
        assert (status, told["error"]["code"], says in told["error"]["message"], door.file) == (409, code, True, "")


async def test_what_would_run_without_a_sandbox_is_not_set_up_from_elsewhere(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel([]), mcp=fake()) as door:
        assert (await review(door, {**FILES, "sandbox": False}))[0] == 400


async def test_one_that_is_wrong_or_away_is_listed_with_why(tmp_path: Path):
    servers = fake()
    servers.down["away"] = McpDown("away does not answer")
    (tmp_path / "config.toml").write_text(
        '[tools.mcp_servers]\naway = {command = "x"}\nbad = {comand = "x"}\noff = {command = "y", enabled = false}\n'
    )
    async with opened(tmp_path, provider=ScriptedModel([]), mcp=servers) as door:
        await door.send("POST", "/api/mcp/away/restart", {})
        rows = {row["name"]: row for row in (await door.get("/api/mcp"))["servers"]}
        shown = await door.get("/api/mcp/bad")
    assert {name: row["state"] for name, row in rows.items()} == {"away": "waiting", "bad": "wrong", "off": "off"}
    assert (rows["away"]["why"], "did you mean command?" in rows["bad"]["why"]) == ("away does not answer", True)
    assert shown["mcp"]["tools"] == []


async def test_a_token_of_some_scopes_and_whoever_is_not_the_owner_change_nothing(tmp_path: Path):
    (tmp_path / "config.toml").write_text('[tools.mcp_servers.files]\ncommand = "x"\n')
    async with opened(tmp_path, scopes=("admin", "read", "chat"), provider=ScriptedModel([]), mcp=fake()) as door:
        asked = [
            await review(door),
            await door.send("PUT", "/api/mcp/files", {"values": FILES, "pin": "x"}),
            await door.send("DELETE", "/api/mcp/files"),
            await door.send("POST", "/api/mcp/files/allow", {"tools": {"list": "x"}}),
            await door.send("POST", "/api/mcp/files/deny", {}),
            await door.send("POST", "/api/mcp/files/test", {"tool": "list"}),
            await door.send("POST", "/api/mcp/files/login", {}),
        ]
        assert [status for status, _ in asked] == [403] * len(asked)
        assert (await door.send("GET", "/api/mcp"))[0] == 200


async def test_people_see_nothing_of_it(tmp_path: Path):
    async with at_stand(tmp_path, mcp=fake()) as (_, client):
        assert [(await client.get("/api/mcp", headers=who)).status for who in (USER, OWNER)] == [403, 200]


async def test_a_command_has_no_login_and_what_nobody_has_begun_is_not_finished(tmp_path: Path):
    (tmp_path / "config.toml").write_text('[tools.mcp_servers.files]\ncommand = "x"\n')
    async with opened(tmp_path, provider=ScriptedModel([]), mcp=fake()) as door:
        status, told = await door.send("POST", "/api/mcp/files/login", {})
        out = await door.send("DELETE", "/api/mcp/files/login")
        back = await door.client.get("/hooks/mcp/login?state=<b>&code=2")
        text = await back.text()
    assert (status, "nobody logs in to it" in told["error"]["message"], out) == (409, True, (200, {"gone": False}))
    assert (back.status, "No login waits for this" in text, "<b>" in text) == (400, True, False)


def asks(person: str, id: str) -> McpQuestion:
    form = {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}, "required": ["size"]}
    return McpQuestion(id=id, person=person, session="cli:direct", server="shop", message="Which size?", form=form)


async def test_what_a_server_asks_in_another_process_is_shown_to_whom_it_asks_and_answered_here(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel([])) as door, open_records(tmp_path) as elsewhere:
        await elsewhere.store.mcp_questions.ask(asks("owner", "aa"))
        await elsewhere.store.mcp_questions.ask(asks("fake:ann", "bb"))
        shown = (await door.get("/api/approvals"))["questions"]
        anothers = await door.send("POST", "/api/mcp-questions/bb", {"answer": "3"})
        wrong = await door.send("POST", "/api/mcp-questions/aa", {"answer": "0"})
        told = await door.send("POST", "/api/mcp-questions/aa", {"answer": "3"})
        late = await door.send("POST", "/api/mcp-questions/aa", {"answer": "decline"})
        answers = [await elsewhere.store.mcp_questions.answer_to(id) for id in ("aa", "bb")]
    question = {"id": "aa", "session": "cli:direct", "server": "shop", "message": "Which size?"}
    assert shown == [{**question, "fields": ["size (integer)"], "how": "YOUR ANSWER"}]
    assert (anothers[0], late[0], told) == (404, 404, (200, {"told": "shop is told."}))
    assert (wrong[0], wrong[1]["error"]["message"]) == (409, "That is no answer to it: size must be at least 1.")
    assert answers == [McpFilledIn({"size": 3}), None]
