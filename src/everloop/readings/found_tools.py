"""Tools that a prompt has no room for: how they are found by words, and called by a name that the prompt does not have.

`call_tool` is an envelope: what a model puts into it is opened before the answer is kept, so that the log, permissions
and everything else know only the call that was meant.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs

from ..core.people import Role
from ..core.tool import Effect, ToolCall, ToolSpec
from .words import terms_of

FIND, CALL = "find_tools", "call_tool"
FINDERS = (FIND, CALL)
ESSENTIAL = frozenset({"read_file", "write_file", "edit_file", "list_dir"})  # what a small model is shown, too
SHOWN = 8  # that are told of at once

CALL_SPEC = ToolSpec(
    CALL,
    "Call a tool that find_tools has told of.",
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
        "required": ["name", "arguments"],
    },
    Effect.READ,
    permission=Role.USER,
)


def opened(calls: Sequence[ToolCall], tools: Mapping[str, ToolSpec]) -> tuple[ToolCall, ...]:
    """The calls that were meant. What is no envelope, or holds the name of no tool, stays as it is."""
    return tuple(_opened(call, tools) if call.name == CALL else call for call in calls)


def _opened(call: ToolCall, tools: Mapping[str, ToolSpec]) -> ToolCall:
    try:
        held = msgspec.json.decode(call.args)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return call
    name = held.get("name") if isinstance(held, dict) else None
    if not isinstance(name, str) or name not in tools or name in FINDERS:
        return call
    args: Any = held.get("arguments") or {}
    text = args if isinstance(args, str) else msgspec.json.encode(args).decode()
    return structs.replace(call, name=name, args=text)


def found(query: str, specs: Iterable[ToolSpec]) -> list[ToolSpec]:
    """The likeliest first: those whose names and descriptions hold most of these words; in a name they count double."""
    words = {*terms_of(query.replace("_", " "))}
    ranked = []
    for place, spec in enumerate(specs):
        name = words & {*terms_of(spec.name.replace("_", " ").replace("-", " "))}
        told = words & {*terms_of(spec.description)}
        if score := 2 * len(name) + len(told):
            ranked.append((-score, place, spec))
    return [spec for _, _, spec in sorted(ranked, key=lambda each: each[:2])[:SHOWN]]


def described(specs: Sequence[ToolSpec]) -> str:
    lines = [
        f"{spec.name}: {spec.description}\narguments: {msgspec.json.encode(spec.schema).decode()}" for spec in specs
    ]
    return "\n\n".join(lines)
