"""What was used, through the API and in a chat: everybody's for administrators, for anybody else their own."""

from pathlib import Path
from typing import Any

import pytest

from everloop.app.access import new_token
from everloop.app.records import open_records
from everloop.core.people import Role
from everloop.ports.directory import Person
from everloop.testing import Say, ScriptedModel
from tests.gateway.api.test_setup import Door, opened


async def names(door: Door, token: str, query: str) -> list[tuple[str, str]]:
    async with door.client.get(f"/api/usage{query}", headers={"Authorization": f"Bearer {token}"}) as answer:
        told: Any = await answer.json()
        assert answer.status == 200, told
    return [(row["name"], row["label"]) for row in told["rows"]]


async def say(door: Door, token: str, text: str, session: str) -> str:
    body = {"model": "everloop", "messages": [{"role": "user", "content": text}]}
    headers = {"Authorization": f"Bearer {token}", "X-Everloop-Session": session}
    async with door.client.post("/v1/chat/completions", json=body, headers=headers) as answer:
        told: Any = await answer.json()
        return str(told["choices"][0]["message"]["content"])


@pytest.mark.parametrize("role", [Role.USER, Role.ADMIN])
async def test_whoever_is_no_administrator_sees_their_own(tmp_path: Path, role: Role):
    async with opened(tmp_path, provider=ScriptedModel(lambda shown: Say("hello"))) as door:
        async with open_records(tmp_path) as records:
            await records.store.introduce(Person("web:7", "Anna", role))
            hers = await new_token(records.store, "web:7", "hers", ("read", "chat"))
            owners = await new_token(records.store, "owner", "owners", ("read", "chat"))
        await say(door, hers, "hi", "page:hers")
        await say(door, owners, "hi", "test:one")
        own, both = [("web:7", "Anna")], [("owner", "owner"), ("web:7", "Anna")]
        seen = own if role is Role.USER else both
        assert await names(door, hers, "?by=person") == seen
        assert await names(door, hers, "?by=person&who=owner") == (own if role is Role.USER else both[:1])
        assert len(await names(door, hers, "?by=channel")) == len(seen)
        assert await names(door, owners, "?by=person") == both
        assert await names(door, owners, "?who=web:7") == [("scripted", "")]
        async with door.client.get("/api/usage?by=nonsense") as answer:
            assert answer.status == 400
        told = await say(door, hers, "/usage channel", "page:hers")
        whose = "By you" if role is Role.USER else "In all"
        lines = told.splitlines()
        assert (lines[0], len(lines)) == (f"{whose}, in the last 30 days:", 1 + len(seen))
        people = (await say(door, hers, "/usage person", "page:hers")).splitlines()
        if role is Role.USER:
            assert people == ["What was used is told by day, model, channel, job, tool."]
        else:
            assert {line.partition(": ")[0] for line in people[1:]} == {"owner", "web:7"}
        assert "is told by day" in await say(door, hers, "/usage everything", "page:hers")
