"""MCP servers and tools in the words of the command line."""

import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from ..ports.mcp_rows import McpToolRow
from ..readings.visible import in_one_line, visible
from .table import table
from .terminal import WrongUse, show_prompt

EFFECTS = ("read", "idempotent", "unsafe")
STATES = {
    "off": "off",
    "wrong": "wrong",
    "idle": "not running",
    "starting": "starting",
    "running": "running",
    "waiting": "failing",
    "login": "needs a login",
}
TOOL_STATES = {
    "allowed": "allowed",
    "changed": "CHANGED since it was allowed",
    "setup": "of another setup than was allowed",
    "gone": "gone",
    "new": "not allowed",
    "hidden": "left out by the settings",
    "collides": "left out: another tool has its name",
}
HINTS = {
    "readOnlyHint": ("reads", "writes"),
    "destructiveHint": ("destroys", "destroys nothing"),
    "idempotentHint": ("can be repeated", ""),
    "openWorldHint": ("reaches others", "stays inside"),
}
_SHORT = 80  # characters of a description in a table
NOBODY_ASKED = "this is asked at a terminal, in a script say --yes: {}"


def tools_table(tools: Sequence[McpToolRow]) -> str:
    """What a description says behind its beginning stands below: it is read before it is allowed."""
    rows = [(tool_name(each)[:60], each.effect.value, hints(each), _beginning(each)) for each in tools]
    cut = [each for each in tools if _beginning(each) != in_one_line(each.description)]
    whole = ["\n".join([f"{tool_name(each)}:", *_description(each)]) for each in cut]
    return "\n\n".join([table(("TOOL", "EFFECT", "IT SAYS ITSELF", "DESCRIPTION"), rows), *whole])


def _beginning(tool: McpToolRow) -> str:
    said = in_one_line(tool.description)
    return said if len(said) <= _SHORT else f"{said[: _SHORT - 1]}…"


def _description(tool: McpToolRow) -> list[str]:
    return [f"  {line}" for line in visible(tool.description).splitlines()]


def tool_name(tool: McpToolRow) -> str:
    name = in_one_line(tool.tool)
    return name if tool.is_tool else f"what it has to read ({name})"


def hints(tool: McpToolRow) -> str:
    said = (HINTS[hint][0 if value else 1] for hint, value in tool.hints.items() if hint in HINTS)
    return ", ".join(filter(None, said)) or "–"


def tool_lines(tool: McpToolRow) -> list[str]:
    """All that is to be seen before somebody allows it."""
    name = f" ({tool.name})" if tool.name else ""
    used = f", used {tool.used} time(s)" if tool.used else ""
    lines = [f"{tool_name(tool)}{name}: {TOOL_STATES[tool.state]}, {tool.effect.value}{used}"]
    lines += [f"  it says itself: {hints(tool)}"] if tool.hints else []
    lines += _description(tool)
    if tool.difference:
        lines += ["  what has changed:", *(f"  {line}" for line in tool.difference.splitlines())]
    elif tool.definition and tool.state != "allowed":
        lines += [f"  {line}" for line in tool.definition.splitlines()]
    elif takes := _takes(tool.definition):
        lines += [f"  takes: {in_one_line(takes)}"]
    return lines


def _takes(definition: str) -> str:
    """What `everloop mcp test` would be given: `city, [unit]`."""
    try:
        schema = msgspec.json.decode(definition or "{}", type=_Definition).inputSchema
    except msgspec.DecodeError:
        return ""  # a server may say anything: then the whole of it is to be seen with --json
    return ", ".join(name if name in schema.required else f"[{name}]" for name in schema.properties)


class _Schema(msgspec.Struct, frozen=True):
    properties: dict[str, Any] = {}
    required: list[str] = []


class _Definition(msgspec.Struct, frozen=True):
    inputSchema: _Schema = _Schema()


def is_sure(question: str, yes: bool) -> bool:
    if yes:
        return True
    if not sys.stdin.isatty():
        raise WrongUse(NOBODY_ASKED.format(visible(question.removesuffix(" [y/N] "))))
    show_prompt(visible(question))
    return sys.stdin.readline().strip().lower() in ("y", "yes")
