"""`everloop usage`: what was used and what it cost, by day and model, or by something else."""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from ..app.records import open_records
from ..core.prompt import Usage
from ..ports.rows import Grouping, SpentRow, UsedRow
from ..readings.used import GROUPINGS, NAMELESS, bars, by_name, tokens_of
from ..readings.visible import in_one_line
from .table import counted, dollars, share, table, to_json
from .terminal import Terminal

MORE = (
    "Costs are of tokens, at the price that was known when they were used; `own` is what people have paid themselves, "
    "with keys of their own. Days are those of this machine's clock. By "
    "tool, calls are those of the tool, and the rest is of the answers that made them: one that calls two tools counts "
    "for both."
)
DAY = 86_400
HEADS = ("DAY", "MODEL", " CALLS", " INPUT", " CACHED", " OUTPUT", " THOUGHT", " COST")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--days", metavar="N", type=_days, default=30, help="of the last N days (default 30)")
    parser.add_argument("--by", choices=GROUPINGS, help="added up by this, in place of day and model")
    parser.add_argument("--who", metavar="WHO", default="", help="of one person: an id, an account or a name")
    parser.add_argument("--plot", action="store_true", help="draw bars in place of a table; by day unless --by says")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    days, offset = arguments.days, _offset()
    first = int(time.time() + offset) // DAY - (days - 1)
    by: Grouping | None = arguments.by or ("day" if arguments.plot else None)
    async with open_records() as records:
        people = {each.id: each.name for each in await records.members.everybody()}
        who = (await records.members.find(arguments.who)).id if arguments.who else ""
        if by:
            used = await records.store.used(by, first * DAY - offset, offset, who)
        else:
            rows = await records.store.spent(first * DAY - offset, offset=offset, who=who)
    if by:
        terminal.answer(_grouped(used, arguments, by, people, first))
    elif arguments.json:
        terminal.answer(to_json(describe(first, days, rows)))
    elif not rows:
        terminal.answer(f"Nothing has been used in the last {days} day{'s' if days > 1 else ''}.")
    else:
        terminal.answer(to_text(rows))
    return 0


def _grouped(
    used: Sequence[UsedRow], asked: argparse.Namespace, by: Grouping, people: dict[str, str], first: int
) -> str:
    rows = by_name(used, by)
    if asked.json:
        told = [{"name": _name_of(row, by, {}), **_numbers(row)} for row in rows]
        return to_json({"days": asked.days, "since": date_of(first).isoformat(), "by": by, "rows": told})
    if not rows:
        return f"Nothing has been used in the last {asked.days} day{'s' if asked.days > 1 else ''}."
    names = [_name_of(row, by, people) for row in rows]
    if asked.plot:
        return _plot(names, rows)
    cells = [(name, *_counts(row)) for name, row in zip(names, rows, strict=True)]
    return table((by.upper(), *HEADS[2:]), cells)


def _plot(names: Sequence[str], rows: Sequence[UsedRow]) -> str:
    """By cost; where nothing has one, by tokens."""
    costs = any(row.cost for row in rows)
    drawn = bars([row.cost if costs else float(tokens_of(row)) for row in rows])
    told = [_cost(row) if costs else counted(tokens_of(row)) for row in rows]
    wide = max(map(len, names))
    lines = (f"{in_one_line(n):<{wide}}  {bar} {text}" for n, bar, text in zip(names, drawn, told, strict=True))
    return "\n".join(lines)


def _name_of(row: UsedRow, by: Grouping, people: Mapping[str, str]) -> str:
    if by == "day":
        return date_of(row.day).isoformat()
    name = row.name or NAMELESS.get(by, "")
    return f"{people[name]} ({name})" if by == "person" and people.get(name, name) != name else name


def to_text(rows: Sequence[SpentRow]) -> str:
    cells = [_cells(date_of(row.day).isoformat(), row) for row in rows]
    lines = [table(HEADS, [*cells, _cells("total", total(rows))])]
    if any(row.unpriced for row in rows):
        lines.append("? and >: the price of some models is not known, so that their calls are missing in the cost.")
    return "\n".join(lines)


def describe(first: int, days: int, rows: Sequence[SpentRow]) -> dict[str, Any]:
    told = [
        {"day": date_of(row.day).isoformat(), "model": row.model, "purpose": row.purpose, **_numbers(row)}
        for row in rows
    ]
    return {"days": days, "since": date_of(first).isoformat(), "rows": told, "total": _numbers(total(rows))}


def total(rows: Sequence[SpentRow]) -> SpentRow:
    return SpentRow(
        day=0,
        model="",
        calls=sum(row.calls for row in rows),
        usage=sum((row.usage for row in rows), Usage()),
        cost=sum(row.cost for row in rows),
        unpriced=sum(row.unpriced for row in rows),
        own_calls=sum(row.own_calls for row in rows),
        own_cost=sum(row.own_cost for row in rows),
    )


def date_of(day: int) -> date:
    return date(1970, 1, 1) + timedelta(days=day)


def _cells(day: str, row: SpentRow) -> tuple[str, ...]:
    model = f"{row.model} (for {row.purpose})" if row.purpose else row.model
    return day, model, *_counts(row)


def _counts(row: SpentRow | UsedRow) -> tuple[str, ...]:
    usage = row.usage
    return (
        *(counted(row.calls), counted(usage.input), share(usage.cache_read, usage.input)),
        *(counted(usage.output), counted(usage.reasoning), _cost(row)),
    )


def _cost(row: SpentRow | UsedRow) -> str:
    """To the house, and what people have paid with keys of their own."""
    own = f" + {dollars(row.own_cost, 0 if row.own_cost else row.unpriced)} own" if row.own_calls else ""
    return f"{dollars(row.cost, row.unpriced)}{own}"


def _numbers(row: SpentRow | UsedRow) -> dict[str, Any]:
    used = {name: getattr(row.usage, name) for name in Usage.__struct_fields__}
    own = {"own_calls": row.own_calls, "own_cost": row.own_cost}
    return {"calls": row.calls, **used, "cost": row.cost, "unpriced": row.unpriced, **own}


def _offset() -> float:
    """How far this machine's clock is ahead of UTC, in seconds."""
    ahead = datetime.now().astimezone().utcoffset()
    return ahead.total_seconds() if ahead else 0.0


def _days(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= 36_500:
        raise argparse.ArgumentTypeError("it must be a number of days from 1 to 36500")
    return int(text)
