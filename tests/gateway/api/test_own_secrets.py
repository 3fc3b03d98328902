"""Keys and credentials of one's own over the API: given by whoever logs in, told to nobody, gone with their person."""

import io
import zipfile
from pathlib import Path
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from everloop.app import open_desk
from everloop.core.people import Role
from everloop.gateway import api
from everloop.gateway.access.principal import Principal
from everloop.gateway.access.scopes import SCOPES
from everloop.testing import Say, ScriptedModel

from ..guarded import guarded

EVERY = frozenset(SCOPES)
PEOPLE = {
    "owner": Principal("owner", Role.OWNER, EVERY, "token"),
    "anna": Principal("web:1", Role.USER, EVERY, "cookie"),
    "ben": Principal("web:2", Role.USER, EVERY, "cookie"),
    "guest": Principal("web:3", Role.GUEST, EVERY, "cookie"),
    "bot": Principal("web:1", Role.USER, frozenset({"read", "chat"}), "token"),
    "brief": Principal("web:1", Role.USER, EVERY, "token", until=4e9),
}
KEY, VALUE = "sk-canary-annas", "sk-canary-credential"
GITHUB = {"value": VALUE, "hosts": ["api.github.com"], "commands": True}


class Clients:
    def __init__(self, client: Any) -> None:
        self._client = client
        self.heard: list[str] = []

    async def ask(self, who: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        given = {} if body is None else {"json": body}
        answer = await self._client.request(method, path, headers={"Authorization": f"Bearer {who}"}, **given)
        self.heard.append(await answer.text())
        return answer.status, await answer.json()


async def test_one_keeps_ones_own_and_nobody_is_told_it(tmp_path: Path):
    async with (
        open_desk(tmp_path, provider=ScriptedModel(lambda shown: Say("ok"))) as agent,
        TestClient(TestServer(guarded(api.routes(agent), PEOPLE.get))) as client,
    ):
        for n, role in enumerate((Role.USER, Role.USER, Role.GUEST), 1):
            await agent.members.add(f"P{n}", role, Role.OWNER, f"web:{n}")
        clients = Clients(client)
        put = ("PUT", "/api/me/keys/openai", {"key": KEY})
        may = {who: (await clients.ask(who, *put))[0] for who in PEOPLE}
        put = ("PUT", "/api/me/credentials/github", GITHUB)
        kept = {who: (await clients.ask(who, *put))[0] for who in PEOPLE if who != "ben"}
        refused = [
            await clients.ask("anna", "PUT", f"/api/me/{path}", body)
            for path, body in (
                ("keys/nowhere", {"key": KEY}),
                ("keys/openai", {"key": f"{KEY} and more"}),
                ("credentials/x", {"value": VALUE}),
                ("credentials/x", {"value": VALUE, "hosts": ["*"]}),
            )
        ]
        places = ("keys/openai", "credentials/github")
        taken = [(await clients.ask(who, "DELETE", f"/api/me/{it}"))[0] for who in ("bot", "brief") for it in places]
        annas = [await clients.ask("anna", "GET", f"/api/me/{what}") for what in ("keys", "credentials")]
        bens = [await clients.ask("ben", "GET", f"/api/me/{what}") for what in ("keys", "credentials")]
        said = (await agent.user("web:1").ask("/keys")).content
        typed = (await agent.user("web:1").ask("/keys sk-canary-typed")).content
        pack = b"".join([piece async for piece in agent.export(await agent.members.find("web:1"))])
        lines = [(row.deed, row.subject, row.detail) for row in await agent.store.audit() if "secret" in row.deed]
        await agent.erasures.erase(await agent.members.find("web:1"))
        left = await agent.store.secrets_of_people()
        gone = [await clients.ask("ben", "DELETE", f"/api/me/{it}") for it in places]
    assert may == {"owner": 409, "anna": 200, "ben": 200, "guest": 403, "bot": 403, "brief": 403}
    assert kept == {"owner": 200, "anna": 200, "guest": 403, "bot": 403, "brief": 403}
    assert [status for status, _ in refused] == [409] * 4
    assert taken == [403] * 4
    assert [(status, [(each["provider"], each["problem"]) for each in told["keys"]]) for status, told in annas[:1]] == [
        (200, [("openai", "")])
    ]
    shown = {**annas[1][1]["credentials"][0], "at": 0}
    assert shown == {
        "name": "github",
        "at": 0,
        "origins": ["https://api.github.com"],
        "header": "Authorization",
        "variable": "GITHUB",
        "problem": "",
    }
    assert bens[1] == (200, {"credentials": []})
    assert said.splitlines()[:2] == [
        "Models are asked with your own keys at openai, and you pay there yourself.",
        "Your tools may use, by name: github.",
    ]
    assert typed.startswith("A key is not taken in a chat")
    with zipfile.ZipFile(io.BytesIO(pack)) as files:
        texts = {name: files.read(name).decode() for name in files.namelist()}
    assert [line.split(",")[0] for line in texts["tables/vault.csv"].split()] == [
        "name",
        "credential:github",
        "own-key:openai",
    ]
    assert not any("canary" in text for text in (*texts.values(), *clients.heard, str(lines)))
    assert ("secret.kept", "own-key:openai", '{"owner":"web:1"}') in lines
    assert {owner for owner, _, _ in left} == {"owner", "web:2"}  # none of hers
    assert [status for status, _ in gone] == [200, 409]
