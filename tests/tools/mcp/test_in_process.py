"""Servers that others wrote with the SDK, in this process: both handshakes, resources, prompts, questions."""

import asyncio
from typing import Any

import pytest
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.utilities.types import Image
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from msgspec import structs
from tests.tools.mcp.wires import CONTEXT, InThisProcess, allowed, connections

from everloop.errors import ToolError
from everloop.ports.mcp import McpServer
from everloop.ports.tools import CallContext, Shown

SERVER = McpServer(name="x", command=("x",), seconds=20.0)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


FORM = {"type": "object", "properties": {"name": {"type": "string"}}}


def fenced(text: str) -> str:
    return f'<untrusted source="MCP server x">\n{text}\n</untrusted>'


def sdk_server() -> MCPServer:
    server = MCPServer("x", instructions="Use it.", version="3")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    @server.tool()
    def picture() -> Image:
        return Image(data=PNG, format="png")

    @server.tool()
    def fail() -> str:
        raise ValueError("it is broken")

    @server.tool()
    async def greet(context: Context[Any]) -> str | InputRequiredResult:
        if not context.input_responses:
            form = ElicitRequestFormParams(message="Who are you?", requested_schema=FORM)
            questions = {key: ElicitRequest(params=form) for key in ("once", "again")}
            return InputRequiredResult(input_requests=questions, request_state="1")
        return " ".join(f"{each.action}: {each.content}" for each in context.input_responses.values())

    @server.tool()
    async def grow(context: Context[Any]) -> str:
        server.add_tool(lambda: "grown", name="grown")
        await context.notify_tools_changed()
        return "grown"

    @server.tool()
    async def steps(context: Context[Any]) -> str:
        await context.report_progress(1, 2, "half")
        await asyncio.sleep(0)
        return "done"

    @server.resource("x://note", description="A note")
    def note() -> str:
        return "what is noted"

    @server.resource("x://notes/{name}")
    def notes(name: str) -> str:
        return f"the note {name}"

    @server.prompt()
    def review(code: str) -> str:
        """Reviews code."""
        return f"Review this: {code}"

    return server


@pytest.fixture
async def client():
    async with connections(InThisProcess({"x": sdk_server()})) as client:
        yield client


async def test_a_server_tells_who_it_is_and_what_it_offers(client):
    offer = await client.look(SERVER)
    assert [each.tool for each in offer.definitions] == ["add", "picture", "fail", "greet", "grow", "steps"]
    assert (offer.version, offer.instructions, offer.protocol) == ("3", "Use it.", "2026-07-28")
    assert (offer.has_resources, offer.has_prompts) == (True, True)


async def test_tools_are_called(client):
    pins = await allowed(client, SERVER)
    added = await client.call(SERVER, pins["add"], {"a": 1, "b": 2}, CONTEXT)
    shown = await client.call(SERVER, pins["picture"], {}, CONTEXT)
    assert added == Shown(fenced("3"), origin="MCP server x")
    assert [(each.data, each.mime) for each in shown.pictures] == [(PNG, "image/png")]


async def test_resources_and_prompts_are_listed_and_read(client):
    assert await client.resources(SERVER) == fenced("- x://note (note): A note\n- x://notes/{name} (notes)")
    assert (await client.read(SERVER, "x://note")).text == fenced("x://note:\nwhat is noted")
    assert (await client.read(SERVER, "x://notes/3")).text == fenced("x://notes/3:\nthe note 3")
    assert await client.prompts(SERVER) == fenced("- review(code) (review): Reviews code.")
    assert (await client.prompt(SERVER, "review", {"code": "1"})).text == fenced("user:\nReview this: 1")


async def test_a_failed_call_is_told_in_the_servers_words(client):
    pins = await allowed(client, SERVER)
    with pytest.raises(ToolError, match="Error executing tool fail") as told:
        await client.call(SERVER, pins["fail"], {}, CONTEXT)
    assert told.value.origin == "MCP server x"


class Person:
    """Everyone answers with their own name."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def ask_person(self, context: CallContext, server: str, message: str, schema: dict[str, Any]) -> Any:
        self.asked.append((context.user, message))
        await asyncio.sleep(0.05)
        return {"name": context.user}

    async def ask_model(self, context: CallContext, server: str, request: dict[str, Any]) -> None:
        return None


async def test_each_of_several_callers_is_asked_what_their_own_call_asks():
    person = Person()
    people = [structs.replace(CONTEXT, user=name) for name in ("anna", "bob", "eve")]
    async with connections(InThisProcess({"x": sdk_server()}), questions=person) as client:
        pins = await allowed(client, SERVER)
        told = await asyncio.gather(*(client.call(SERVER, pins["greet"], {}, who) for who in people))
    answers = [f"accept: {{'name': '{who.user}'}}" for who in people]
    assert [each.text.splitlines()[1] for each in told] == [f"{each} {each}" for each in answers]
    assert sorted(person.asked) == [(who.user, "Who are you?") for who in people for _ in range(2)]


async def test_progress_is_told():
    told = []
    wires = InThisProcess({"x": sdk_server()})
    async with connections(wires, told=lambda context, text: told.append(text)) as client:
        await client.call(SERVER, (await allowed(client, SERVER))["steps"], {}, CONTEXT)
    assert told == ["1/2 half\n"]


async def test_a_list_that_changes_is_told(client):
    pins = await allowed(client, SERVER)
    changes = client.changes()
    assert len((await anext(changes))[1].definitions) == 6
    await client.call(SERVER, pins["grow"], {}, CONTEXT)
    name, offer = await anext(changes)
    await changes.aclose()
    assert (name, offer.definitions[-1].tool) == ("x", "grown")
