"""Writes a recorded turn as a test that a person can read, change and keep: Python, laid out as formatters do it."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from msgspec import NODEFAULT, Struct, structs

from ..core.log import UserSaid
from ..core.message import Opaque, Text, text_of
from .record import Record

WIDTH = 120
HEAD = '''"""{title}

A turn that everloop {version} recorded, written by `everloop replay {turn} --as-test`. It holds the conversation up to
its end and what its tools brought, word for word: look at it before you give it away.
"""

# ruff: noqa: E501
import asyncio

{imports}

RECORD = {record}


def test_{name}():
    assert asyncio.run(replay(RECORD)).difference is None
'''


def source_of(record: Record, turn: str, version: str) -> str:
    """The text of a test file. It passes as long as the turn is as it was."""
    names: set[tuple[str, str]] = {("everloop.replay", "replay"), *_names_in(record)}
    return HEAD.format(
        title=_title(record),
        version=version,
        turn=turn,
        imports="\n".join(_imports(names)),
        record=_written(record, 0, len("RECORD = ")),
        name=name_of(turn),
    )


def name_of(turn: str) -> str:
    """A word for a turn, of which names of files and functions can be made."""
    thread, _, seq = turn.partition(":")
    return f"turn_{thread[:6]}_{seq}"


def _title(record: Record) -> str:
    said = next((entry for entry in (*record.turn, *reversed(record.before)) if isinstance(entry, UserSaid)), None)
    words = " ".join(text_of(said.parts).split()) if said else "a turn"
    printable = "".join(letter for letter in words if letter.isprintable() and letter not in '"\\')
    short = printable if len(printable) <= 80 else f"{printable[:80]}…"
    return short.strip() or "A turn."


def _names_in(value: Any) -> Iterable[tuple[str, str]]:
    match value:
        case Opaque():
            yield "everloop.testing", "opaque"
        case Struct():
            yield _home_of(type(value)), type(value).__name__
            for _, inner in _fields(value):
                yield from _names_in(inner)
        case Enum():
            yield _home_of(type(value)), type(value).__name__
        case Mapping():
            for inner in value.values():
                yield from _names_in(inner)
        case list() | tuple():
            for inner in value:
                yield from _names_in(inner)


def _home_of(kind: type) -> str:
    """Where people import it from."""
    return "everloop.testing" if kind.__module__.startswith("everloop.testing.") else kind.__module__


def _imports(names: set[tuple[str, str]]) -> Iterable[str]:
    for module in sorted({module for module, _ in names}):
        imported = sorted((name for home, name in names if home == module), key=lambda name: (name[0].islower(), name))
        line = f"from {module} import {', '.join(imported)}"
        if len(line) <= WIDTH:
            yield line
        else:
            yield "\n".join((f"from {module} import (", *(f"    {name}," for name in imported), ")"))


def _fields(value: Struct) -> Iterable[tuple[str, Any]]:
    """Those that are not what they would be anyway."""
    for field in structs.fields(value):
        given = getattr(value, field.name)
        usual = field.default_factory() if field.default_factory is not NODEFAULT else field.default
        if usual is NODEFAULT or given != usual or type(given) is not type(usual):
            yield field.name, given


def _written(value: Any, indent: int, used: int) -> str:
    """In one line where that fits after what is `used` of it, else with a line for each part."""
    opening, parts, closing = _taken_apart(value)
    if parts is None:
        return opening
    line = opening + ", ".join(f"{name}{_written(part, 0, -1_000_000)}" for name, part in parts) + closing
    if isinstance(value, tuple) and len(parts) == 1:
        line = f"{line[:-1]},)"
    if not parts or (used + indent + len(line) < WIDTH and "\n" not in line):
        return line
    deeper = indent + 4
    lines = [f"{' ' * deeper}{name}{_written(part, deeper, len(name))}," for name, part in parts]
    return "\n".join((opening, *lines, f"{' ' * indent}{closing}"))


def _taken_apart(value: Any) -> tuple[str, list[tuple[str, Any]] | None, str]:
    """A value as it is written: what opens it, its parts with what stands before each, what closes it."""
    match value:
        case Opaque():
            return "opaque(", [("", value.dialect), ("", bytes(value.block).decode())], ")"
        case Text(origin=""):
            return "Text(", [("", value.text)], ")"
        case Struct():
            return f"{type(value).__name__}(", [(f"{name}=", part) for name, part in _fields(value)], ")"
        case Enum():
            return f"{type(value).__name__}.{value.name}", None, ""
        case Mapping():
            return "{", [(f"{quoted(str(name))}: ", part) for name, part in value.items()], "}"
        case list():
            return "[", [("", part) for part in value], "]"
        case tuple():
            return "(", [("", part) for part in value], ")"
        case str():
            return quoted(value), None, ""
    return repr(value), None, ""


def quoted(text: str) -> str:
    """A string as formatters write it: in double quotes, unless that takes more backslashes."""
    quote = '"' if text.count('"') <= text.count("'") else "'"
    body = repr("'\"" + text)[4:-1].replace("\\'", "'")  # with both kinds in it, repr() takes single quotes
    return f"{quote}{body.replace(quote, chr(92) + quote)}{quote}"
