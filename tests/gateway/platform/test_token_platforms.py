"""A bot's word on who wrote counts for the platforms that its token names, and for no other."""

from pathlib import Path
from typing import Any

import pytest

from everloop.app.access import new_token
from everloop.app.records import open_records
from everloop.core.people import Role
from everloop.errors import EverloopError
from everloop.ports.directory import Person
from everloop.testing import Say, ScriptedModel
from tests.gateway.conftest import Door

HI = {"platform_user_id": "7", "content": "hi"}
NOT_NAMED = (
    "This token does not name the platform 'telegram': make a token that does, with "
    "`everloop tokens create NAME --platform PLATFORM`, or in the page under Access."
)


async def bot(door: Door, *platforms: str, name: str = "bot", owner: str = "owner") -> str:
    async with open_records(door.home) as records:
        return await new_token(records.store, owner, name, ("chat",), platforms=platforms)


async def say(door: Door, token: str, platform: str, path: str = "/message") -> tuple[int, Any]:
    async with door.client(token) as client, client.post(path, json={**HI, "platform": platform}) as answer:
        return answer.status, (await answer.json())["error"] if answer.content_type == "application/json" else None


def answering() -> ScriptedModel:
    return ScriptedModel(lambda shown: Say("hello"))


@pytest.mark.parametrize("path", ["/message", "/message/stream"])
async def test_a_platform_that_the_token_does_not_name_is_refused_with_a_way_out_and_nothing_is_kept(
    openings: Any, path: str
):
    model = answering()
    door = await openings(model)
    token = await bot(door, "discord")
    assert await say(door, token, "telegram", path) == (403, {"code": "platform_not_named", "message": NOT_NAMED})
    async with open_records(door.home) as records:
        assert (model.calls, await records.store.conversations("owner")) == (0, [])
    assert await say(door, token, "discord", path) == (200, None)  # the control


async def test_a_name_is_that_very_name(openings: Any):
    door = await openings(answering())
    token = await bot(door, "discord")
    others = ["Discord", "discord ", "discor", "discord/", "discord:7", "x/discord", "disco%72d", "%64iscord"]
    assert [(await say(door, token, each))[0] for each in others] == [403] * len(others)
    assert (await say(door, token, "discord"))[0] == 200


async def test_a_token_that_names_none_speaks_for_none_nor_does_a_login(openings: Any):
    door = await openings(answering())
    assert (await say(door, await bot(door), "discord"))[0] == 403
    async with door.client() as client:
        async with client.get(door.link, allow_redirects=False) as answer:
            cookie = answer.headers["Set-Cookie"].split(";")[0]
        headers = {"Cookie": cookie, "Origin": door.url}
        async with client.post("/auth/session", headers=headers) as answer:
            page = (await answer.json())["token"]
    assert (await say(door, page, "discord"))[0] == 403


async def test_what_is_named_may_hold_anything_that_can_be_seen(openings: Any):
    door = await openings(answering())
    named = ("my team/chat", "ünï:code", "100%")
    token = await bot(door, *named)
    assert [(await say(door, token, each))[0] for each in named] == [200, 200, 200]
    async with open_records(door.home) as records:
        (row,) = [row for row in await records.store.tokens("owner") if row.name == "bot"]
    assert row.platforms == tuple(sorted(named))


async def test_a_token_makes_none_that_names_more_than_itself_and_a_login_names_what_it_likes(openings: Any):
    door = await openings(answering())
    async with open_records(door.home) as records:
        admin = await new_token(records.store, "owner", "admin", ("admin", "chat"), platforms=("discord",))

    async def make(token: str, name: str, *platforms: str) -> tuple[int, str]:
        wanted = {"name": name, "scopes": ["chat"], "platforms": list(platforms)}
        async with door.client(token) as client, client.post("/api/tokens", json=wanted) as answer:
            told = await answer.json()
            return answer.status, told["error"]["message"] if "error" in told else ""

    refused = (403, "This token does not name the platform 'telegram' itself.")
    assert await make(admin, "one", "discord", "telegram") == refused
    assert await make(admin, "two", "discord") == (201, "")
    async with door.client() as client:
        async with client.get(door.link, allow_redirects=False) as answer:
            headers = {"Cookie": answer.headers["Set-Cookie"].split(";")[0], "Origin": door.url}
        async with client.post("/auth/session", headers=headers) as answer:
            page = (await answer.json())["token"]
    assert await make(page, "three", "telegram") == (201, "")


@pytest.mark.parametrize(
    ("platforms", "scopes", "why"),
    [
        ((" discord",), ("chat",), "a platform has a name of 1 to 100 characters that can be seen"),
        (("a\nb",), ("chat",), "a platform has a name"),
        (("\udc80",), ("chat",), "a platform has a name"),
        (("",), ("chat",), "a platform has a name"),
        (("x" * 101,), ("chat",), "a platform has a name"),
        (("discord",), ("read",), "needs the scope chat"),
        (tuple(f"p{n}" for n in range(51)), ("chat",), "at most 50 platforms"),
    ],
)
async def test_what_could_not_be_a_platform_is_refused_in_a_sentence(
    tmp_path: Path, platforms: tuple[str, ...], scopes: tuple[str, ...], why: str
):
    async with open_records(tmp_path) as records:
        with pytest.raises(EverloopError, match=why):
            await new_token(records.store, "owner", "bot", scopes, platforms=platforms)
        assert [row.name for row in await records.store.tokens("owner")] == []


async def test_the_token_of_somebody_elses_bot_is_bound_as_well(openings: Any):
    door = await openings(answering())
    async with open_records(door.home) as records:
        await records.store.introduce(Person("ada", "Ada", Role.USER))
    token = await bot(door, "discord", owner="ada")
    assert [(await say(door, token, each))[0] for each in ("discord", "telegram")] == [200, 403]
