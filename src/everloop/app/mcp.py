"""The MCP servers of an open house: which there are by now, what was allowed of them, and who speaks with them.

What models are offered is made of what was allowed (`mcp_tools`), so a house opens without asking any server, and one
without a server loads nothing. What a server says of itself once it is spoken with is compared with what was allowed,
and kept, so that a tool that has become another is offered in no process any more. The settings are followed whenever
they are built anew; the pins and the vault are looked at every two seconds, with the keys (`live.watch_keys`).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Protocol

from ..core.people import OWNER, Role
from ..core.tool import Effect
from ..errors import McpDown, StoreError, ToolError
from ..ports import Leases, Vault
from ..ports.mcp import GONE, McpClient, McpHealth, McpOffer, McpPin, McpPins, McpServer
from ..ports.tools import CallContext, Result, Tool
from ..runtime.supervisor import Supervised, Supervisor
from .mcp_servers import Sections, secrets_named, servers_of, without_secrets_of
from .mcp_tools import OfferedTools, allowable, effect_of, is_in_force, is_wanted, offered_tools
from .secrets import kept_secrets

_log = logging.getLogger("everloop.mcp")

MEETING = 60.0  # seconds for which one process looks at a server for all
AGAIN = 30.0  # seconds after which a server that was never seen, and could not be reached, is tried again
NOT_ANY_MORE = "{} is not allowed any more, so it was not called; `everloop mcp list` tells how it stands"


class Connects(Protocol):
    def __call__(self) -> McpClient:
        """The connections of this process, made when the first is needed: it loads the SDK."""
        ...


class McpStore(Leases, Protocol):
    """What it asks of the store."""

    @property
    def mcp(self) -> McpPins: ...


class HouseMcp:
    """A ToolSource. `servers` are those that can be used, `wrong` says what keeps another from that."""

    def __init__(self, store: McpStore, vault: Vault, connect: Connects) -> None:
        self.servers: dict[str, McpServer] = {}
        self.wrong: dict[str, str] = {}
        self.pins: list[McpPin] = []
        self.offers: dict[str, McpOffer] = {}  # what those say that were heard here
        self.offered = OfferedTools()
        self._store = store
        self._vault = vault
        self._connect = connect
        self._client: McpClient | None = None
        self._sections: Sections = {}
        self._taken: frozenset[str] = frozenset()
        self._secrets: dict[str, float] = {}
        self.version = 0
        self._version = -1
        self._uses: Counter[tuple[str, str]] = Counter()
        self._supervisor: Supervisor | None = None
        self._meeting: Supervised | None = None
        self._changed = asyncio.Event()  # which servers there are
        self._alone = asyncio.Lock()

    def tools(self) -> Sequence[Tool]:
        return self.offered.tools

    @property
    def client(self) -> McpClient:
        if self._client is None:
            self._client = self._connect()
            if self._supervisor:
                self._supervisor.start("mcp", self._listen)
        return self._client

    def health(self, name: str) -> McpHealth:
        """How the connection of this process stands."""
        if name in self.wrong:
            return McpHealth("wrong", why=self.wrong[name])
        if name not in self.servers:
            return McpHealth("off")
        return self._client.health(name) if self._client else McpHealth("idle")

    def tools_for(self, role: Role) -> dict[str, list[str]]:
        names = self.offered.names
        return {
            name: [known for (server, _), known in names.items() if server == name]
            for name, server in self.servers.items()
            if role >= server.permission
        }

    async def prompt(self, role: Role, server: str, name: str, args: Mapping[str, str]) -> Result:
        found = self.servers[server]
        if role < found.permission:
            raise ToolError(f"{server} is not for {role.name.lower()}s")
        return await (self.client.prompt(found, name, args) if name else self.client.prompts(found))

    def problems(self) -> dict[str, McpHealth]:
        found = {name: self.health(name) for name in (*self.servers, *self.wrong)}
        return {name: each for name, each in found.items() if each.state in ("wrong", "waiting", "login")}

    def start(self, supervisor: Supervisor, stack: AsyncExitStack) -> None:
        """From now on servers are spoken with here; those that were never seen are seen now."""
        self._supervisor = supervisor
        stack.push_async_callback(self.close)
        self._meet_new()

    async def close(self) -> None:
        self._supervisor = None
        if self._client:
            await self._client.close()
        try:
            await self._count_uses()
        except StoreError as error:
            _log.warning("calls of MCP tools are not counted: %s", error)

    async def follow(self, sections: Sections, taken: Collection[str] | None = None) -> None:
        """Take over what the settings say; `taken` are the names of tools of the house, if these may be others. Raises
        StoreError."""
        if not sections and not self._sections:
            return
        async with self._alone:
            self._sections, self._taken = sections, self._taken if taken is None else frozenset(taken)
            self._secrets = await self._kept()
            await self._look_up()
        self._meet_new()

    async def look(self) -> None:
        """Whether another process has allowed something, or found that it has changed, or a secret is another. Raises
        StoreError."""
        if not self._sections:
            return
        await self._count_uses()
        if (kept := await self._kept()) != self._secrets:
            async with self._alone:
                self._secrets = kept
                await self._look_up()
        elif await self._store.mcp.mcp_version() != self._version:
            await self.renew()

    async def renew(self) -> None:
        """Offer what is allowed by now. Raises StoreError."""
        async with self._alone:
            await self._offer()

    async def compare(self, server: McpServer, offer: McpOffer) -> bool:
        """Keep what a server says by now of that which was allowed; whether that is news. Raises StoreError."""
        self.offers[server.name] = offer
        listed = allowable(offer)
        pins = await self._store.mcp.mcp_pins(server.name)
        news = await self._store.mcp.note_mcp_found(
            server.name, {pin.definition.tool: _found(pin, listed) for pin in pins}
        )
        if news:
            await self.renew()
        return news

    async def meet(self, server: McpServer, by: str = OWNER) -> bool:
        """Look at a server that the owner has written into the settings, and allow what it offers, if nobody has ever
        allowed or denied anything of it. Raises McpDown, StoreError."""
        offer = await self.client.look(server)
        self.offers[server.name] = offer
        if not await self._store.mcp.pin_mcp_first(server.name, pins_for(server, offer, by)):
            return False
        await self.renew()
        _log.info("the MCP server %s is seen for the first time: what it offers is allowed", server.name)
        return True

    async def _look_up(self) -> None:
        found = await servers_of(self._sections, self._vault)
        before, self.servers = self.servers, {n: each for n, each in found.items() if isinstance(each, McpServer)}
        wrong = {name: each for name, each in found.items() if isinstance(each, str)}
        for name in [name for name in wrong if wrong[name] != self.wrong.get(name)]:
            _log.warning("the MCP server %s cannot be used: %s", name, wrong[name])
        self.wrong = wrong
        for name in [name for name, server in before.items() if self.servers.get(name) != server]:
            self.offers.pop(name, None)
            if self._client:
                await self._client.end(name)
        await self._offer()

    async def _offer(self) -> None:
        self._version = await self._store.mcp.mcp_version()
        self.pins = await self._store.mcp.mcp_pins()
        before = self.offered
        self.offered = offered_tools(self.servers, self.pins, self._taken, self._call, self._read)
        for server, tool in sorted(self.offered.refused - before.refused):
            _log.warning("%r of the MCP server %s is left out: its name would be that of another tool", tool, server)
        self.version += 1

    async def _kept(self) -> dict[str, float]:
        """When each secret was kept that they refer to."""
        named = secrets_named(self._sections.values())
        kept = await kept_secrets(self._vault) if named else {}
        return {name: at for name, at in kept.items() if name in named}

    async def _call(self, server: McpServer, pin: McpPin, args: dict[str, Any], context: CallContext) -> Result:
        """A turn ends with the tools that it began with; what is not allowed any more by now is not called."""
        if not self._is_still(server, pin):
            raise ToolError(NOT_ANY_MORE.format(pin.definition.tool[:100]))
        self._uses[server.name, pin.definition.tool] += 1
        return await self.client.call(server, pin, args, context)

    def _is_still(self, server: McpServer, pin: McpPin) -> bool:
        now = self.servers.get(server.name)
        alike = (each for each in self.pins if (each.server, each.definition) == (pin.server, pin.definition))
        return bool(now and now.setup == server.setup and any(is_in_force(each, now) for each in alike))

    async def _read(self, server: McpServer, uri: str, context: CallContext) -> Result:
        return await (self.client.read(server, uri) if uri else self.client.resources(server))

    async def _count_uses(self) -> None:
        """Beside the turns: none waits for it."""
        uses, self._uses = self._uses, Counter()
        for (server, tool), times in uses.items():
            await self._store.mcp.note_mcp_use(server, tool, times)

    async def _listen(self) -> None:
        """`run` it under a supervisor."""
        async for name, offer in self.client.changes():
            if server := self.servers.get(name):
                await self.compare(server, offer)

    def _meet_new(self) -> None:
        self._changed.set()
        if self._supervisor and self.servers and (self._meeting is None or self._meeting.is_over):
            self._meeting = self._supervisor.start("new mcp servers", self._meet_all)

    async def _meet_all(self) -> None:
        """Those that were never seen; until each of them has been reached, or is set no longer."""
        while new := await self._unseen():
            self._changed.clear()
            await asyncio.gather(*(self._meet(server) for server in new))
            if await self._unseen():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), AGAIN)

    async def _unseen(self) -> list[McpServer]:
        seen = await self._store.mcp.mcp_seen()
        return [server for name, server in self.servers.items() if name not in seen]

    async def _meet(self, server: McpServer) -> None:
        """One process for all, and none in a restored copy."""
        lease = f"mcp:{server.name}"
        if not await self._store.hold(lease, MEETING):
            return
        try:
            await self.meet(server)
        except McpDown as error:
            why = without_secrets_of(server, str(error))
            _log.warning("the MCP server %s cannot be looked at yet: %s", server.name, why)
        finally:
            await self._store.let_go(lease)


def pins_for(
    server: McpServer,
    offer: McpOffer,
    by: str,
    effects: Mapping[str, Effect] = {},
    tools: Collection[str] | None = None,
) -> list[McpPin]:
    """What is allowed with a server: all that its settings want of what it offers, or only these `tools`."""
    return [
        McpPin(
            server=server.name,
            definition=definition,
            effect=effects.get(tool) or effect_of(tool, server, _own_effect(tool)),
            setup=server.setup,
            by=by,
        )
        for tool, definition in allowable(offer).items()
        if (is_wanted(tool, server) if tools is None else tool in tools)
    ]


def _own_effect(tool: str) -> Effect:
    return Effect.READ if tool.startswith("@") else Effect.UNSAFE


def _found(pin: McpPin, listed: Mapping[str, Any]) -> str:
    now = listed.get(pin.definition.tool)
    return GONE if now is None else "" if now.body == pin.definition.body else now.body
