"""What commands print: tables of plain text, numbers as people read and type them there, and JSON for programs."""

import argparse
from collections.abc import Sequence
from typing import Any

import msgspec

from ..readings.visible import in_one_line

UNKNOWN = "?"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be. A head that begins with a space is one of numbers, set to the right. Whatever
    a cell holds, it is in its line; whoever wants it exactly takes --json."""
    lines = [[head.strip() for head in heads], *([in_one_line(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [head.startswith(" ") for head in heads]
    return "\n".join(_line(line, widths, right) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    placed = zip(cells, widths, right, strict=True)
    return "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in placed).rstrip()


def counted(number: int | None) -> str:
    """To the last one below a million, in millions from there on."""
    if number is None:
        return UNKNOWN
    return f"{number:,}" if number < 1_000_000 else f"{number / 1_000_000:,.2f}M"


def share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "–"


def dollars(cost: float, unpriced: int = 0) -> str:
    """What is missing because some prices are not known is marked by `>`; where none is known, by a question mark."""
    if not unpriced:
        return f"${cost:.4f}"
    return f">${cost:.4f}" if cost else UNKNOWN


def rate(price: float | None) -> str:
    """Dollars for a million tokens; the cheapest models cost fractions of a cent."""
    if price is None:
        return UNKNOWN
    return f"${price:.2f}" if round(price, 2) == round(price, 4) else f"${price:.4f}"


def sized(size: int) -> str:
    """Bytes, as file managers have them."""
    if size < 1000:
        return f"{size} B"
    power = min(len(str(size)) - 1, 14) // 3
    return f"{size / 1000**power:.1f} {'kMGT'[power - 1]}B"


def how_many(text: str) -> int:
    """For argparse: how many are shown."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 100_000:
        raise argparse.ArgumentTypeError("it must be a number from 1 to 100000")
    return int(text)


def to_json(value: Any) -> str:
    """One object in one line."""
    return msgspec.json.encode(value).decode()
