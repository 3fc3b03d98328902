"""The official conformance suite of MCP, against our server: https://github.com/modelcontextprotocol/conformance

It calls tools that it knows by name: here a program brings them, and exposes them.
"""

import asyncio
import base64
import warnings
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from everloop.app import open_desk
from everloop.core.people import OWNER, Role
from everloop.core.tool import Effect, ToolSpec
from everloop.errors import ToolError
from everloop.gateway import mcp
from everloop.gateway.access.auth import Auth
from everloop.gateway.access.guard import guard
from everloop.gateway.access.permissions import Permissions
from everloop.gateway.access.principal import Principal
from everloop.gateway.access.scopes import SCOPES
from everloop.gateway.transport.origins import origins_of
from everloop.ports.tools import CallContext, Picture, Shown, Tool
from everloop.settings.shape import GatewaySection
from everloop.testing import ScriptedModel
from everloop.tools.decorator import tool
from tests.mcp_servers import node_server
from tests.ports import free_port

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
APPLY = (
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-error",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
DOCS = Path(__file__).parents[3] / "docs" / "mcp-server.md"  # says why the others do not apply


@tool(Effect.READ)
async def test_simple_text() -> str:
    """Say something."""
    return "This is a simple text response for testing."


@tool(Effect.READ)
async def test_image_content() -> Shown:
    """Show a picture."""
    return Shown("", (Picture(PIXEL, "image/png"),))


@tool(Effect.READ)
async def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


NEWEST = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}},
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}
AS_IT_IS = ToolSpec("json_schema_2020_12_tool", "A tool with a schema of its own", NEWEST, Effect.READ)


async def say_nothing(args: dict[str, object], context: CallContext) -> str:
    return ""


FIXTURES = [test_simple_text, test_image_content, test_error_handling, Tool(AS_IT_IS, say_nothing)]


class Anyone(Auth):
    """Whoever comes is the owner: the suite has no token. Names and pages are checked as ever."""

    async def authenticate(self, request: web.Request) -> Principal | None:
        return Principal(OWNER, Role.OWNER, frozenset(SCOPES), "token", "suite")


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    port, exposed = free_port(), {"gateway": {"mcp_tools": ["test_*", "json_*"]}}
    async with open_desk(tmp_path / "home", exposed, provider=ScriptedModel([]), tools=FIXTURES) as agent:
        permissions = Permissions()
        auth = Anyone(agent.store, origins_of(GatewaySection(port=port), port))
        warnings.filterwarnings("ignore", category=web.NotAppKeyWarning)
        app = web.Application(middlewares=[guard(auth, permissions)])
        permissions.mount(app, mcp.routes(agent, "1.0"))
        server = TestServer(app, host="127.0.0.1", port=port)
        await server.start_server()
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            await server.close()


async def test_the_scenarios_that_apply_pass(url: str):
    program = node_server("conformance")
    failed = {}
    for scenario in APPLY:
        process = await asyncio.create_subprocess_exec(
            *program,
            *("server", "--url", url, "--scenario", scenario),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        if process.returncode != 0:
            failed[scenario] = said.decode()
    assert failed == {}


async def test_the_documentation_names_every_scenario_of_the_suite():
    """So that one that is new in the suite is noticed."""
    program = await asyncio.create_subprocess_exec(
        *node_server("conformance"), "list", "--server", stdout=asyncio.subprocess.PIPE
    )
    said, _ = await program.communicate()
    listed = {line.split()[1] for line in said.decode().splitlines() if line.startswith("  - ")}
    assert len(listed) >= 32
    assert {name for name in listed if f"`{name}`" not in DOCS.read_text()} == set()
    assert {*APPLY} <= listed
