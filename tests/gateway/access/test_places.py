"""A place of a channel, or of a person's terminal, is nobody's to take who comes through the gateway."""

from typing import Any

import pytest

from everloop.app.records import open_records
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
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


async def test_a_place_of_the_owners_bot_is_not_taken_by_the_bot_of_another_before_it(openings: Any):
    """Else whoever has a token, or the page, shuts out somebody whom the owner's bot has not heard yet."""
    door = await openings(ScriptedModel(lambda shown: Say("hello")))
    theirs, others, own = [await token_of(door, *each) for each in (("una", "user"), ("ada", "admin"), ("owner", ""))]
    places = [{"platform_channel_id": "c1"}, {}]  # of a group, and of two
    told = [
        (await by_message(door, token, **place), await by_message(door, token, **place))
        for place in places
        for token in (theirs, others, own)
    ]
    async with door.client(own) as client, client.get("/api/sessions") as answer:
        keys = {each["session"] for each in (await answer.json())["sessions"]}
    assert told == [(200, 200)] * 6
    assert keys == {"platform:discord/s1/c1", "platform:discord/s1/@7"}  # as they were without the others


async def by_message(door: Door, token: str, **place: str) -> int:
    here = {"platform": "discord", "platform_user_id": "7", "platform_server_id": "s1", "content": "hi", **place}
    async with door.client(token) as client, client.post("/message", json=here) as answer:
        return answer.status


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize(("role", "chosen"), [("guest", 403), ("user", 404)])  # which is not there
async def test_which_model_answers_is_not_a_guests_to_choose(openings: Any, path: str, role: str, chosen: int):
    door = await openings(ScriptedModel(lambda shown: Say("hello")))
    token = await token_of(door, "gus", role)
    got = []
    async with door.client(token) as client:
        for model in ("everloop", "everloop/bare", "dear/model", "bare/dear/model"):
            said = {"messages": [{"role": "user", "content": "hi"}]} if "chat" in path else {"input": "hi"}
            async with client.post(path, json={"model": model, **said}) as answer:
                got.append(answer.status)
    assert got == [200, 200, chosen, chosen]


async def test_a_bot_stays_in_a_place_that_it_had_before_others_had_their_own(openings: Any):
    door = await openings(ScriptedModel(lambda shown: Say("hello")))
    theirs, own = [await token_of(door, *each) for each in (("una", "user"), ("owner", ""))]
    async with open_records(door.home) as records:
        before = Inbound(Address("platform", "discord/s1/c1"), "e1", Said(said("hi"), "una"), "una")
        await records.store.command(before, "none", "hello")
    told = [await by_message(door, token, platform_channel_id="c1") for token in (theirs, own)]
    async with door.client(theirs) as client, client.get("/api/sessions") as answer:
        keys = [each["session"] for each in (await answer.json())["sessions"]]
    assert (told, keys) == ([200, 404], ["platform:discord/s1/c1"])
