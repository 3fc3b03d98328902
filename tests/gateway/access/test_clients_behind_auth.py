"""The doors for other programs as they stand in the real gateway: with its tokens, scopes and checks."""

import openai
import pytest
from aiohttp import ClientSession

from everloop.testing import Say, ScriptedModel

HI = [{"role": "user", "content": "hi"}]


def client(door, token: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{door.url}/v1", api_key=token, max_retries=0)


async def test_a_token_that_may_chat_is_answered_in_both_dialects(openings):
    door = await openings(ScriptedModel([Say("one"), Say(["t", "wo"]), Say("three")]))
    async with client(door, await door.token("chat")) as mine:
        assert (await mine.chat.completions.create(model="everloop", messages=HI)).choices[0].message.content == "one"
        stream = await mine.chat.completions.create(model="everloop", messages=HI, stream=True)
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "two"
        assert (await mine.responses.create(model="everloop", input="hi")).output_text == "three"


async def test_a_token_that_may_only_look_sees_the_models_and_is_not_answered(openings):
    door = await openings(ScriptedModel([]))
    async with client(door, await door.token("read")) as looking:
        assert [model.id async for model in await looking.models.list()] == ["everloop", "everloop/bare"]
        with pytest.raises(openai.PermissionDeniedError) as told:
            await looking.chat.completions.create(model="everloop", messages=HI)
    assert told.value.code == "forbidden"


async def test_a_revoked_token_and_none_at_all_are_refused_at_once(openings):
    door = await openings(ScriptedModel([]))
    token = await door.token("chat", name="gone")
    await door.revoke("gone")
    for credential in (token, "nonsense"):
        async with client(door, credential) as theirs:
            with pytest.raises(openai.AuthenticationError):
                await theirs.responses.create(model="everloop", input="hi")


async def test_a_bot_speaks_through_the_platform_door(openings):
    door = await openings(ScriptedModel([Say("hello")]))
    message = {"platform": "discord", "platform_user_id": "7", "content": "hi"}
    async with door.client(await door.token("chat")) as bot, bot.post("/message", json=message) as answer:
        assert (answer.status, (await answer.json())["content"]) == (200, "hello")
    async with door.client() as nobody, nobody.post("/message", json=message) as answer:
        assert answer.status == 401


async def test_what_a_client_says_in_a_session_is_seen_on_the_socket(openings):
    door = await openings(ScriptedModel([Say("hello")]))
    session = {"X-Everloop-Session": "api:default"}
    async with client(door, await door.token("chat")) as mine:
        await mine.chat.completions.create(model="everloop", messages=HI, extra_headers=session)
    async with door.socket() as wire:
        await wire.send("history", session="api:default", thread=None, before=None)
        (frame,) = await wire.until("history_result")
    kinds = [entry.get("kind") or entry["entry"]["kind"] for entry in frame["entries"]]
    assert kinds == ["user_said", "model_called", "model_said"]


async def test_a_token_that_does_not_hold_is_told_from_none_at_all(openings):
    door = await openings(ScriptedModel([]))
    told = []
    for headers in ({}, {"Authorization": "Bearer nope"}):
        async with ClientSession(headers=headers) as session, session.get(f"{door.url}/v1/models") as answer:
            told.append((answer.status, (await answer.json())["error"]))
    assert [(status, error["type"], error["code"]) for status, error in told] == [
        (401, "authentication_error", "invalid_api_key")
    ] * 2
    assert told[0][1]["message"].startswith("send a token")
    assert told[1][1]["message"].startswith("this token does not hold")
    async with client(door, "nope") as theirs:
        with pytest.raises(openai.AuthenticationError):
            await theirs.models.list()
