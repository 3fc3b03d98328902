"""Through every door of the gateway, a person who is not the owner meets nothing of the owner's files."""

from pathlib import Path
from typing import Any

import pytest

from everloop.app.access import new_token, token_scopes
from everloop.app.records import open_records
from everloop.core.people import role_named
from everloop.ports.directory import Person
from everloop.testing import ScriptedModel
from tests.gateway.conftest import Door
from tests.gateway.http_doors import PLATFORMS
from tests.runtime.test_principals import CANARY, TRIES, Trying, furnished


async def token_of(door: Door, person: str, role: str) -> str:
    async with open_records(door.home) as records:
        if person != "owner":
            accounts = (person,) if ":" in person else ()
            await records.store.introduce(Person(person, person, role_named(role), accounts=accounts))
        return await new_token(records.store, person, "theirs", token_scopes(), platforms=PLATFORMS)


async def by_websocket(door: Door, token: str, person: str) -> str:
    async with door.socket(token) as wire:
        return (await wire.ask("look for it", session=f"api:{person}"))[-1]["content"]


async def by_chat(door: Door, token: str, person: str) -> str:
    asked = {"model": "everloop", "messages": [{"role": "user", "content": "look for it"}]}
    async with door.client(token) as client, client.post("/v1/chat/completions", json=asked) as answer:
        return (await answer.json())["choices"][0]["message"]["content"]


async def by_responses(door: Door, token: str, person: str) -> str:
    asked = {"model": "everloop", "input": "look for it"}
    async with door.client(token) as client, client.post("/v1/responses", json=asked) as answer:
        (said,) = (item for item in (await answer.json())["output"] if item["type"] == "message")
        return said["content"][0]["text"]


@pytest.mark.parametrize("speak", [by_websocket, by_chat, by_responses])
@pytest.mark.parametrize("person, role", [("ada", "admin"), ("una", "user"), ("owner", "owner")])
async def test_only_the_owner_is_shown_the_owners_files(openings: Any, tmp_path: Path, speak: Any, person, role):
    furnished(tmp_path / "home")
    trying = Trying()
    door = await openings(ScriptedModel(trying))
    said = await speak(door, await token_of(door, person, role), person)
    assert (said, len(trying.shown)) == ("done", len(TRIES) + 1)
    assert (CANARY in trying.saw()) is (person == "owner")


async def test_a_stranger_of_a_platform_has_no_tools_that_would_find_them(openings: Any, tmp_path: Path):
    furnished(tmp_path / "home")
    trying = Trying()
    door = await openings(ScriptedModel(trying))
    asked = {"platform": "chat", "platform_user_id": "7", "content": "look for it"}
    token = await token_of(door, "owner", "owner")
    async with door.client(token) as client, client.post("/message", json=asked):
        pass  # whatever it comes to: nothing that it tries is there
    assert (len(trying.shown) > 1, trying.shown[0].tools, CANARY in trying.saw()) == (
        True,
        ("read_file", "web_fetch", "message", "web_search"),
        False,
    )
