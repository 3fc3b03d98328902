"""A model that is chosen before anything was said goes with the first message."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from everloop.app import serve
from everloop.app.records import open_records
from everloop.core.log import ModelChosen, UserSaid
from everloop.testing import Say
from everloop.testing.model_server import ModelServer

from ..conftest import Door
from ..test_files_out import token_of


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(lambda shown: Say(f"You said: {shown.asked}"), models=("good", "better")) as server:
        yield server


@pytest.fixture
async def door(tmp_path: Path, server: ModelServer) -> AsyncIterator[Door]:
    settings = {
        "gateway": {"port": 0},
        "agents": {"defaults": {"model": "custom/good"}},
        "providers": {"custom": {"api_base": server.url}},
        "models": {"quick": {"model": "custom/better"}},
    }
    async with serve(tmp_path / "home", settings) as gateway:
        yield Door(tmp_path / "home", gateway.url, gateway.link)


async def beginning(door: Door, session: str = "api:one") -> list[str]:
    """What was chosen and said there, in its order."""
    async with open_records(door.home) as records:
        row = await records.store.session(session)
        entries = [each.entry for each in await records.store.history(row.id)] if row else []
    kept = [each for each in entries if isinstance(each, ModelChosen | UserSaid)]
    return [f"model {each.model}" if isinstance(each, ModelChosen) else each.messages[0].text for each in kept]


async def said(wire: Any, content: str, id: str = "m1", **more: Any) -> dict[str, Any]:
    await wire.send("message", id=id, session="api:one", content=content, **more)
    frame = await wire.next()
    while frame["type"] not in ("response", "error"):
        frame = await wire.next()
    return frame


@pytest.mark.parametrize(("name", "kept"), [("quick", "quick"), ("custom/better", "custom/better")])
async def test_it_answers_that_message_and_what_follows(door, server, name, kept):
    async with door.socket() as wire:
        await said(wire, "hi", model=name)
        await said(wire, "and?", "m2")
    assert [asked.body["model"] for asked in server.requests] == ["better", "better"]
    assert await beginning(door) == [f"model {kept}", "hi", "and?"]


async def test_the_same_message_twice_is_one_and_the_same_choice_is_made_once(door, server):
    async with door.socket() as wire:
        for id in ("m1", "m1", "m2"):
            await said(wire, "hi", id, model="quick")
    assert await beginning(door) == ["model quick", "hi", "hi"]
    assert server.calls == 2


async def test_default_is_the_model_of_the_settings(door, server):
    async with door.socket() as wire:
        await said(wire, "hi", model="quick")
        await said(wire, "and?", "m2", model="default")
    assert [asked.body["model"] for asked in server.requests] == ["better", "good"]


async def test_a_model_that_cannot_be_had_refuses_the_message_and_begins_nothing(door, server):
    async with door.socket() as wire:
        refused = await said(wire, "hi", model="nosuch/x")
        assert (refused["type"], refused["id"], refused["thread"]) == ("error", "m1", None)
        assert "nosuch/x" in refused["content"]
        too_long = await said(wire, "x" * 300_000, "m2", model="quick")
        assert too_long["type"] == "error"
    assert (await beginning(door), server.calls) == ([], 0)


async def test_it_is_for_those_who_may_say_model(door, server):
    token = await token_of(door, "ada")
    async with door.socket(token) as wire:
        assert (await said(wire, "hi", model="quick"))["type"] == "response"
    database = apsw.Connection(str(door.home / "everloop.db"))
    database.execute("PRAGMA busy_timeout = 10000")
    database.execute("UPDATE users SET role = 'guest' WHERE id = 'ada'")
    database.close()
    async with door.socket(token) as wire:
        refused = await said(wire, "and?", "m2", model="custom/better")
        plain = await said(wire, "/model custom/better", "m3")
    assert (refused["code"], plain["content"]) == ("forbidden", "/model is not for guests: it needs a user.")
    assert server.calls == 1
