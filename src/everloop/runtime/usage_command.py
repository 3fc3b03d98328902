"""`/usage BY`: what was used in the last days, as lines with bars."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Protocol

from msgspec import structs

from ..core.mail import Said
from ..core.people import Role
from ..ports import Archive, Clock, Ledger
from ..ports.rows import Grouping, SpentRow, UsedRow
from ..readings.used import GROUPINGS, NAMELESS, bars, by_name, tokens_of
from .typed_command import CommandEffect, TypedCommand

DAYS, DAY = 30, 86_400
WIDTH = 12  # letters of the longest bar: a chat on a phone is narrow
MOST = 15  # lines


class UsageStore(Ledger, Archive, Protocol):
    """What was spent, and the conversations that it was spent in."""


class UsageCommand:
    def __init__(self, store: UsageStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        if typed.rest:
            return typed.told(await self.tell(typed.rest, typed.letter, typed.role))
        row = await self._store.session(typed.session)
        rows = await self._store.spent(thread=row.id) if row else []
        before = await self._store.taken_back(row.id) if row else []
        inherited = await self._store.inherited(row.id) if row else []
        return typed.told(describe(rows, before, inherited))

    async def tell(self, rest: str, letter: Said, role: Role) -> str:
        """Somebody's own; an administrator's everybody's, where nobody else reads it."""
        by = next((each for each in GROUPINGS if each == rest.strip().lower()), None)
        all_of_them = role >= Role.ADMIN and not letter.principal
        if by is None or (by == "person" and role < Role.ADMIN):
            return f"What was used is told by {', '.join(g for g in GROUPINGS if g != 'person' or role >= Role.ADMIN)}."
        if by == "person" and not all_of_them:
            return "What others have used I say only where we are alone."
        first = int(self._clock.now()) // DAY - (DAYS - 1)
        used = await self._store.used(by, first * DAY, who="" if all_of_them else letter.author)
        if not used:
            return f"Nothing has been used in the last {DAYS} days."
        whose = "In all" if all_of_them else "By you"
        return "\n".join([f"{whose}, in the last {DAYS} days:", *_lines(by_name(used, by), by)])


def _lines(rows: list[UsedRow], by: Grouping) -> list[str]:
    shown = rows[-MOST:] if by == "day" else rows[:MOST]
    costs = any(row.cost for row in rows)
    drawn = bars([row.cost if costs else float(tokens_of(row)) for row in shown], WIDTH)
    lines = [
        f"{_name_of(row, by)}: {bar} {paid(row)}, {row.calls} call(s), {tokens_of(row):,} tokens"
        for row, bar in zip(shown, drawn, strict=True)
    ]
    return [*lines, f"… and {len(rows) - MOST} more: everloop usage --by {by}"] if len(rows) > MOST else lines


def _name_of(row: UsedRow, by: Grouping) -> str:
    if by == "day":
        return (date(1970, 1, 1) + timedelta(days=row.day)).isoformat()
    return row.name or NAMELESS.get(by, "")


def paid(row: SpentRow | UsedRow) -> str:
    """By the house, and by people with keys of their own."""
    return price_of(row.cost, row.unpriced) + (f" and ${row.own_cost:.4f} with own keys" if row.own_calls else "")


def price_of(cost: float, unpriced: int) -> str:
    """Dollars as people read them. Calls of models whose price is not known are said to be missing."""
    if not unpriced:
        return f"${cost:.4f}"
    return f"more than ${cost:.4f}" if cost else "price not known"


def describe(rows: list[SpentRow], before: Sequence[SpentRow] = (), inherited: Sequence[SpentRow] = ()) -> str:
    """What a conversation has used, a line for each model. `before` was used for what it stands for now,
    `inherited` for what it has from another."""
    if not rows and not before and not inherited:
        return "Nothing has been used in this conversation yet."
    lines = [_line(row) for row in _by_model([*before, *rows])]
    if before:
        calls, price = sum(row.calls for row in before), _price(before)
        lines.append(
            f"Of this, {calls} call(s), {price}, were before something was taken back or said in other words (/undo, "
            "/session edit, /session regenerate): what was spent stays spent."
        )
    if inherited:
        lines += ["Up to where it branched off (a fork, a snapshot), in the conversation that it comes from:"]
        lines += [_line(row) for row in _by_model([*inherited])]
    return "\n".join(lines)


def _by_model(rows: list[SpentRow]) -> list[SpentRow]:
    totals: dict[str, SpentRow] = {}
    for row in rows:
        name = _called(row)
        totals[name] = _add(totals[name], row) if name in totals else row
    return list(totals.values())


def _called(row: SpentRow) -> str:
    return f"{row.model} (for {row.purpose})" if row.purpose else row.model


def _line(row: SpentRow) -> str:
    return (
        f"{_called(row)}: {row.calls} call(s), {row.usage.input:,} tokens in ({row.usage.cache_read:,} from the "
        f"cache), {row.usage.output:,} out, {paid(row)}"
    )


def _price(rows: Sequence[SpentRow]) -> str:
    return price_of(sum(row.cost for row in rows), sum(row.unpriced for row in rows))


def _add(one: SpentRow, other: SpentRow) -> SpentRow:
    return structs.replace(
        one,
        calls=one.calls + other.calls,
        usage=one.usage + other.usage,
        cost=one.cost + other.cost,
        unpriced=one.unpriced + other.unpriced,
        own_calls=one.own_calls + other.own_calls,
        own_cost=one.own_cost + other.own_cost,
    )
