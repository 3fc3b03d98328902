"""A server on loopback that aims us inside, in a network namespace where every address there is leads to a canary.

Run by `tests.net.cage.caged`. The server is the owner's; what it names is a stranger's word: where its metadata is, who
its authorization server is, where tokens are had. Each of these is aimed at each of some addresses, and the canary
tells which were reached.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from mcp import Client, MCPError
from tests.net.cage import PUBLIC, Canary, Names
from tests.tools.mcp.hosts import Asked, DictVault, answer, saying, server_at

from everloop.errors import McpDown
from everloop.net.open import OpenHttp
from everloop.net.trusted import TrustedHttp
from everloop.ports import Hops
from everloop.tools.mcp.http import http_wire
from everloop.tools.mcp.oauth import McpLogins

PUBLIC_URLS = ("https://public.test/x", f"https://{PUBLIC}/x")
INSIDE_URLS = (
    "https://127.0.0.1/x", "https://127.0.0.1:8443/x", "https://localhost/x", "https://[::1]/x", "https://0.0.0.0/x",
    "https://10.0.0.5/x", "https://172.16.0.1/x", "https://192.168.1.1/x", "https://169.254.169.254/latest/meta-data",
    "https://100.100.100.200/x", "https://[fd00:ec2::254]/x", "https://[::ffff:169.254.169.254]/x",
    "https://[64:ff9b::7f00:1]/x", "https://2130706433/x", "https://0x7f000001/x", "https://inside.test/x",
    "https://metadata.test/x", "https://loop.test/x", "https://mapped.test/x", "https://mixed.test/x",
    "https://many.test/x", "https://alias.test/x",
)  # fmt: skip
PLAIN_URLS = ("http://public.test/x", f"http://{PUBLIC}/x", "http://169.254.169.254/x", "http://127.0.0.1/x")
REBINDINGS = 50


def aimed(way: str, url: str) -> Callable[[Asked, asyncio.StreamWriter], Any]:
    """A server that aims one thing at that address, and is honest in the rest."""

    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        own = f"http://{asked.headers['host']}"
        path = asked.target
        if path == "/mcp" and way == "the server itself redirects":
            writer.write(answer(307, Location=url))
        elif path == "/mcp":
            where = url if way == "resource_metadata" else f"{own}/resource"
            writer.write(answer(401, WWW_Authenticate=f'Bearer resource_metadata="{where}"'))
        elif path == "/resource" and way == "metadata redirects":
            writer.write(answer(302, Location=url))
        elif path == "/resource":
            issuer = url if way == "authorization_servers" else own
            writer.write(answer(200, _json(resource=f"{own}/mcp", authorization_servers=[issuer])))
        elif path.startswith("/.well-known/oauth-authorization-server"):
            writer.write(answer(200, _metadata(own, way, url)))
        elif path == "/register":
            writer.write(answer(201, _json(client_id="c", redirect_uris=["http://127.0.0.1:9/callback"])))
        else:
            writer.write(answer(404))

    return say


def _metadata(own: str, way: str, url: str) -> bytes:
    names = ("authorization_endpoint", "token_endpoint", "registration_endpoint")
    endpoints = {name: f"{own}/{name.split('_')[0]}" for name in names}
    endpoints["registration_endpoint"] = f"{own}/register"
    if way in endpoints:
        endpoints[way] = url
    return _json(issuer=own, response_types_supported=["code"], **endpoints)


def _json(**fields: object) -> bytes:
    return json.dumps(fields).encode()


WAYS = (
    "resource_metadata", "metadata redirects", "authorization_servers", "registration_endpoint", "token_endpoint",
    "the server itself redirects",
)  # fmt: skip


async def attempt(way: str, url: str, open: Hops) -> str:
    trusted = TrustedHttp(kept=0.1)

    async def show(address: str) -> None:
        pass

    async def agree() -> str:
        return "some-code"

    async with saying(aimed(way, url)) as (_, origin):
        logins = McpLogins(vault=DictVault(), trusted=trusted, open=open)
        try:
            await logins.log_in(
                server_at(f"{origin}/mcp"),
                redirect="http://127.0.0.1:9/callback",
                show_url=show,
                wait_for_code=agree,
            )
        except McpDown as error:
            return str(error)
        finally:
            await trusted.close()
    return "logged in"


async def call(url: str) -> str:
    """A server that sends its messages elsewhere: by a redirect, and by the older SSE's word on where to write."""
    trusted, said = TrustedHttp(kept=0.1), []
    events = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: endpoint\ndata: %b\n\n" % url.encode()

    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(events if asked.target == "/sse" else answer(307, Location=url))

    async with saying(say) as (_, origin):
        for server in (server_at(f"{origin}/mcp"), server_at(f"{origin}/sse", transport="sse", seconds=0.2)):
            wire = http_wire(server, trusted=trusted, open=OpenHttp(), vault=DictVault())
            try:
                await Client(wire, mode="legacy").__aenter__()
                said.append("connected")
            except (McpDown, MCPError) as error:
                said.append(str(error))
    await trusted.close()
    return " / ".join(said)


async def main() -> None:
    loop = asyncio.get_running_loop()
    canary, names = Canary(), Names()
    await canary.listen()
    await loop.create_datagram_endpoint(lambda: names, ("127.0.0.1", 53))
    guarded, careless = OpenHttp(), TrustedHttp(kept=0.1)
    said: dict[str, Any] = {}

    async def table(key: str, urls: tuple[str, ...], open: Hops) -> None:
        for way in WAYS:
            outcomes = {url: await attempt(way, url, open) for url in urls}
            said[f"{key}: {way}"] = {"outcomes": outcomes, "reached": canary.take()}

    await table("public", PUBLIC_URLS, guarded)
    await table("inside", INSIDE_URLS, guarded)
    await table("plain", PLAIN_URLS, guarded)
    for name in ("http_proxy", "HTTPS_PROXY"):
        del os.environ[name]  # by which a client without a guard would go
    await table("careless", INSIDE_URLS[:9], careless)
    calls = {url: await call(url) for url in (*PUBLIC_URLS, *PLAIN_URLS, *INSIDE_URLS[:9])}
    said["calls"] = {"outcomes": calls, "reached": canary.take()}
    rebound = tuple(f"https://rebind-{n}.test/x" for n in range(REBINDINGS))
    for url in rebound:
        await attempt("resource_metadata", url, guarded)
    said["rebound, first"] = canary.take()
    outcomes = {url: await attempt("resource_metadata", url, guarded) for url in rebound}
    said["rebound, again"] = {"outcomes": outcomes, "reached": canary.take()}
    await careless.close()
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
