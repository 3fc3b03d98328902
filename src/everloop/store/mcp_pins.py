"""What was allowed of MCP servers, written once for both databases."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from ..core.tool import Effect
from ..ports.mcp import McpDefinition, McpPin
from .codec import list_of
from .database import Ask, Does

_ROW = "server, tool, body, effect, setup, author, at, found, used, last_used"
_PIN = (
    "INSERT INTO mcp_pins(server, tool, body, effect, setup, author, at) VALUES($1, $2, $3, $4, $5, $6, "
    "CASE WHEN CAST($7 AS {real}) > 0 THEN CAST($7 AS {real}) ELSE {now} END) "
    "ON CONFLICT(server, tool) DO UPDATE SET body = excluded.body, effect = excluded.effect, setup = excluded.setup, "
    "author = excluded.author, at = excluded.at, found = ''"
)
# What was allowed since somebody has looked is compared with what is there now, and not with what was.
_SAID = "CASE WHEN body = $3 THEN '' ELSE $3 END"
_FOUND = f"UPDATE mcp_pins SET found = {_SAID} WHERE server = $1 AND tool = $2 AND found <> {_SAID} RETURNING tool"
_USED = "UPDATE mcp_pins SET used = used + $3, last_used = {now} WHERE server = $1 AND tool = $2"
_SEE = (
    "INSERT INTO mcp_servers(name, seen, changes) VALUES($1, 1, 1) "
    "ON CONFLICT(name) DO UPDATE SET seen = 1, changes = mcp_servers.changes + 1"
)
_SEE_FIRST = f"{_SEE} WHERE mcp_servers.seen = 0 RETURNING name"
_CHANGE = "UPDATE mcp_servers SET changes = changes + 1 WHERE name = $1"
_FORGET = "UPDATE mcp_servers SET seen = 0, changes = changes + 1 WHERE name = $1"


class McpPinRows:
    """McpPins, over the ways in which a database can be asked."""

    def __init__(self, ask: Ask, glance: Ask, change: Ask, do: Does) -> None:
        self._ask = ask
        self._glance = glance
        self._change = change
        self._do = do

    async def mcp_pins(self, server: str = "") -> list[McpPin]:
        only = "WHERE server = $1" if server else ""
        rows = await self._ask(f"SELECT {_ROW} FROM mcp_pins {only} ORDER BY server, tool", *filter(None, [server]))
        return [_pin_of(*row) for row in rows]

    async def pin_mcp(self, pins: Sequence[McpPin]) -> None:
        async def work(ask: Ask) -> None:
            for server in sorted({pin.server for pin in pins}):
                await ask(_SEE, server)
            await _pin(ask, pins)

        await self._do(work)

    async def pin_mcp_first(self, server: str, pins: Sequence[McpPin]) -> bool:
        async def work(ask: Ask) -> bool:
            if not await ask(_SEE_FIRST, server):
                return False
            await _pin(ask, pins)
            return True

        return await self._do(work)

    async def mcp_seen(self) -> frozenset[str]:
        return frozenset(name for (name,) in await self._ask("SELECT name FROM mcp_servers WHERE seen = 1"))

    async def note_mcp_found(self, server: str, found: Mapping[str, str]) -> bool:
        return await self._do(partial(_note_found, server, found))

    async def unpin_mcp(self, server: str, tools: Collection[str] | None = None) -> int:
        async def work(ask: Ask) -> int:
            await ask(_FORGET if tools is None else _CHANGE, server)
            if tools is None:
                return len(await ask("DELETE FROM mcp_pins WHERE server = $1 RETURNING tool", server))
            these = "tool IN (SELECT value FROM {each}($2{json}))"
            gone = await ask(
                f"DELETE FROM mcp_pins WHERE server = $1 AND {these} RETURNING tool", server, list_of(tools)
            )
            return len(gone)

        return await self._do(work)

    async def note_mcp_use(self, server: str, tool: str, times: int = 1) -> None:
        await self._change(_USED, server, tool, times)

    async def mcp_version(self) -> int:
        return int((await self._glance("SELECT coalesce(sum(changes), 0) FROM mcp_servers"))[0][0])


async def _pin(ask: Ask, pins: Sequence[McpPin]) -> None:
    for pin in sorted(pins, key=lambda each: (each.server, each.definition.tool)):  # two processes wait for each other
        known = pin.definition
        await ask(_PIN, pin.server, known.tool, known.body, pin.effect.value, pin.setup, pin.by, pin.at)


async def _note_found(server: str, found: Mapping[str, str], ask: Ask) -> bool:
    await ask("SELECT 1 FROM mcp_servers WHERE name = $1{lock}", server)  # in the order in which pinning locks
    changed = [bool(await ask(_FOUND, server, tool, found[tool])) for tool in sorted(found)]
    if any(changed):
        await ask(_CHANGE, server)
    return any(changed)


def _pin_of(
    server: str,
    tool: str,
    body: str,
    effect: str,
    setup: str,
    author: str,
    at: float,
    found: str,
    used: int,
    last_used: float,
) -> McpPin:
    return McpPin(
        server=server,
        definition=McpDefinition(tool, body),
        effect=Effect(effect),
        setup=setup,
        by=author,
        at=at,
        found=found,
        used=used,
        last_used=last_used,
    )
