"""MCP servers as they stand, are looked at, allowed, tried and logged in to: by the command line, and by the page.

Every other process sees the change.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Protocol

from ..core.people import Role
from ..core.tool import Effect
from ..errors import EverloopError, McpDown, VaultLocked
from ..ports.audit import line_of
from ..ports.mcp import McpHealth, McpOffer, McpServer
from ..ports.mcp_rows import McpRow, McpShown, McpToolRow
from ..ports.tools import CallContext, Result
from ..ports.vault import MCP_LOGIN
from ..readings.visible import visible
from ..settings import Settings
from ..settings.mcp import McpServerSection
from ..tools.mcp.kept_logins import LoginKeeper
from .mcp import HouseMcp, pins_for
from .mcp_login_hook import PATH
from .mcp_servers import where_of, without_secrets_of
from .mcp_setup import McpSetup, checked_effects, who
from .mcp_tool_rows import TO_LOOK_AT, count_tools, tool_rows
from .mcp_tools import RESOURCES, allowable, is_wanted
from .opening import OpenHome

TODO: Mapping[str, str] = {
    "off": "It is switched off in the settings",
    "wrong": "Mend it in the settings file, or set it up anew with everloop mcp add {name}",
    "login": "Log in: everloop mcp login {name}",
    "starting": "It has not answered yet. Wait for it: everloop mcp test {name}",
    "waiting": "It is tried again when one of its tools is called. Try it now: everloop mcp test {name}",
}
LOOK_AGAIN = "Look at what has changed, and allow it: everloop mcp allow {name}"
NONE_ALLOWED = "None of its tools is allowed: everloop mcp allow {name}"


class McpLogsIn(Protocol):
    async def log_in(
        self,
        server: McpServer,
        *,
        redirect: str,
        show_url: Callable[[str], Awaitable[None]],
        wait_for_code: Callable[[], Awaitable[str]],
    ) -> None: ...

    async def log_out(self, name: str) -> bool: ...


class PageLogsIn(Protocol):
    """Logins that are begun here and come back by the gateway. Raises McpDown."""

    async def begin(self, server: McpServer, redirect: str) -> str: ...

    async def finish(self, query: str) -> str: ...


def _no_page() -> PageLogsIn:
    raise EverloopError("there is no gateway here to come back to")


class McpDesk:
    def __init__(
        self,
        home: OpenHome,
        setup: McpSetup,
        mcp: HouseMcp,
        logins: Callable[[], McpLogsIn],
        page: Callable[[], PageLogsIn] = _no_page,
        patience: float = 15.0,
    ) -> None:
        """`patience` are the seconds that one server may keep those who want to see all of them."""
        self.setup = setup
        self._home = home
        self._mcp = mcp
        self._logins = logins
        self._page = page
        self._patience = patience
        self._logged_out: set[str] = set()  # servers that want a login, though they have not been asked since

    async def is_there(self, name: str) -> bool:
        return name in (await self._sections())

    async def rows(self) -> list[McpRow]:
        """Raises SettingsError, StoreError."""
        return [await self._row(name, section) for name, section in (await self._sections()).items()]

    async def show(self, name: str) -> McpShown:
        """As far as it is known here. Raises EverloopError."""
        section, offer = await self._section(name), self._mcp.offers.get(name) or McpOffer()
        said = [visible(each) for each in (offer.title, offer.version, offer.protocol, offer.instructions)]
        return McpShown(await self._row(name, section), self._tools(name), *said)

    async def look(self, name: str) -> McpShown:
        """Ask it what it offers now. Raises EverloopError."""
        await self._looked(self._server(name, await self._section(name)))
        return await self.show(name)

    async def check(self) -> list[McpRow]:
        """Ask all of them, side by side; that one is wrong, or has not answered yet, stands in its row."""
        await asyncio.gather(*(self._meet(server) for server in self._mcp.servers.values()))
        return await self.rows()

    async def restart(self, name: str) -> McpShown:
        """Raises EverloopError."""
        self._server(name, await self._section(name))
        await self._mcp.client.end(name)
        return await self.look(name)

    async def add(self, name: str, given: Mapping[str, Any], pin: str, effects: Mapping[str, Effect] = {}) -> McpShown:
        """As McpSetup does. Raises EverloopError."""
        await self.setup.add(name, given, pin, effects)
        return await self.show(name)

    async def allow(self, name: str, tools: Mapping[str, str], effect: Effect | None = None) -> McpShown:
        """Allow these as they were shown: by their digests. Raises EverloopError."""
        server = self._server(name, await self._section(name))
        offer = await self._looked(server)
        listed = allowable(offer)
        for tool, digest in tools.items():
            if tool not in listed:
                raise EverloopError(
                    f"{name} has no tool {tool[:100]!r}; everloop mcp show {name} has those that it has"
                )
            if listed[tool].digest != digest:
                raise EverloopError(f"{tool[:100]} has changed since it was shown; look at it again")
            if not is_wanted(tool, server):
                raise EverloopError(f"{tool[:100]} is left out by tools.mcp_servers.{name}.tools; change that first")
        words = checked_effects(server, offer, dict.fromkeys(tools, effect) if effect else {})
        known = {pin.definition.tool: pin.effect for pin in await self._home.store.mcp.mcp_pins(name)}
        pins = pins_for(server, offer, who(), {**known, **words}, tools)
        await self._home.store.note(line_of("mcp.allowed", name, {"tools": sorted(tools)}))
        await self._home.store.mcp.pin_mcp(pins)
        await self._mcp.renew()
        return await self.show(name)

    async def deny(self, name: str, tools: Sequence[str] | None = None) -> McpShown:
        """Allow these no longer, or none. Raises EverloopError."""
        await self._section(name)
        known = [pin.definition.tool for pin in await self._home.store.mcp.mcp_pins(name)]
        wanted = known if tools is None else list(tools)
        if missing := [tool for tool in wanted if tool not in known]:
            raise EverloopError(f"{missing[0][:100]!r} of {name} is not allowed anyway")
        await self._home.store.note(line_of("mcp.denied", name, {"tools": sorted(wanted)}))
        await self._home.store.mcp.unpin_mcp(name, wanted)
        await self._mcp.renew()
        return await self.show(name)

    async def test(self, name: str, tool: str, args: dict[str, Any]) -> Result:
        """Call a tool as it is now, to try it, whether or not it is allowed. Raises EverloopError."""
        server = self._server(name, await self._section(name))
        offer = await self._looked(server)
        found = pins_for(server, offer, who(), tools=[tool])
        if not found or tool.startswith("@"):
            there = ", ".join(sorted(each.tool for each in offer.definitions))
            raise EverloopError(f"{name} has no tool {tool[:100]!r}; it has: {there or 'none'}")
        await self._home.store.note(line_of("mcp.tested", name, {"tool": tool}))
        person = who()
        context = CallContext(f"mcp-test:{secrets.token_hex(8)}", "", "cli:direct", person, role=Role.OWNER)
        try:
            return await self._mcp.client.call(server, found[0], args, context)
        except McpDown as error:
            raise type(error)(without_secrets_of(server, str(error))) from error

    async def log_in(
        self, name: str, redirect: str, show_url: Callable[[str], Awaitable[None]], wait: Callable[[], Awaitable[str]]
    ) -> McpShown:
        """Raises EverloopError."""
        server = await self.login_server(name)
        await self._logins().log_in(server, redirect=redirect, show_url=show_url, wait_for_code=wait)
        return await self.logged_in(name)

    async def login_server(self, name: str) -> McpServer:
        """A server at which one can log in. Raises EverloopError."""
        server = self._server(name, await self._section(name))
        if server.transport == "stdio":
            raise EverloopError(f"{name} is a command: nobody logs in to it. Give it what it needs with --env")
        return server

    async def logged_in(self, name: str) -> McpShown:
        """Somebody has: look at it again. Raises EverloopError."""
        await self._home.store.note(line_of("mcp.login", name))
        await self._mcp.client.end(name)
        server = self._server(name, await self._section(name))
        await self._mcp.meet(server)
        return await self.look(name)

    async def begin_login(self, name: str, origin: str) -> str:
        """The address that a person opens, who comes back to this `origin`. Raises EverloopError."""
        return await self._page().begin(await self.login_server(name), f"{origin}{PATH}")

    async def finish_login(self, query: str) -> str:
        """What has come back; the name of the server. Raises EverloopError."""
        name = await self._page().finish(query)
        with suppress(McpDown):  # which its row tells
            await self.logged_in(name)
        return name

    async def log_out(self, name: str) -> bool:
        """Whether there was a login. Raises EverloopError."""
        gone = await self._logins().log_out(name)
        if gone:
            self._logged_out.add(name)
            await self._home.store.note(line_of("mcp.logout", name))
        if name in self._mcp.servers:
            await self._mcp.client.end(name)
        return gone

    async def _settings(self) -> Settings:
        return await asyncio.to_thread(self._home.settings_now)

    async def _sections(self) -> Mapping[str, McpServerSection]:
        return (await self._settings()).tools.mcp_servers

    async def _section(self, name: str) -> McpServerSection:
        sections = await self._sections()
        if name in sections:
            return sections[name]
        there = ", ".join(sections) or "none"
        raise EverloopError(f"there is no MCP server {name[:50]!r}; there is: {there}. everloop mcp add sets one up")

    def _server(self, name: str, section: McpServerSection) -> McpServer:
        if name in self._mcp.servers:
            return self._mcp.servers[name]
        if not section.enabled:
            raise EverloopError(f"the MCP server {name} is switched off in the settings")
        raise EverloopError(self._mcp.wrong.get(name) or f"the MCP server {name} is not followed yet; try again")

    async def _row(self, name: str, section: McpServerSection) -> McpRow:
        health, tools = self._mcp.health(name), self._tools(name)
        states = {each.tool: each.state for each in tools}
        changed = any(state in TO_LOOK_AT for state in states.values())
        todo = TODO.get(health.state, LOOK_AGAIN if changed else "" if "allowed" in states.values() else NONE_ALLOWED)
        server = self._mcp.servers.get(name)
        return McpRow(
            name=name,
            transport=server.transport if server else "stdio" if section.command else "http",
            where=where_of(section),
            state=health.state,
            why=visible(without_secrets_of(server, health.why) if server else health.why),
            todo=todo.format(name=name),
            since=health.since,
            restarts=health.restarts,
            allowed=count_tools(tools, "allowed"),
            changed=count_tools(tools, *TO_LOOK_AT),
            new=count_tools(tools, "new"),
            resources=states.get(RESOURCES),
            login=await self._login_to(server, health) if server and server.transport != "stdio" else (),
            permission=server.permission.name.lower() if server else section.permission,
            network=section.network,
            workspace=section.workspace,
            sandbox=section.sandbox,
            is_known=name in self._mcp.offers,
        )

    async def _login_to(self, server: McpServer, health: McpHealth) -> tuple[Literal["kept", "wanted"], ...]:
        """A server that has asked for one is remembered in the vault, without anything that lets us in."""
        box = f"{MCP_LOGIN}{server.name}"
        if box not in await self._home.vault.kept():
            return ("wanted",) if health.state == "login" or server.name in self._logged_out else ()
        try:
            login = await LoginKeeper(server.name, server.url, self._home.vault, time.time).read()
        except VaultLocked:
            return ("kept",)  # it can be forgotten all the same
        if login is None or not login.access:
            return ("wanted",)
        return ("kept", "wanted") if health.state == "login" else ("kept",)

    def _tools(self, name: str) -> list[McpToolRow]:
        server, mcp = self._mcp.servers.get(name), self._mcp
        return tool_rows(server, mcp.pins, mcp.offers.get(name), mcp.offered) if server else []

    async def _looked(self, server: McpServer) -> McpOffer:
        """Raises McpDown, with no secret in it. Somebody asks: what failed before is tried now, and not later."""
        if self._mcp.health(server.name).state in ("waiting", "login"):
            await self._mcp.client.end(server.name)
        try:
            offer = await self._mcp.client.look(server)
        except McpDown as error:
            raise type(error)(without_secrets_of(server, str(error))) from error
        await self._mcp.compare(server, offer)
        return offer

    async def _meet(self, server: McpServer) -> None:
        try:
            async with asyncio.timeout(self._patience):
                if not await self._mcp.meet(server):
                    await self._mcp.compare(server, self._mcp.offers[server.name])
        except (McpDown, TimeoutError):
            pass  # its health says why
