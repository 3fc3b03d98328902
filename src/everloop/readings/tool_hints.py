"""A call of a tool in short, for people who watch."""

import msgspec

from .visible import in_one_line

LONGEST = 40  # characters of its argument


def tool_hint(name: str, args: str) -> str:
    """Its name and its first text argument, in one line."""
    try:
        values = msgspec.json.decode(args or "{}")
    except msgspec.DecodeError:
        values = {}
    first = next((value for value in values.values() if isinstance(value, str)), "") if isinstance(values, dict) else ""
    short = first if len(first) <= LONGEST else first[:LONGEST] + "…"
    return in_one_line(f'{name}("{short}")' if short else f"{name}()")
