"""A slash and one word is for everloop at every door: what there is not is answered, and no model is asked."""

from typing import Any

import pytest
from aiohttp import ClientSession

from everloop.testing import Say, ScriptedModel
from tests.gateway.http_doors import TOKEN, Serve, Served
from tests.gateway.platform.test_platform import HI

UNKNOWN = "There is no /nonsens. /help shows what there is. To say this to the model, begin with //nonsens."


async def send(served: Served, path: str, body: dict[str, Any]) -> Any:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Everloop-Session": "api:mine"}
    async with (
        ClientSession() as session,
        session.post(f"{served.url}{path}", json=body, headers=headers) as answer,
    ):
        return await answer.json()


async def chat(served: Served, text: str) -> str:
    body = {"model": "everloop", "messages": [{"role": "user", "content": text}]}
    return (await send(served, "/v1/chat/completions", body))["choices"][0]["message"]["content"]


async def respond(served: Served, text: str) -> str:
    answer = await send(served, "/v1/responses", {"model": "everloop", "input": text})
    return answer["output"][-1]["content"][0]["text"]


async def message(served: Served, text: str) -> str:
    return (await send(served, "/message", {**HI, "content": text}))["content"]


async def ask(served: Served, text: str) -> str:
    return (await served.agent.ask(text)).content


DOORS = [chat, respond, message, ask]


@pytest.mark.parametrize("door", DOORS)
async def test_a_command_that_there_is_not_is_answered_and_no_model_is_asked(serve: Serve, door):
    model = ScriptedModel([])
    async with serve(model) as served:
        assert await door(served, "/nonsens of mine") == UNKNOWN
    assert model.prompts == []


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("typed, said", [("//nonsens of mine", "/nonsens of mine"), ("/etc/hosts is broken",) * 2])
async def test_what_is_meant_for_the_model_comes_to_it(serve: Serve, door, typed: str, said: str):
    model = ScriptedModel([Say("I see")])
    async with serve(model) as served:
        assert await door(served, typed) == "I see"
    assert said in model.prompts[0].said[-1][1].splitlines()


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/modle x", "There is no /modle. Did you mean /model? /help shows what there is."),
        ("/stop the press", "/stop stands alone. To say this to the model, begin with //stop."),
        ("/help me", "/help stands alone."),
        ("/NEW idea", "/new stands alone."),
    ],
)
async def test_one_is_told_what_may_have_been_meant(serve: Serve, typed: str, told: str):
    async with serve(ScriptedModel([])) as served:
        assert (await ask(served, typed)).startswith(told)


@pytest.mark.parametrize("path, body", [("chat/completions", {"messages": [{"role": "user", "content": "/help"}]}),
                                        ("responses", {"input": "/help"})])  # fmt: skip
async def test_in_a_request_without_a_session_it_is_text_of_whoever_wrote_it(serve: Serve, path: str, body: dict):
    model = ScriptedModel([Say("I see")])
    async with serve(model) as served, ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session:
        await session.post(f"{served.url}/v1/{path}", json={"model": "everloop", **body})
    assert model.prompts[0].said[-1][1].startswith("/help")
