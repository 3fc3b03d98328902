"""A place of a channel, or of a person's terminal, is nobody's to take who comes through the gateway."""

from typing import Any

import pytest

from everloop.testing import Say, ScriptedModel
from tests.gateway.access.test_principals import token_of
from tests.gateway.conftest import Door

PLACES = ["cli:direct", "webhook:room", "platform:discord/s1/c1", "web:anna", "timer:x"]
OPEN = ["api:mine", "page:mine"]


async def by_websocket(door: Door, token: str, session: str) -> bool:
    async with door.socket(token) as wire:
        await wire.send("message", id="m1", session=session, content="hi")
        while (frame := await wire.next())["type"] not in ("response", "error"):
            pass
        return frame["type"] == "response"


async def by_chat(door: Door, token: str, session: str) -> bool:
    asked = {"model": "everloop", "messages": [{"role": "user", "content": "hi"}]}
    async with (
        door.client(token, **{"X-Everloop-Session": session}) as client,
        client.post("/v1/chat/completions", json=asked) as answer,
    ):
        return answer.status == 200


async def by_responses(door: Door, token: str, session: str) -> bool:
    asked = {"model": "everloop", "input": "hi"}
    async with (
        door.client(token, **{"X-Everloop-Session": session}) as client,
        client.post("/v1/responses", json=asked) as answer,
    ):
        return answer.status == 200


@pytest.mark.parametrize("speak", [by_websocket, by_chat, by_responses])
@pytest.mark.parametrize(
    ("person", "role", "taken"), [("una", "user", []), ("ada", "admin", []), ("owner", "owner", PLACES)]
)
async def test_only_the_owner_begins_a_conversation_in_a_place_of_a_channel(
    openings: Any, speak: Any, person: str, role: str, taken: list[str]
):
    """Else the answer would be sent there, and whoever's place it is would be told that it is not theirs."""
    door = await openings(ScriptedModel(lambda shown: Say("hello")))
    token = await token_of(door, person, role)
    assert [place for place in (*PLACES, *OPEN) if await speak(door, token, place)] == [*taken, *OPEN]
