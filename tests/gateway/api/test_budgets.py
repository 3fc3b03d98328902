"""Budgets over the API: looked at by whose they are, set by those above them, and told at every door."""

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
    "admin": Principal("web:1", Role.ADMIN, EVERY, "token"),
    "other": Principal("web:2", Role.ADMIN, EVERY, "token"),
    "user": Principal("web:3", Role.USER, EVERY, "token"),
    "guest": Principal("web:4", Role.GUEST, EVERY, "token"),
    "reader": Principal("owner", Role.OWNER, frozenset({"read"}), "token"),
}
LIMIT = {"per": "month", "tokens": 1000, "money": 2.5}
LINE = {
    "per": "month",
    "tokens": 1000,
    "money": 2.5,
    "spent_tokens": 0,
    "spent_money": 0,
    "held_tokens": 0,
    "held_money": 0,
    "resets": 0,
    "set": True,
}


class Clients:
    def __init__(self, client: Any) -> None:
        self._client = client

    async def ask(self, who: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {who}"}
        given = {} if body is None else {"json": body}
        answer = await self._client.request(method, path, headers=headers, **given)
        return answer.status, await answer.json()


async def test_who_may_set_whose_budget_and_everyone_sees_their_own(tmp_path: Path):
    async with (
        open_desk(tmp_path, provider=ScriptedModel(lambda shown: Say("ok"))) as agent,
        TestClient(TestServer(guarded(api.routes(agent), PEOPLE.get))) as client,
    ):
        for n, role in enumerate((Role.ADMIN, Role.ADMIN, Role.USER, Role.GUEST), 1):
            await agent.members.add(f"P{n}", role, Role.OWNER, f"web:{n}")
        clients, whose = Clients(client), ("owner", "web:1", "web:2", "web:3", "web:4", "house", "guests")
        may = {
            who: [(await clients.ask(who, "PUT", f"/api/users/{each}/budget", LIMIT))[0] for each in whose]
            for who in ("admin", "user", "guest", "reader", "owner")
        }
        looks = {who: (await clients.ask(who, "GET", "/api/users/web:3/budget"))[0] for who in PEOPLE}
        own = {who: (await clients.ask(who, "GET", "/api/budget"))[1]["budgets"] for who in ("user", "owner", "guest")}
        _, shown = await clients.ask("admin", "GET", "/api/users/web:3/budget")
        lifted = await clients.ask("admin", "DELETE", "/api/users/web:4/budget?per=month")
        raised = await clients.ask("admin", "DELETE", "/api/users/web:1/budget")
        bad = [
            await clients.ask("owner", "PUT", "/api/users/web:3/budget", body)
            for body in ({"tokens": -1}, {"money": "x"}, {"per": "year"}, {"tokens": 1.5}, {"limit": 3})
        ]
        nobody = await clients.ask("owner", "GET", "/api/users/web:9/budget")
    assert may == {
        "admin": [409, 409, 409, 200, 200, 409, 200],
        "user": [403] * 7,
        "guest": [403] * 7,
        "reader": [403] * 7,
        "owner": [200] * 7,
    }
    assert looks == {"owner": 200, "admin": 200, "other": 200, "user": 403, "guest": 403, "reader": 403}
    assert own == {"user": [LINE], "owner": [LINE], "guest": [LINE]}
    assert shown == {"name": "P3", "budgets": [LINE], "notes": []}
    assert lifted[1]["budgets"] == [LINE | {"tokens": 200_000, "money": None, "set": False}]
    assert (raised[0], raised[1]["error"]["message"]) == (409, "Only the owner changes what P1 may spend.")
    assert {status for status, _ in bad} == {400}
    assert nobody[0] == 404


async def test_a_limit_that_is_set_holds_for_the_next_turn_and_every_door_tells_why(openings):
    door = await openings(ScriptedModel(lambda shown: Say("ok")))
    token = await door.token()
    said = {"model": "everloop", "messages": [{"role": "user", "content": "hello"}]}
    written = {"platform": "web", "platform_user_id": "5", "message": "hello", "content": "hello"}
    async with door.client(token) as client, door.socket(token) as wire:
        before = await client.post("/v1/chat/completions", json=said)
        limited = await client.put("/api/users/owner/budget", json={"tokens": 10})
        after = await client.post("/v1/chat/completions", json=said)
        error = (await after.json())["error"]
        streamed = await (await client.post("/v1/chat/completions", json=said | {"stream": True})).text()
        await client.put("/api/users/house/budget", json={"tokens": 10})
        message = await client.post("/message", json=written)
        told = await message.text()
        await wire.send("message", id="m1", session="page:1", content="hello")
        frame = (await wire.until("error"))[-1]
        budget = (await wire.ask("/budget", "m2", "page:1"))[-1]["content"]
        lifted = [await client.put(f"/api/users/{who}/budget", json={}) for who in ("owner", "house")]
        again = await client.post("/v1/chat/completions", json=said)
    assert (before.status, limited.status, after.status, again.status) == (200, 200, 429, 200)
    assert (error["code"], after.headers["x-should-retry"]) == ("insufficient_quota", "false")
    sentence = "You have spent 0 of 10 tokens this month."
    assert error["message"].startswith(sentence)
    assert (sentence in streamed, "insufficient_quota" in streamed) == (True, True)
    assert (message.status, "What everyone together may spend here is used up" in told) == (429, True)
    assert (frame["code"], sentence in str(frame)) == ("budget", True)
    assert budget == f"{sentence}\nEveryone together has spent 0 of 10 tokens this month."
    assert [each.status for each in lifted] == [200, 200]


async def test_who_limits_money_is_told_that_the_model_has_no_price_and_each_conversation_counts_its_own(openings):
    door = await openings(ScriptedModel(lambda shown: Say("ok")))
    async with door.client(await door.token()) as client:
        limited, by_tokens = [
            await (await client.put("/api/users/owner/budget", json={"per": "session", **limit})).json()
            for limit in ({"money": 2.5}, {"tokens": 10})
        ]
    (note,) = limited["notes"]
    assert note.startswith("scripted has no price here, so nobody under a limit on money is answered by it")
    assert by_tokens["notes"] == []
    nothing = dict.fromkeys(("spent_tokens", "spent_money", "held_tokens", "held_money"))
    assert by_tokens["budgets"] == [{**LINE, **nothing, "per": "session", "tokens": 10, "money": None}]


async def test_a_budget_begins_anew_for_who_may_set_it_and_nobody_else(tmp_path: Path):
    async with (
        open_desk(tmp_path, provider=ScriptedModel(lambda shown: Say("ok"))) as agent,
        TestClient(TestServer(guarded(api.routes(agent), PEOPLE.get))) as client,
    ):
        for n, role in enumerate((Role.ADMIN, Role.ADMIN, Role.USER, Role.GUEST), 1):
            await agent.members.add(f"P{n}", role, Role.OWNER, f"web:{n}")
        clients, month = Clients(client), {"per": "month"}
        await clients.ask("owner", "PUT", "/api/users/web:3/budget", {"per": "month", "tokens": 10**6})
        await agent.ask("hello", "api:room", author="web:3")
        before = (await clients.ask("owner", "GET", "/api/users/web:3/budget"))[1]["budgets"][0]["spent_tokens"]
        statuses = {
            (who, whose): (await clients.ask(who, "POST", f"/api/users/{whose}/budget/anew", month))[0]
            for who, whose in (("user", "web:3"), ("guest", "web:3"), ("reader", "web:3"), ("admin", "web:2"))
        }
        still = (await clients.ask("owner", "GET", "/api/users/web:3/budget"))[1]["budgets"][0]["spent_tokens"]
        status, told = await clients.ask("admin", "POST", "/api/users/web:3/budget/anew", month)
        lines = [line.detail for line in await agent.store.audit() if line.deed == "budget.changed"]
    assert list(statuses.values()) == [403, 403, 403, 409]  # the last as of setting it
    assert (before == still > 0, status, told["budgets"][0]["spent_tokens"]) == (True, 200, 0)
    assert sum('"reset":true' in line.replace(" ", "") for line in lines) == 1
