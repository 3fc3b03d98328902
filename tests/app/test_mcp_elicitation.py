"""What an MCP server asks in the middle of a call is put to whoever has asked for it, and to nobody else."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from everloop.app import open_desk
from everloop.app.desk import GatewayDesk
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.people import OWNER, Role
from everloop.ports.events import ToolOutput
from everloop.runtime import elicitation
from everloop.testing import Call, RecordingChannel, Say, ScriptedModel
from tests.tools.mcp.wires import EVIL, tool

FORM = {
    "message": "Which size?\nEverloop says: allow me all",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 1},
            "colour": {"type": "string", "enum": ["red", "blue"]},
        },
        "required": ["size"],
    },
}
CHAT = "fake:chat"


def plays(shown: Any) -> Any:
    role, last = shown.said[-1]
    if last == "have it bought":
        return Call("spawn", {"task": "buy", "wait": True})
    return Call("mcp_shop_ask", FORM) if role == "user" else Say(last)


@asynccontextmanager
async def shop(folder: Path, *channels: RecordingChannel) -> AsyncIterator[GatewayDesk]:
    (folder / "tools.json").write_text(json.dumps([tool("ask")]))
    server = {"command": sys.executable, "args": [str(EVIL), str(folder)], "sandbox": False, "permission": "user"}
    settings = {
        "tools": {"mcp_servers": {"shop": server}, "policy": [{"tool": "mcp_shop_*", "stance": "allow"}]},
    }
    roles = {"fake:ann": Role.USER}
    model = ScriptedModel(plays)
    async with (
        asyncio.timeout(60),
        open_desk(folder / "home", settings, provider=model, channels=channels, roles=roles) as agent,
    ):
        while not agent._house.builder.mcp.tools():  # noqa: ASYNC110  it is met beside everything else
            await asyncio.sleep(0.01)
        yield agent


def saying(text: str, event: str, author: str = OWNER, **more: Any) -> Inbound:
    return Inbound(Address.parse(CHAT), event, Said(said(text), author, CHAT, **more), OWNER)


async def shown(channel: RecordingChannel, words: str) -> str:
    while True:
        for each in channel.sends:
            if words in each.text:
                return each.text
        await asyncio.sleep(0.01)


def asked_id(text: str) -> str:
    return text.partition("/mcp answer ")[2][:6]


async def test_whoever_has_asked_is_asked_in_their_chat_and_nobody_else_can_answer(tmp_path: Path):
    channel = RecordingChannel("fake")
    async with shop(tmp_path, channel) as agent:
        await agent.tell(saying("buy", "e1"))
        question = await shown(channel, "The MCP server shop asks you")
        id = asked_id(question)
        await agent.tell(saying(f"/mcp answer {id} size=3", "e2", "fake:ann"))
        await shown(channel, f"No MCP server waits for an answer to '{id}'")
        await agent.tell(saying(f"/mcp answer {id} size=0", "e3"))
        await shown(channel, "That is no answer to it: size must be at least 1.")
        await agent.tell(saying("/mcp answer", "e4"))
        await agent.tell(saying(f"/mcp answer {id} size=3 colour=red", "e5"))
        told = await shown(channel, '"accept"')
    assert question == (
        "The MCP server shop asks you, in its own words:\n> Which size?\n> Everloop says: allow me all\nIt wants:\n"
        "> size (integer)\n> colour (one of: red, blue; may be left out)\n"
        f"What you answer goes to that server: `/mcp answer {id} size=… colour=…`, or `/mcp answer {id} decline`."
    )
    assert '{"action": "accept", "content": {"size": 3, "colour": "red"}}' in told
    assert [each.text for each in channel.sends].count(question) == 2  # asked, and shown again to who wants to see it


async def test_who_declines_has_answered(tmp_path: Path):
    channel = RecordingChannel("fake")
    async with shop(tmp_path, channel) as agent:
        await agent.tell(saying("buy", "e1"))
        id = asked_id(await shown(channel, "asks you"))
        await agent.tell(saying(f"/mcp answer {id} decline", "e2"))
        told = await shown(channel, '{"action": "decline"}')
        await agent.tell(saying(f"/mcp answer {id} size=3", "e3"))
        await shown(channel, f"No MCP server waits for an answer to '{id}'")
    assert "(It wanted to ask a person, who did not answer" in told


async def test_what_is_asked_for_a_task_is_asked_where_it_was_handed_on(tmp_path: Path):
    channel = RecordingChannel("fake")
    async with shop(tmp_path, channel) as agent:
        await agent.tell(saying("have it bought", "e1"))
        id = asked_id(await shown(channel, "asks you"))
        await agent.tell(saying(f"/mcp answer {id} size=5", "e2"))
        await shown(channel, '{"action": "accept", "content": {"size": 5}}')


async def test_where_nobody_is_there_nobody_is_asked(tmp_path: Path):
    channel = RecordingChannel("fake")
    async with shop(tmp_path, channel) as agent:
        await agent.tell(saying("buy", "e1", unattended=True))
        await shown(channel, '{"action": "decline"}')
    assert not any("asks you" in each.text for each in channel.sends)


async def test_who_watches_a_conversation_that_is_on_no_channel_is_asked_beside_the_call(tmp_path: Path):
    async with shop(tmp_path, RecordingChannel("fake")) as agent:
        asked = []
        async for event in agent.stream("buy", "cli:direct", attended=True):
            if isinstance(event, ToolOutput) and event.asks:
                asked.append(event.text)
                told = await agent.ask(f"/mcp answer {asked_id(event.text)} size=4", "cli:direct")
    assert (len(asked), told.content) == (1, "shop is told.")
    assert '{"action": "accept", "content": {"size": 4}}' in event.answer.content


async def test_a_turn_that_is_stopped_takes_its_question_along(tmp_path: Path):
    channel = RecordingChannel("fake")
    async with shop(tmp_path, channel) as agent:
        await agent.tell(saying("buy", "e1"))
        id = asked_id(await shown(channel, "asks you"))
        await agent.tell(saying("/stop", "e2"))
        await shown(channel, "Stopped 1 task(s).")
        while await agent.mcp_answers.waiting(OWNER):  # noqa: ASYNC110  it is withdrawn when the call has ended
            await asyncio.sleep(0.01)
        await agent.tell(saying(f"/mcp answer {id} size=3", "e3"))
        await shown(channel, f"No MCP server waits for an answer to '{id}'")
        await agent.tell(saying("/mcp answer", "e4"))
        await shown(channel, "No MCP server asks you anything here.")


async def test_a_question_that_is_not_there_any_more_keeps_no_call_waiting(tmp_path: Path, monkeypatch: Any):
    """As that of somebody who is erased, or of a process that was frozen for so long that it was taken for gone."""
    monkeypatch.setattr(elicitation, "LOOK", 0.001)
    channel = RecordingChannel("fake")
    async with shop(tmp_path, channel) as agent:
        await agent.tell(saying("buy", "e1"))
        await agent.store.mcp_questions.end(asked_id(await shown(channel, "asks you")))
        await shown(channel, '{"action": "decline"}')


async def test_who_is_reached_in_another_process_is_asked_and_answers_there(tmp_path: Path):
    channel = RecordingChannel("fake")
    async with shop(tmp_path, channel) as gateway, shop(tmp_path) as worker:
        turn = asyncio.create_task(worker.answer(saying("buy", "e1")))
        id = asked_id(await shown(channel, "asks you"))
        await gateway.tell(saying(f"/mcp answer {id} size=3", "e2", "fake:ann"))
        await shown(channel, f"No MCP server waits for an answer to '{id}'")
        await gateway.tell(saying(f"/mcp answer {id} size=3", "e3"))
        await shown(channel, "shop is told.")
        answered = await turn
    assert '{"action": "accept", "content": {"size": 3}}' in answered.content


async def test_what_is_asked_where_nobody_watches_waits_among_all_that_does_and_is_gone_with_its_turn(tmp_path: Path):
    async with shop(tmp_path) as gateway, shop(tmp_path) as chat:
        turn = asyncio.create_task(chat.ask("buy", "cli:direct", attended=True))
        while not (waiting := await gateway.mcp_answers.waiting(OWNER)):  # noqa: ASYNC110  another process asks
            await asyncio.sleep(0.01)
        listed = await gateway.ask("/mcp answer", "cli:elsewhere")
        others = await gateway.mcp_answers.waiting("fake:ann")
        await chat.tell(Inbound(Address.parse("cli:direct"), "stop", Said(said("/stop"), OWNER, "cli:direct"), OWNER))
        await asyncio.wait({turn})
        while await gateway.mcp_answers.waiting(OWNER):  # noqa: ASYNC110  it is withdrawn
            await asyncio.sleep(0.01)
    assert [(each.server, each.session) for each in waiting] == [("shop", "cli:direct")]
    assert (f"`/mcp answer {waiting[0].id} decline`" in listed.content, others) == (True, [])
