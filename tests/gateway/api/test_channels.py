"""Channels through the API of an open gateway: set up, tried, seen and removed by the owner, without a restart."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from everloop.testing import ScriptedModel
from tests.channels.parrot import PASSWORD, TOKEN, Cage, plugged_in
from tests.gateway.api.test_api import OWNER, USER
from tests.gateway.api.test_api import opened as at_stand
from tests.gateway.api.test_setup import Door, opened

NO_FEISHU = "but this version has no channel for Feishu: nothing listens there."
POLLY = {"account": "polly", "missing": [], "link": "https://parrot.example/polly"}


@pytest.fixture
async def cage() -> AsyncIterator[Cage]:
    async with Cage().open() as cage:
        yield cage


@pytest.fixture(autouse=True)
def package() -> Iterator[None]:
    with plugged_in():
        yield


async def states(door: Door) -> dict[str, str]:
    return {each["name"]: each["state"] for each in (await door.get("/api/channels"))["channels"]}


async def until_listening(door: Door, name: str) -> None:
    async with asyncio.timeout(30):
        while True:
            if (await states(door))[name] == "listening":
                return
            await asyncio.sleep(0.05)


def put(door: Door, values: dict[str, str], **more: Any) -> Any:
    return door.send("PUT", "/api/channels/parrot", {"values": values, **more})


async def test_a_channel_is_set_up_tried_listens_and_is_removed(tmp_path: Path, cage: Cage):
    async with opened(tmp_path, provider=ScriptedModel([])) as door:
        shown = await door.get("/api/channels/parrot")
        refused = await put(door, {"url": cage.url, "token": "wrong-canary-token"})
        away = await put(door, {"url": "http://127.0.0.1:9", "token": TOKEN})
        nothing = (door.file, (await states(door))["parrot"])
        added = await put(door, {"url": cage.url, "token": TOKEN})
        await until_listening(door, "parrot")
        tested = await door.send("POST", "/api/channels/parrot/test", {})
        answers = {"url": cage.url, "password": PASSWORD}
        logged_in = await door.send("POST", "/api/channels/parrot/login", {"values": answers})
        written = door.file
        removed = await door.send("DELETE", "/api/channels/parrot")
        gone = await door.send("DELETE", "/api/channels/parrot")
        left = (door.file, (await states(door))["parrot"])
    assert [field["name"] for field in shown["fields"]] == ["url", "token", "nickname"]
    assert (shown["channel"]["state"], shown["steps"]) == (
        "unset",
        ["Ask the parrot for a token, which it tells whoever feeds it."],
    )
    sentence = "The parrot does not know the token …; ask it for another. Nothing was written."
    assert refused == (409, {"error": {"code": "channel_refused", "message": sentence}})
    assert (away[0], away[1]["error"]["code"], nothing) == (409, "channel_down", ("", "unset"))
    assert (added[0], added[1]["probed"], tested) == (200, POLLY, (200, {"probed": POLLY}))
    assert (logged_in[0], logged_in[1]["probed"]) == (200, POLLY)
    assert written == f'[channels.parrot]\nurl = "{cage.url}"\ntoken = "${{vault:parrot.token}}"\n'
    assert removed == (200, {"name": "parrot", "left": []})
    assert (gone[0], left) == (409, ("", "unset"))
    everything = str((shown, refused, away, added, tested, logged_in, removed))
    assert (TOKEN in everything, PASSWORD in everything) == (False, False)


@pytest.mark.parametrize("value", ["${HOME}", "x${vault:other}", "${"])
async def test_nothing_is_fetched_out_of_the_environment_or_the_vault_by_who_asks_from_elsewhere(
    tmp_path: Path, cage: Cage, value: str
):
    async with opened(tmp_path, provider=ScriptedModel([])) as door:
        status, told = await put(door, {"url": cage.url, "token": TOKEN, "nickname": value}, test=False)
        assert (status, told["error"]["code"], door.file) == (409, "setting_refused", "")


async def test_what_is_wrong_is_listed_with_why_and_there_is_no_channel_that_there_is_not(tmp_path: Path):
    channels = {"parrot": {"url": "http://x", "token": "tiny"}, "feishu": {"appId": "x"}, "webhook": 3}
    async with opened(tmp_path, {"channels": channels}, provider=ScriptedModel([])) as door:
        rows = {each["name"]: each for each in (await door.get("/api/channels"))["channels"]}
        missing = [await door.send("GET", "/api/channels/nobody"), await door.send("DELETE", "/api/channels/nobody")]
        nobodys = await door.get("/api/channels/feishu")
        over = await put(door, {"url": "http://127.0.0.1:9", "token": TOKEN}, test=False)
    assert {name: (each["state"], each["why"]) for name, each in rows.items() if each["state"] == "wrong"} == {
        "parrot": ("wrong", "channels.parrot.token is too short: …"),
        "feishu": (
            "wrong",
            "channels.feishu is set, but this version has no channel for Feishu: nothing listens there.",
        ),
        "webhook": ("wrong", "channels.webhook must be a table of settings"),
    }
    assert [status for status, _ in missing] == [404, 404]
    assert (nobodys["fields"], "is also set by the environment" in over[1]["error"]["message"]) == ([], True)


async def test_a_token_of_some_scopes_sets_up_nothing(tmp_path: Path, cage: Cage):
    scopes = ("admin", "read", "chat")
    async with opened(tmp_path, scopes=scopes, provider=ScriptedModel([])) as door:
        values = {"url": cage.url, "token": TOKEN}
        asked = [
            await put(door, values),
            await door.send("DELETE", "/api/channels/parrot"),
            await door.send("POST", "/api/channels/parrot/login", {"values": values}),
        ]
        assert [status for status, _ in asked] == [403, 403, 403]
        assert ((await door.send("GET", "/api/channels"))[0], door.file) == (200, "")


async def test_only_who_may_see_settings_is_told_what_is_wrong_in_them(tmp_path: Path):
    channels = {"webhook": {"url": "ftp://x", "secret": "${SECRET_PLACE}"}}
    async with at_stand(tmp_path, {"channels": channels}) as (_, client):
        notices = [(await (await client.get("/api/models", headers=who)).json())["notice"] for who in (OWNER, USER)]
    assert ["SECRET_PLACE" in each for each in notices] == [True, False]
