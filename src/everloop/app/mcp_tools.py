"""Tools of MCP servers, made of what was allowed of them and nothing else: no server is asked for it, so that prompts
stay the same from one start to the next."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from ..core.people import Role
from ..core.tool import Circumstances, Effect, Risk, ToolSpec
from ..errors import ToolError
from ..ports.mcp import McpDefinition, McpOffer, McpPin, McpServer
from ..ports.tools import CallContext, Result, Tool

# What a server has to read is allowed as tools are, under a name that no tool has.
RESOURCES = "@resources"
READS = "mcp_resources"
_PORTS = {"http": 80, "https": 443}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "server": {"type": "string", "description": "Its name; without it, which servers there are."},
        "uri": {"type": "string", "description": "What to read, as the server lists it; without it, the list."},
    },
}
Call = Callable[[McpServer, McpPin, dict[str, Any], CallContext], Awaitable[Result]]
Read = Callable[[McpServer, str, CallContext], Awaitable[Result]]


class OfferedTools(Struct, frozen=True):
    """What models are offered, and which pins stand behind it, by the names of the tools; `refused` are those that have
    the name of another."""

    tools: tuple[Tool, ...] = ()
    names: Mapping[tuple[str, str], str] = {}
    refused: frozenset[tuple[str, str]] = frozenset()


def offered_tools(
    servers: Mapping[str, McpServer], pins: Sequence[McpPin], taken: Collection[str], call: Call, read: Read
) -> OfferedTools:
    """`taken` are names of tools of the house."""
    from ..tools.mcp.names import tool_names  # without a server nobody needs it

    good = [pin for pin in pins if (server := servers.get(pin.server)) and is_in_force(pin, server)]
    plain = [pin for pin in good if not pin.definition.tool.startswith("@")]
    names = tool_names([_key(pin) for pin in plain], {*taken, READS})
    # Where a prompt has no room for all of them it has the first: those that are used most, roughly, so that one more
    # call does not change the order.
    by_use = sorted(plain, key=lambda pin: (-pin.used.bit_length(), *_key(pin)))
    tools = [_tool(servers[pin.server], pin, names[_key(pin)], call) for pin in by_use if _key(pin) in names]
    readable = [servers[pin.server] for pin in good if pin.definition.tool == RESOURCES]
    reading = [_reading(readable, read)] if readable and READS not in taken else []
    return OfferedTools((*tools, *reading), names, frozenset(map(_key, plain)) - frozenset(names))


def _key(pin: McpPin) -> tuple[str, str]:
    return pin.server, pin.definition.tool


def is_in_force(pin: McpPin, server: McpServer) -> bool:
    """Whether it is still what was allowed, of a server that is still the one."""
    return not pin.found and pin.setup == server.setup and is_wanted(pin.definition.tool, server)


def is_wanted(tool: str, server: McpServer) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in server.tools)


def effect_of(tool: str, server: McpServer, otherwise: Effect = Effect.UNSAFE) -> Effect:
    """The owner's word on what a tool does."""
    return next((effect for pattern, effect in server.effects.items() if fnmatchcase(tool, pattern)), otherwise)


def allowable(offer: McpOffer) -> dict[str, McpDefinition]:
    """All that can be allowed of what a server offers, by its name."""
    beside = [RESOURCES] if offer.has_resources else []
    tools = {each.tool: each for each in offer.definitions if not each.tool.startswith("@")}
    return {**tools, **{name: McpDefinition(name, f'{{"name":"{name}"}}') for name in beside}}


def _tool(server: McpServer, pin: McpPin, name: str, call: Call) -> Tool:
    from ..tools.mcp.definitions import description_for_model, schema_for_model
    from ..tools.mcp.limits import seconds_of

    effect = effect_of(pin.definition.tool, server, pin.effect)
    spec = ToolSpec(
        name=name,
        description=description_for_model(server.name, pin.definition),
        schema=schema_for_model(pin.definition),
        effect=effect,
        seconds=seconds_of(server),
        permission=server.permission,
        risk=partial(_risk, server, effect),
        scene=f"mcp:{server.name}:{server.setup[:16]}",
        outside=server.workspace or not server.sandbox,
    )
    return Tool(spec, partial(call, server, pin))


def _risk(server: McpServer, effect: Effect, args: dict[str, Any], situation: Circumstances) -> Risk:
    """What reaches a network may take with it what strangers have told the model to send, also where it only reads."""
    reads, reaches = effect is Effect.READ, reaches_network(server)
    leaves = reaches and (not reads or situation.outside)
    whom = host_of(server) or ", ".join(server.network) or "others"
    why = f"it speaks to {whom}" if leaves else ""
    if not server.sandbox and server.transport == "stdio":
        why = "; ".join(filter(None, ("it runs outside of the sandbox", why)))
    return Risk(
        level="low" if reads else "medium",
        leaves=leaves,
        mutates=not reads,
        privileged=server.transport == "stdio" and not server.sandbox,
        why=why,
        host=host_of(server),
    )


def reaches_network(server: McpServer) -> bool:
    return server.transport != "stdio" or bool(server.network) or not server.sandbox


def host_of(server: McpServer) -> str:
    parts = urlsplit(server.url)
    if not parts.hostname:
        return ""
    return parts.hostname if parts.port in (None, _PORTS.get(parts.scheme)) else f"{parts.hostname}:{parts.port}"


def _reading(servers: Iterable[McpServer], read: Read) -> Tool:
    """One tool for what all of them have to read: many servers would else have many that are alike."""
    from ..tools.mcp.limits import seconds_of

    known = {server.name: server for server in servers}

    def risk(args: dict[str, Any], situation: Circumstances) -> Risk:
        server = known.get(str(args.get("server")))
        return _risk(server, Effect.READ, args, situation) if server else Risk()

    async def run(args: dict[str, Any], context: CallContext) -> Result:
        theirs = {name: each for name, each in known.items() if context.role >= each.permission}
        if not (name := args.get("server") or ""):
            return f"MCP servers with something to read: {', '.join(theirs) or 'none'}"
        if name not in theirs:
            raise ToolError(f"no such MCP server has something to read; there is: {', '.join(theirs) or 'none'}")
        return await read(theirs[name], args.get("uri") or "", context)

    spec = ToolSpec(
        name=READS,
        description="List or read the resources that MCP servers have.",
        schema=_SCHEMA,
        effect=Effect.READ,
        seconds=max(map(seconds_of, known.values())),
        permission=min((server.permission for server in known.values()), default=Role.OWNER),
        risk=risk,
        scene=f"mcp:{':'.join(server.setup[:16] for server in known.values())}",
    )
    return Tool(spec, run)
