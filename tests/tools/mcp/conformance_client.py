"""A client for the official conformance suite: our HTTP wire and logins under the SDK's client, one run per scenario.

    conformance client --command ".venv/bin/python -m tests.tools.mcp.conformance_client" --scenario tools_call

It does what an owner does: logs in when a server asks for it, with a browser that agrees to everything, and trusts the
authorization server of this machine once it has been named (an `issuer`), because it is not public.
"""

import asyncio
import http.client
import json
import os
import re
import sys
from typing import Any
from urllib.parse import urlsplit

import mcp_types as types
from mcp import Client
from msgspec import structs
from tests.tools.mcp.hosts import Network, network

from everloop.errors import McpDown, McpLogin
from everloop.ports.mcp import McpOAuth, McpServer
from everloop.tools.mcp.oauth import McpLogins

REDIRECT = "http://localhost:3000/callback"
CLIENT_DOCUMENT = "https://conformance-test.local/client-metadata.json"
MOST_LOGINS = 3  # whoever still is not let in has been asked often enough
_NAMED = re.compile(r"points at (\S+), which is not encrypted")


def asked_in_a_browser(url: str) -> str:
    """Where a browser is sent by somebody who agrees."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port)
    connection.request("GET", f"{place.path}?{place.query}")
    return connection.getresponse().getheader("Location") or ""


async def log_in(net: Network, server: McpServer) -> McpServer:
    """As an owner who names an authorization server of their own network when it is refused for being there."""
    shown: list[str] = []

    async def show(url: str) -> None:
        shown.append(url)

    async def come_back() -> str:
        return await asyncio.to_thread(asked_in_a_browser, shown[-1])

    logins = McpLogins(vault=net.vault, trusted=net.trusted, open=net.open)
    while True:
        try:
            await logins.log_in(server, redirect=REDIRECT, show_url=show, wait_for_code=come_back)
            return server
        except McpDown as error:
            named = _NAMED.search(str(error))
            if not named or named[1] in server.oauth.issuers:
                raise
            oauth = structs.replace(server.oauth, issuers=(*server.oauth.issuers, named[1]))
            server = structs.replace(server, oauth=oauth)


async def answer_with_defaults(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    schema = getattr(params, "requested_schema", {})
    given = {name: each["default"] for name, each in schema.get("properties", {}).items() if "default" in each}
    return types.ElicitResult(action="accept", content=given)


async def use(net: Network, server: McpServer) -> None:
    """Call whatever it offers, with the smallest arguments that fit."""
    async with net.client(server, mode="legacy", elicitation_callback=answer_with_defaults) as client:
        for tool in (await client.list_tools()).tools:
            await call(client, tool)


async def call(client: Client, tool: types.Tool) -> None:
    wanted = tool.input_schema.get("properties", {})
    args = {name: 5 if each.get("type") in ("number", "integer") else "x" for name, each in wanted.items()}
    await client.call_tool(tool.name, args)


def as_wanted(url: str, scenario: str, context: str) -> McpServer:
    given = json.loads(context or "{}")
    oauth = McpOAuth(client_id=given.get("client_id", ""), client_secret=given.get("client_secret", ""))
    if scenario == "auth/basic-cimd":
        oauth = McpOAuth(client_id=CLIENT_DOCUMENT)
    return McpServer(name="conformance", transport="http", url=url, seconds=20.0, oauth=oauth)


async def run(url: str, scenario: str, context: str) -> None:
    """Raises McpDown where it cannot be used."""
    server = as_wanted(url, scenario, context)
    async with network() as net:
        for _ in range(MOST_LOGINS):
            try:
                await use(net, server)
                return
            except McpLogin:
                server = await log_in(net, server)
        await use(net, server)


if __name__ == "__main__":
    variables = [os.environ.get(name, "") for name in ("MCP_CONFORMANCE_SCENARIO", "MCP_CONFORMANCE_CONTEXT")]
    asyncio.run(run(sys.argv[-1], *variables))
