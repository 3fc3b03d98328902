"""Models to choose from, over the API: what is known of each, and what the connected hosts list."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from everloop.testing import Say, ScriptedModel
from everloop.testing.model_server import ModelServer

from ..test_files_out import token_of
from .test_setup import LOCAL, no_keys, opened  # noqa: F401  # a fixture


class ListingHost:
    """Lists a model, or does not answer before `gate` is open."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.status = 200
        self.asked = 0
        self.url = ""

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self.asked += 1
        await self.gate.wait()
        row = {
            "id": "big",
            "context_length": 200_000,
            "max_completion_tokens": 64_000,
            "capabilities": ["vision", "tools"],
        }
        return web.json_response({"data": [row, {"id": "text-embedding-9"}]}, status=self.status)


@pytest.fixture
async def host() -> AsyncIterator[ListingHost]:
    listing = ListingHost()
    runner = web.ServerRunner(web.Server(listing.handle), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    listing.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield listing
    listing.gate.set()
    await runner.cleanup()


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(lambda shown: Say("hello"), models=("good", "better")) as server:
        yield server


def settings(server: ModelServer, host: ListingHost) -> dict[str, Any]:
    return {
        "agents": {"defaults": {"model": "custom/good"}},
        "providers": {
            **LOCAL,
            "custom": {"api_base": server.url},
            "mine": {"api_base": host.url, "api_key": "sk-canary"},
        },
        "models": {"quick": {"model": "mine/big", "context_window": 9000}, "gone": {"model": "nosuch/x"}},
        "prices": {"custom/*": {"input": 3.0, "output": 15.0}},
    }


GOOD = {"window": 128_000, "answer": None, "input": 3.0, "output": 15.0, "sees": None, "tools": None}


async def test_each_choice_says_what_it_reads_and_costs_as_far_as_that_is_known(tmp_path: Path, server, host):
    async with opened(tmp_path, settings(server, host)) as door:
        before = await door.get("/api/models")
        await door.ask("hi")
        after = await door.get("/api/models")
    unknown = {"window": None, "answer": None, "input": None, "output": None, "local": False}
    usual = {**unknown, "name": "custom/good", "model": "custom/good", "default": True, "input": 3.0, "output": 15.0}
    assert before["choices"] == [
        usual,
        {**unknown, "name": "quick", "model": "mine/big", "default": False, "window": 9000},
        {**unknown, "name": "gone", "model": "nosuch/x", "default": False},
    ]
    assert after["choices"][0] == {**usual, "window": 128_000}  # its host was asked before the first answer


async def test_a_host_that_does_not_answer_holds_up_no_other(tmp_path: Path, server, host):
    async with opened(tmp_path, settings(server, host)) as door:
        hosts = await door.get("/api/hosts")
        waiting = asyncio.create_task(door.get("/api/hosts/mine/models"))
        custom = await door.get("/api/hosts/custom/models")
        assert not waiting.done()
        host.gate.set()
        mine = await waiting
    assert hosts == {"hosts": [{"name": name, "configured": True} for name in ("custom", *LOCAL, "mine")]}
    assert custom == {
        "name": "custom",
        "state": "",
        "why": "",
        "models": [{"name": "custom/better", **GOOD}, {"name": "custom/good", **GOOD}],
    }
    big = {"window": 200_000, "answer": 64_000, "input": None, "output": None, "sees": True, "tools": True}
    assert mine["models"] == [{"name": "mine/big", **big}]  # what cannot talk is left out


async def test_many_who_look_at_once_ask_a_host_once(tmp_path: Path, server, host):
    host.gate.set()
    async with opened(tmp_path, settings(server, host)) as door:
        told = await asyncio.gather(*(door.get("/api/hosts/mine/models") for _ in range(5)))
    assert ([len(each["models"]) for each in told], host.asked) == ([1] * 5, 1)


async def test_a_host_that_refuses_is_said_to_and_left_alone_for_a_while(tmp_path: Path, server, host):
    host.gate.set()
    host.status = 401
    async with opened(tmp_path, settings(server, host)) as door:
        owner = [await door.get("/api/hosts/mine/models") for _ in range(2)]
        token = await token_of(door, "ada")
        async with door.client.get("/api/hosts/mine/models", headers={"Authorization": f"Bearer {token}"}) as answer:
            told = await answer.json()
        nobody = await door.send("GET", "/api/hosts/nosuch/models")
    assert (owner[0], host.asked) == (owner[1], 1)
    assert (owner[0]["state"], "refuses the key" in owner[0]["why"]) == ("key refused", True)
    assert told == {"name": "mine", "state": "key refused", "why": "", "models": []}  # no word of where it is
    assert (nobody[0], nobody[1]["error"]["code"]) == (404, "not_found")


async def test_a_house_with_one_model_of_its_own_has_no_hosts(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel([])) as door:
        assert await door.get("/api/hosts") == {"hosts": []}
        assert (await door.get("/api/models"))["choices"][0]["window"] is None
