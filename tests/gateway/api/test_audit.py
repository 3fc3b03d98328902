"""The audit through the gateway: who came in, what they changed there, and who may read it."""

from pathlib import Path
from typing import Any

import aiohttp
import pytest

from everloop.app.access import new_token, set_password, token_scopes
from everloop.app.records import open_records
from everloop.core.people import Role
from everloop.ports.directory import Person
from everloop.testing import Say, ScriptedModel
from tests.gateway.api.test_setup import opened

PASSWORD = "a long enough password"


async def test_what_is_done_through_the_gateway_is_noted_with_the_credential(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel(Say("hello"))) as door:
        async with open_records(tmp_path) as records:
            await set_password(records.store, "owner", PASSWORD)
        made = (await door.get("/api/audit"))["lines"][-1]["id"]  # all before this was the test's own doing
        origin = {"Origin": str(door.client._base_url).rstrip("/")}
        async with aiohttp.ClientSession(door.client._base_url, headers=origin) as browser:
            assert (await browser.post("/auth/login", json={"password": "wrong-canary"})).status == 401
            unknown = {"password": PASSWORD, "user": "sk-canary-typed-into-the-wrong-field"}
            assert (await browser.post("/auth/login", json=unknown)).status == 401
            assert (await browser.post("/auth/login", json={"password": PASSWORD})).status == 200
        token = (await door.get("/api/tokens"))["tokens"][0]["id"]
        assert (await door.send("PUT", "/api/keys/openai", {"key": "sk-canary-kept"}))[0] == 200
        assert (await door.change(agents__defaults__max_tool_iterations=7))[0] == 200
        assert (await door.change(agents__defaults__max_tool_iterations="seven"))[0] == 409
        assert (await door.send("POST", "/api/users", {"name": "Anna", "role": "user", "account": "web:7"}))[0] == 201
        assert (await door.send("PATCH", "/api/users/web:7", {"role": "admin"}))[0] == 200
        assert (await door.send("PATCH", "/api/users/owner", {"role": "guest"}))[0] == 409  # changes nothing
        told = (await door.get("/api/audit"))["lines"]
        checked = await door.get("/api/audit/check")
    by = f"owner by token {token}"
    lines = [(x["actor"], x["authority"], x["deed"], x["subject"], x["detail"]) for x in reversed(told)]
    start = next(n for n, line in enumerate(lines) if line[2] == "login.failed")
    assert made
    assert lines[start : start + 2] == [
        ("", "nobody has shown who they are", "login.failed", "owner", ""),
        ("", "nobody has shown who they are", "login.failed", "", ""),
    ]
    assert lines[start + 2][:3] == ("owner", "their password", "login.ok")
    assert lines[start + 3 :] == [
        ("owner", by, "secret.kept", "key:openai", "owner owner"),
        ("owner", by, "settings.changed", "", "keys agents.defaults.max_tool_iterations"),
        ("owner", by, "person.added", "web:7", "accounts web:7, role user"),
        ("owner", by, "person.role", "web:7", "from user, to admin"),
    ]
    assert (checked["lines"], checked["broken"]) == (len(lines), None)
    assert "canary" not in str(told)


async def test_lines_come_in_pages_and_by_filter(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel(Say("hello"))) as door:
        for number in range(5):
            await door.send("POST", "/api/users", {"name": f"N{number}", "role": "user", "account": f"web:{number}"})
        first = await door.get("/api/audit?what=person&limit=3")
        then = await door.get(f"/api/audit?what=person&limit=3&before={first['lines'][-1]['id']}")
        assert [line["subject"] for line in first["lines"]] == ["web:4", "web:3", "web:2"]
        assert [line["subject"] for line in then["lines"]] == ["web:1", "web:0"]
        assert (first["more"], then["more"]) == (True, False)
        assert [line["subject"] for line in (await door.get("/api/audit?who=web:3"))["lines"]] == ["web:3"]
        named = await door.get("/api/audit?who=n3")
        nobody = await door.get("/api/audit?who=n9")
        assert [(line["subject"], line["meaning"]) for line in named["lines"]] == [("web:3", "somebody was introduced")]
        assert (named["names"]["web:3"], nobody["lines"]) == ("N3", [])
        assert (await door.send("GET", "/api/audit?limit=0"))[0] == 400


@pytest.mark.parametrize(
    ("role", "scopes"), [(Role.ADMIN, token_scopes()), (Role.USER, token_scopes()), (None, ("read",))]
)
async def test_only_the_owner_reads_it(tmp_path: Path, role: Role | None, scopes: tuple[str, ...]):
    async with opened(tmp_path, provider=ScriptedModel(Say("hello"))) as door:
        who = "web:7" if role is not None else "owner"
        async with open_records(tmp_path) as records:
            if role is not None:
                await records.store.introduce(Person("web:7", "Anna", role))
            token = await new_token(records.store, who, "theirs", scopes)
        told: list[Any] = []
        for path in ("/api/audit", "/api/audit/check"):
            async with door.client.get(path, headers={"Authorization": f"Bearer {token}"}) as answer:
                told.append(answer.status)
        assert told == [403, 403]
        assert (await door.get("/api/audit"))["lines"] != []  # the owner does
