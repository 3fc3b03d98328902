"""The platform door, as a bot that lives elsewhere uses it."""

import asyncio
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from everloop.core.people import Role
from everloop.core.speakers import GroupSpeaker, header_of
from everloop.core.tool import Effect
from everloop.errors import HostFailed
from everloop.testing import Call, Fail, Say, ScriptedModel, Think
from everloop.tools.decorator import tool
from tests.gateway.http_doors import TOKEN, Serve, Served

HI = {
    "platform": "discord",
    "platform_user_id": "7",
    "platform_server_id": "s1",
    "platform_channel_id": "c1",
    "platform_thread_id": None,
    "content": "hi",
    "attachments": [],
    "id": None,
}


async def post(served: Served, path: str = "/message", user: str = "", **more) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {TOKEN}{user}"}
    async with (
        ClientSession() as session,
        session.post(f"{served.url}{path}", json={**HI, **more}, headers=headers) as answer,
    ):
        if answer.content_type == "application/json":
            return answer.status, await answer.json()
        return answer.status, [_read(block) for block in (await answer.text()).split("\n\n") if block]


def _read(block: str) -> tuple[str, Any]:
    event, data = block.split("\n")
    return event.removeprefix("event: "), msgspec.json.decode(data.removeprefix("data: "))


@tool(Effect.READ, permission=Role.GUEST)
async def look() -> str:
    """Look."""
    return "seen"


@tool(Effect.READ)
async def peek() -> str:
    """Look at what is the owner's."""
    return "secret"


async def test_a_message_is_answered_with_what_was_done_for_it(serve: Serve):
    async with serve(ScriptedModel([Call("look"), Say("It is there.")]), tools=[look]) as served:
        assert await post(served) == (
            200,
            {
                "content": "It is there.",
                "files": [],
                "unknown": [],
                "error": None,
                "tool_calls_metadata": [{"name": "look", "arguments": "{}", "outcome": "done", "result": "seen"}],
            },
        )


async def test_each_place_is_a_conversation_of_its_own(serve: Serve):
    model = ScriptedModel([Say("a"), Say("b"), Say("c"), Say("d"), Say("e")])
    async with serve(model) as served:
        await post(served, content="one")
        await post(served, content="two", platform_user_id="8")
        await post(served, content="three", platform_thread_id="t:1")
        await post(served, content="four", platform_server_id=None, platform_channel_id=None)
        await post(served, content="five", platform_channel_id="c1:t/1")
        found = await served.agent.store.conversations("owner")
    seven, eight = (header_of(f"discord:{n}", GroupSpeaker(f"discord:{n}", "guest")) for n in (7, 8))
    assert [shown.said for shown in model.prompts] == [
        [("user", f"{seven}\none")],
        [("user", f"{seven}\none"), ("assistant", "a"), ("user", f"{eight}\ntwo")],
        [("user", f"{seven}\nthree")],
        [("user", "four")],
        [("user", f"{seven}\nfive")],
    ]
    assert sorted(each.session for each in found) == [
        "platform:discord//@7",
        "platform:discord/s1/c1",
        "platform:discord/s1/c1%3At%2F1",
        "platform:discord/s1/c1:t%3A1",
    ]


async def test_whoever_writes_is_a_guest_there_whatever_the_bot_may_do(serve: Serve):
    model = ScriptedModel([Call("peek"), Say("I may not.")])
    async with serve(model, tools=[peek]) as served:
        _, told = await post(served)
    (call,) = told["tool_calls_metadata"]
    sentence = "Error: there is no tool 'peek'. The tools are: read_file, web_fetch, message, web_search."
    assert (call["outcome"], call["result"]) == ("failed", sentence)


async def test_the_same_id_is_one_turn_and_one_answer(serve: Serve):
    model = ScriptedModel([Say("once"), Say("again")])
    async with serve(model) as served:
        answers = await asyncio.gather(*(post(served, id="m1") for _ in range(3)))
        other = await post(served, id="m2")
    assert [told["content"] for _, told in answers] == ["once"] * 3
    assert other[1]["content"] == "again"
    assert model.calls == 2


async def test_a_place_of_the_owners_bot_is_another_for_the_bot_of_somebody_else(serve: Serve):
    model = ScriptedModel([Say("one"), Say("two")])
    async with serve(model) as served:
        await post(served)
        status, told = await post(served, user=":ann")
    assert (status, told["content"], "one" in str(model.prompts[-1].said)) == (200, "two", False)


async def test_a_turn_streams_as_it_happens(serve: Serve):
    model = ScriptedModel([(Think("hm"), Call("look")), Say(["It is ", "there."])])
    async with serve(model, tools=[look]) as served:
        status, events = await post(served, "/message/stream")
    calls = [{"name": "look", "arguments": "{}", "outcome": "done", "result": "seen"}]
    last = events[-2][1]["message"]
    assert (status, events) == (
        200,
        [
            ("thinking", {"delta": "hm"}),
            ("tool_call", {"name": "look", "arguments": "{}"}),
            ("tool_result", {"name": "look", "outcome": "done", "result": "seen"}),
            ("content", {"delta": "It is ", "message": last}),
            ("content", {"delta": "there.", "message": last}),
            (
                "done",
                {"content": "It is there.", "files": [], "unknown": [], "error": None, "tool_calls_metadata": calls},
            ),
        ],
    )


async def test_a_turn_that_fails_is_told_with_its_status_or_inside_the_stream(serve: Serve):
    model = ScriptedModel([Fail(HostFailed("it is down")), (Say("half"), Fail(HostFailed("it is down")))])
    async with serve(model) as served:
        status, told = await post(served)
        _, events = await post(served, "/message/stream", platform_channel_id="c2")
    assert (status, told["content"], told["error"]["code"]) == (502, "", "turn_failed_server")
    assert told["error"]["message"].startswith("I could not answer. Whoever runs this can look up why. (error ")
    assert [name for name, _ in events] == ["content", "error"]
    assert events[-1][1]["error"]["code"] == "turn_failed_server"


@pytest.mark.parametrize("path", ["/message", "/message/stream"])
async def test_what_cannot_be_taken_is_refused_with_a_sentence(serve: Serve, path: str):
    async with serve(ScriptedModel([])) as served:
        assert await post(served, path, platform=5) == (
            400,
            {
                "content": "",
                "files": [],
                "unknown": [],
                "error": {
                    "code": "invalid_request",
                    "message": "The request is not as it should be at platform: Expected `str`, got `int`.",
                },
                "tool_calls_metadata": [],
            },
        )
        status, told = await post(served, path, content="  ")
    assert (status, told["error"]["message"]) == (400, "The message is empty.")


async def test_an_attachment_is_fetched_where_the_owner_allows_it_and_nowhere_else(serve: Serve, canary: str):
    model = ScriptedModel([Say("a red square")])
    attachments = [{"filename": "red.png", "url": canary, "mime_type": "image/png", "size_bytes": 80}]
    async with serve(model) as served:
        status, told = await post(served, attachments=attachments)
    assert (status, told["error"]["code"]) == (400, "message_refused")
    host = canary.removeprefix("http://").partition("/")[0]
    async with serve(model, settings={"tools": {"web": {"allow": [host]}}}) as served:
        assert (await post(served, attachments=attachments))[1]["content"] == "a red square"
    _, _, picture = model.prompts[0].messages[-1].parts  # after who says what
    whose = "chat:platform/discord/s1/c1"  # what is sent into a channel is its chat's
    assert (picture.name, picture.mime, picture.owner) == ("red.png", "image/png", whose)


async def test_an_attachment_that_has_no_end_is_given_up(serve: Serve):
    sent = 0

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:  # until whoever reads has had enough
            await response.write(bytes(1_000_000))
            sent += 1_000_000

    app = web.Application()
    app.router.add_get("/cat.png", flood)
    async with TestServer(app) as server:
        far = server.make_url("/cat.png")
        settings = {"tools": {"web": {"allow": [f"{far.host}:{far.port}"]}}}
        async with serve(ScriptedModel([]), settings=settings) as served:
            status, told = await post(served, attachments=[{"url": str(far), "size_bytes": 5}])
    assert (status, told["error"]["code"]) == (400, "message_refused")
    assert "sends more than 20,000,000 bytes" in told["error"]["message"]
    assert 20_000_000 <= sent < 100_000_000
