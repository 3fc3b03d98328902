"""`/usage BY`: what was used in the last days, as lines with bars."""

from datetime import date, timedelta

from ..core.mail import Said
from ..core.people import Role
from ..ports import Clock, Ledger
from ..ports.rows import Grouping, SpentRow, UsedRow
from ..readings.used import GROUPINGS, NAMELESS, bars, by_name, tokens_of

DAYS, DAY = 30, 86_400
WIDTH = 12  # letters of the longest bar: a chat on a phone is narrow
MOST = 15  # lines


class UsageCommand:
    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    async def tell(self, rest: str, letter: Said, role: Role) -> str:
        """Somebody's own; an administrator's everybody's, where nobody else reads it."""
        by = next((each for each in GROUPINGS if each == rest.strip().lower()), None)
        all_of_them = role >= Role.ADMIN and not letter.principal
        if by is None or (by == "person" and role < Role.ADMIN):
            return f"What was used is told by {', '.join(g for g in GROUPINGS if g != 'person' or role >= Role.ADMIN)}."
        if by == "person" and not all_of_them:
            return "What others have used I say only where we are alone."
        first = int(self._clock.now()) // DAY - (DAYS - 1)
        used = await self._ledger.used(by, first * DAY, who="" if all_of_them else letter.author)
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
