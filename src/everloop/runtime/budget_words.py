"""What people are told of budgets: what was spent, of how much, when it begins anew, and whether it may be more."""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct

from ..core.overrun import CALLS, Per
from ..core.people import Role
from ..ports.budgets import GUESTS, HOUSE, Bound, Cost, dollars

RAISE = "Whoever runs this can raise the limit."
RAISE_IT = "`everloop users budget` raises the limit."
YOU = "You have"


class Reader(Struct, frozen=True):
    """Who is told, and whether others read along."""

    id: str
    role: Role
    in_group: bool = False


_IN: dict[Per, str] = {
    "month": "this month",
    "day": "today",
    "session": "in this conversation",
    "job": "in this run",
}


def said_full(bound: Bound, reader: Reader, cost: Cost, who: str = YOU) -> str:
    """Why there is no answer: what was spent, of how much, and when that begins anew; the numbers not to others."""
    account = bound.account
    if reader.in_group or (account.owner != reader.id and reader.role < Role.ADMIN):
        whose = {HOUSE: "everyone together", GUESTS: "all guests together"}.get(account.owner, "you")
        return f"What {whose} may spend here is used up. {_resets(bound)}".strip()
    needs = f"The next answer may need up to {_amount(bound, cost.tokens, cost.money or 0)}."
    return f"{said_spent(bound, who)} {needs} {_how_to_raise(reader)}"


def said_beyond(full: Sequence[Bound], reader: Reader, cost: Cost, who: str) -> str:
    """What is asked: how much the next answer may cost, what was spent of how much, and what a yes means."""
    spent = said_full(full[0], reader, cost, who).removesuffix(_how_to_raise(reader)).strip()
    need = f"This turn goes beyond a budget. {spent}"
    more = " Another limit is reached, too." if len(full) > 1 else ""
    if any(bound.account.owner == HOUSE for bound in full[1:]):  # whoever says yes is to know whose money it is
        more = " What everyone together may spend here is used up, too."
    return f"{need}{more} Go on? A yes lets this one turn ask the model up to {CALLS} times more."


def _how_to_raise(reader: Reader) -> str:
    return RAISE_IT if reader.role == Role.OWNER else RAISE


def said_spent(bound: Bound, you: str = YOU) -> str:
    account, spent, limit = bound.account, bound.spent, bound.limit
    who = {HOUSE: "Everyone together has", GUESTS: "All guests together have"}.get(account.owner, you)
    of = [
        f"{each}"
        for each in (
            f"{spent.tokens:,} of {limit.tokens:,} tokens" if limit.tokens is not None else "",
            f"{shown_money(spent.money)} of {shown_money(limit.money)}" if limit.money is not None else "",
        )
        if each
    ]
    held = spent.held_tokens or spent.held_money
    running = f", and {_amount(bound, spent.held_tokens, spent.held_money)} are held for calls that run" if held else ""
    return f"{who} spent {' and '.join(of)} {_IN[account.per]}{running}. {_resets(bound)}".strip()


def shown_money(money: int) -> str:
    amount = dollars(money)
    if amount >= 1 or not amount:
        return f"${amount:,.2f}"
    cents, fractions = f"${amount:.6f}"[:5], f"{amount:.6f}"[4:]
    return f"{cents}{fractions.rstrip('0')}"


def shown_time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _resets(bound: Bound) -> str:
    return f"It begins anew on {shown_time(bound.spent.resets)}." if bound.spent.resets else ""


def _amount(bound: Bound, tokens: int, money: int) -> str:
    parts = [f"{tokens:,} tokens"] if bound.limit.tokens is not None else []
    parts += [shown_money(money)] if bound.limit.money is not None else []
    return " and ".join(parts)
