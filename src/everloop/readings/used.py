"""What was used, added up and drawn in letters."""

from collections.abc import Iterable, Sequence

from msgspec import structs

from ..ports.rows import Grouping, UsedRow

GROUPINGS: tuple[Grouping, ...] = ("day", "person", "model", "channel", "job", "tool")
NAMELESS = {"job": "turns", "channel": "(deleted)"}
WIDTH = 30  # letters of the longest bar
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def by_name(rows: Iterable[UsedRow], by: Grouping) -> list[UsedRow]:
    """One row for each name, the dearest first; by day, one for each day in order."""
    totals: dict[str, UsedRow] = {}
    for row in rows:
        name = str(row.day) if by == "day" else row.name
        totals[name] = added(totals[name], row) if name in totals else structs.replace(row, name=name)
    found = list(totals.values())
    return found if by == "day" else sorted(found, key=lambda row: (-row.cost, -tokens_of(row), row.name))


def added(one: UsedRow, other: UsedRow) -> UsedRow:
    return UsedRow(
        one.day,
        one.name,
        one.calls + other.calls,
        one.usage + other.usage,
        one.cost + other.cost,
        one.unpriced + other.unpriced,
        one.own_calls + other.own_calls,
        one.own_cost + other.own_cost,
    )


def tokens_of(row: UsedRow) -> int:
    return row.usage.input + row.usage.output


def bars(values: Sequence[float], width: int = WIDTH) -> list[str]:
    """A bar for each, the longest of so many letters; what is more than nothing is seen."""
    most = max(values, default=0.0)
    return [_bar(value / most * width if most else 0.0) for value in values]


def _bar(length: float) -> str:
    eighths = max(round(length * 8), 1 if length > 0 else 0)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")
