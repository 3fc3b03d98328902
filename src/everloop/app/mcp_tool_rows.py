"""The tools of an MCP server as people see them: what was allowed, and what the server says by now."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.tool import Effect
from ..ports.mcp import GONE, McpDefinition, McpOffer, McpPin, McpServer
from ..ports.mcp_rows import McpToolRow, McpToolState
from ..readings.visible import visible
from .mcp_tools import RESOURCES, OfferedTools, allowable, effect_of, is_wanted

BESIDE = {RESOURCES: "Read what it offers to be read, with the tool mcp_resources."}
TO_LOOK_AT: tuple[McpToolState, ...] = ("changed", "setup")


def count_tools(rows: Sequence[McpToolRow], *states: McpToolState) -> int:
    """How many are so, without what stands beside the tools."""
    return sum(each.state in states and each.is_tool for each in rows)


def tool_rows(server: McpServer, pins: list[McpPin], offer: McpOffer | None, offered: OfferedTools) -> list[McpToolRow]:
    """Of all that were allowed, and of all that it offers, where that is known."""
    listed = allowable(offer) if offer else {}
    known = {pin.definition.tool: pin for pin in pins if pin.server == server.name}
    return [_row(server, tool, known.get(tool), listed, offered) for tool in dict.fromkeys((*known, *listed))]


def _row(
    server: McpServer, tool: str, pin: McpPin | None, listed: Mapping[str, McpDefinition], offered: OfferedTools
) -> McpToolRow:
    from ..tools.mcp.definitions import difference, hints_of
    from ..tools.mcp.names import tool_name

    state = _state(server, tool, pin, (server.name, tool) in offered.refused)
    now = listed.get(tool) or _now(pin)
    changed = pin is not None and now.body != pin.definition.body
    return McpToolRow(
        tool=tool,
        name="" if tool in BESIDE else offered.names.get((server.name, tool)) or tool_name(server.name, tool),
        state=state,
        effect=effect_of(tool, server, pin.effect if pin else Effect.READ if tool in BESIDE else Effect.UNSAFE),
        description=BESIDE.get(tool) or visible(_description(now)),
        definition="" if tool in BESIDE else visible(_pretty(now)),
        hints=hints_of(now),
        digest="" if state in ("gone", "hidden") else now.digest,
        difference=difference(pin.definition, now) if pin and changed else "",
        used=pin.used if pin else 0,
        last_used=pin.last_used if pin else 0.0,
    )


def _state(server: McpServer, tool: str, pin: McpPin | None, collides: bool) -> McpToolState:
    if not is_wanted(tool, server):
        return "hidden"
    if pin is None:
        return "new"
    if pin.found:
        return "gone" if pin.found == GONE else "changed"
    if pin.setup != server.setup:
        return "setup"
    return "collides" if collides else "allowed"


def _now(pin: McpPin | None) -> McpDefinition:
    assert pin is not None  # what was never allowed is listed
    return pin.definition if pin.found in ("", GONE) else McpDefinition(pin.definition.tool, pin.found)


def _description(definition: McpDefinition) -> str:
    raw: Any = json.loads(definition.body)
    said = raw.get("description") if isinstance(raw, dict) else None
    return said if isinstance(said, str) else ""


def _pretty(definition: McpDefinition) -> str:
    return json.dumps(json.loads(definition.body), indent=2, ensure_ascii=False)
