"""What nobody knows of what was done is told through every HTTP door, whatever the model says."""

import asyncio

import aiohttp
import pytest

from everloop.core.people import Role
from everloop.core.tool import Effect
from everloop.testing import Call, Say, ScriptedModel
from everloop.tools.decorator import tool

from ..http_doors import TOKEN, Serve

SENTENCE = "Not known whether this took effect: pay {}"
TOLD = f"all paid\n\n{SENTENCE}"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Idempotency-Key": "k1", "X-Everloop-Session": "api:mine"}
MESSAGE = {"platform": "discord", "platform_user_id": "7", "content": "pay", "id": "m1"}


def content_of(door: str, answer: dict) -> str:
    match door:
        case "chat/completions":
            return answer["choices"][0]["message"]["content"]
        case "responses":
            return answer["output"][0]["content"][0]["text"]
    return answer["content"]


@pytest.mark.parametrize(
    "door, path, body",
    [
        ("chat/completions", "/v1/chat/completions", {"messages": [{"role": "user", "content": "pay"}]}),
        ("responses", "/v1/responses", {"input": "pay"}),
        ("message", "/message", MESSAGE),
    ],
)
async def test_a_request_that_is_made_again_after_a_crash_is_told(serve: Serve, door: str, path: str, body: dict):
    begun, runs = asyncio.Event(), []

    @tool(Effect.UNSAFE, permission=Role.GUEST)
    async def pay() -> str:
        """Pay."""
        runs.append(1)
        begun.set()
        await asyncio.Event().wait()
        return ""

    async with aiohttp.ClientSession(headers=HEADERS) as client:
        settings = {"agents": {"shutdown_seconds": 0.0}}
        async with serve(ScriptedModel([Call("pay")]), tools=[pay], settings=settings) as served:
            asked = asyncio.ensure_future(client.post(f"{served.url}{path}", json=body))
            await begun.wait()
            asked.cancel()
        async with serve(ScriptedModel([Say("all paid")]), tools=[pay]) as served:
            response = await client.post(f"{served.url}{path}", json=body)
            answer = await response.json()
    assert (response.status, content_of(door, answer), runs) == (200, TOLD, [1])
    if door == "message":
        assert answer["unknown"] == [SENTENCE]
