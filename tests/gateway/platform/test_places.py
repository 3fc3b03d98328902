"""Whose a place is: what is said in a group is about the group's files through every door, and no bot speaks for people
whom another's bot knows."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from everloop.app.records import open_records
from everloop.ports.budgets import Limit
from everloop.readings.keys import author_of, group_at, place_of
from everloop.testing import Say, ScriptedModel, Shown
from tests.gateway.access.test_principals import token_of
from tests.gateway.conftest import Door
from tests.runtime.test_principals import by_asking, furnished

HERE = {"platform": "discord", "platform_user_id": "7", "platform_server_id": "s1", "platform_channel_id": "c1"}
GROUP = "platform:discord/s1/c1"
SPY = 'read_file {"path": "notes.txt"}'


async def message(door: Door, token: str, content: str = "hi", **more: Any) -> tuple[int, Any]:
    asked = {**HERE, **more, "content": content}
    async with door.client(token) as client, client.post("/message", json=asked) as answer:
        return answer.status, (await answer.json())["content"]


async def by_page(door: Door, token: str, text: str) -> str:
    async with door.socket(token) as wire:
        return (await wire.ask(text, session=GROUP))[-1]["content"]


async def by_chat(door: Door, token: str, text: str) -> str:
    asked = {"model": "everloop", "messages": [{"role": "user", "content": text}]}
    async with (
        door.client(token, **{"X-Everloop-Session": GROUP}) as client,
        client.post("/v1/chat/completions", json=asked) as answer,
    ):
        return (await answer.json())["choices"][0]["message"]["content"]


async def by_edit(door: Door, token: str, text: str) -> str:
    async with door.client(token) as client, client.get("/api/sessions") as answer:
        (found,) = (await answer.json())["sessions"]
    async with door.client(token) as client, client.post(f"/api/sessions/{found['id']}/edit", json={"content": text}):
        return await by_page(door, token, "and?")


def obliging(shown: Shown) -> Any:
    return by_asking(shown) if shown.asked.startswith("read_file") else Say(f"{shown.said}")


@pytest.mark.parametrize("speak", [by_page, by_chat, by_edit])
async def test_the_owner_in_a_group_shows_it_nothing_of_their_own_files(openings: Any, tmp_path: Path, speak: Any):
    furnished(tmp_path / "home")
    model = ScriptedModel(obliging)
    door = await openings(model)
    token = await token_of(door, "owner", "owner")
    await message(door, token)
    await speak(door, token, SPY)
    shown = [str(prompt.said) for prompt in model.prompts]
    assert any("read_file" in text for text in shown)
    assert not any("CANARY" in text for text in shown)


async def test_the_owner_alone_is_shown_them_and_so_the_test_above_would_see_it(openings: Any, tmp_path: Path):
    furnished(tmp_path / "home")
    door = await openings(ScriptedModel(obliging))
    async with door.socket() as wire:
        assert "CANARY" in (await wire.ask(SPY, session="api:mine"))[-1]["content"]


@pytest.mark.parametrize(("bots", "tools"), [("owner", True), ("bob", False)])
async def test_only_the_owners_bot_is_believed_who_speaks(openings: Any, bots: str, tools: bool):
    """Else whoever has a token speaks with the rights, and in the workspace, of everyone the owner has introduced."""
    model = ScriptedModel(lambda shown: Say("hi"))
    door = await openings(model)
    await token_of(door, "web:ada", "admin")
    token = await token_of(door, bots, "user")
    there = {"platform": "web", "platform_user_id": "ada", "platform_channel_id": None, "platform_thread_id": "t"}
    assert await message(door, token, **there) == (200, "hi")
    assert ("exec" in model.prompts[0].tools) is tools


def test_a_group_of_one_persons_bot_is_not_that_of_anothers():
    there = [place_of("platform", "discord", "s1", user="7", room="c1", thread=thread) for thread in ("", "t")]
    whose = {owner: {group_at(place, owner) for place in there} for owner in ("owner", "bob", "web:bob")}
    assert whose == {
        "owner": {"chat:platform/discord/s1/c1"},
        "bob": {"chat:platform:bob/discord/s1/c1"},
        "web:bob": {"chat:platform:web%3Abob/discord/s1/c1"},
    }
    alone = place_of("platform", "discord", "s1", user="7", room="")
    assert (group_at(alone, "owner"), group_at(place_of("api", user="", room="c1"), "owner")) == ("", "")
    assert author_of("web%3Abob/discord", "7") != author_of("discord", "7")


async def test_whom_another_persons_bot_names_is_paid_for_by_that_person(openings: Any):
    """Or whoever may spend nothing would spend as guests whom they invent."""
    door = await openings(ScriptedModel(lambda shown: Say("ok")))
    token = await token_of(door, "ada", "user")
    async with open_records(door.home) as records:
        await records.budgets.assign("ada", "month", Limit(0))
    spent = [
        (await message(door, by, platform_user_id=f"sock{n}", platform_channel_id=room))[0]
        for by in (token, await door.token())  # the control: whom the owner's bot names pays for themselves
        for n, room in enumerate(("room", None))
    ]
    assert spent == [429, 429, 200, 200]


async def test_what_another_persons_bot_brings_takes_room_of_that_person(openings: Any):
    """Or they would keep files in as many rooms as they invent."""
    door = await openings(ScriptedModel(lambda shown: Say("ok")), files={"quota": 1_000_000})
    token = await token_of(door, "ada", "user")
    taken = []
    for by in (token, await door.token()):
        for n in range(3):
            data = b64encode(bytes([n]) * 600_000).decode()
            attachment = {"url": f"data:application/octet-stream;base64,{data}", "filename": "a.bin"}
            taken.append((await message(door, by, platform_channel_id=f"room{n}", attachments=[attachment]))[0])
    assert taken == [200, 413, 413, 200, 200, 200]  # of the owner's bot each room has its own
