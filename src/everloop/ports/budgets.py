"""What someone may spend, and what a model call may use of it.

A call is charged to every budget that holds for it: those of whoever asked (a month, a day, this conversation, this run
of a job), of all guests together, and of the house. What it may use at most is reserved in each of them before it is
made, in the transaction that says so in the log, and what it has used is charged when it is over. Money is counted in
billionths of a dollar, so that sums of it are exact.
"""

import math
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct, structs

from ..core.overrun import Account, Per

PERIODS: tuple[Per, ...] = ("month", "day", "session", "job")
HOUSE, GUESTS = "~house", "~guests"  # in the place of a person: whom all calls, and those of all guests, are charged to
DOLLAR = 1_000_000_000
MONTH, DAY = 30 * 86_400.0, 86_400.0
BOUNDLESS = 2**60  # as a limit: nobody comes there
LEAST_ANSWER = 256  # tokens; for a shorter answer nobody is asked


class Limit(Struct, frozen=True):
    """How much may be spent in a period: tokens, and money in billionths of a dollar. None is no limit."""

    tokens: int | None = None
    money: int | None = None

    def __bool__(self) -> bool:
        return self.tokens is not None or self.money is not None


class LimitRow(Struct, frozen=True):
    """A limit that somebody has set, which holds in place of the one that goes with a role."""

    owner: str
    per: Per
    limit: Limit


class Spending(Struct, frozen=True):
    """What was used in the period that runs, what running calls hold of it, and when the next period begins (Unix time;
    0: never). `warned`: who spends it was told that most of it is gone."""

    account: Account
    tokens: int = 0
    money: int = 0
    held_tokens: int = 0
    held_money: int = 0
    resets: float = 0.0
    warned: bool = False


class Bound(Struct, frozen=True, gc=False):
    """An account that a call is charged to, and how far that may go."""

    account: Account
    limit: Limit
    spent: Spending

    @property
    def left_tokens(self) -> int:
        return _left(self.limit.tokens, self.spent.tokens + self.spent.held_tokens)

    @property
    def left_money(self) -> int:
        return _left(self.limit.money, self.spent.money + self.spent.held_money)

    @property
    def share(self) -> float:
        """How much of it is used up, from 0 to 1 and beyond."""
        return max(_share(self.limit.tokens, self.spent.tokens), _share(self.limit.money, self.spent.money))


class Reservation(Struct, frozen=True, gc=False):
    """What a call may use at most. The key is its thread's, or the job's: each has one call under way at a time, and
    what is left of one that was lost is charged as it was reserved."""

    key: str
    owner: str  # who pays
    tokens: int
    money: int
    bounds: tuple[Bound, ...]


class Charge(Struct, frozen=True, gc=False):
    """What the call of this key has used; None: nobody knows, and it is charged as it was reserved."""

    key: str
    tokens: int | None = None
    money: int | None = None
    reserved: Reservation | None = None  # as whoever charges it knows


class Cost(Struct, frozen=True, gc=False):
    """What a call would use at most. `money` is None where nobody knows the price."""

    input: int
    output: int
    money: int | None

    @property
    def tokens(self) -> int:
        return self.input + self.output


def dollars(money: int) -> float:
    return money / DOLLAR


def money_of(amount: float | None) -> int | None:
    """Dollars as they are counted here; rounded up."""
    return None if amount is None else int(amount * DOLLAR + 0.999)


def is_priced(cost: Cost, bounds: Sequence[Bound]) -> bool:
    """Whether the money that the call may cost is known, wherever money is limited."""
    return cost.money is not None or all(bound.limit.money is None for bound in bounds)


def room_for_answer(cost: Cost, bounds: Sequence[Bound], rate: float) -> int:
    """How many tokens an answer may have so that the call goes beyond no bound; `rate` is the money of one of them.
    Below 0 where not even the question fits."""
    output = cost.output
    for bound in bounds:
        output = min(output, bound.left_tokens - cost.input)
        if cost.money is not None and cost.money > bound.left_money:
            over = cost.money - bound.left_money
            output = min(output, cost.output - math.ceil(over / rate)) if rate > 0 else -1
    return output


def first_full(cost: Cost, bounds: Sequence[Bound]) -> Bound | None:
    """The bound that the call would go beyond."""
    tokens, money = cost.tokens, cost.money or 0
    for bound in bounds:
        if tokens > bound.left_tokens or money > bound.left_money:
            return bound
    return None


def all_full(cost: Cost, bounds: Sequence[Bound]) -> tuple[Bound, ...]:
    """The bounds that the call would go beyond."""
    return tuple(each for each in bounds if first_full(cost, (each,)))


def used_by(bound: Bound, charge: Charge) -> Bound:
    """As it is with what a call has used."""
    spent = bound.spent
    used = structs.replace(spent, tokens=spent.tokens + (charge.tokens or 0), money=spent.money + (charge.money or 0))
    return structs.replace(bound, spent=used)


def in_new_period(spent: Spending, now: float) -> Spending:
    """As it is by now: with the next period what was used begins anew, and what running calls hold stays held."""
    if not spent.resets or spent.resets > now:
        return spent
    return structs.replace(spent, tokens=0, money=0, warned=False, resets=next_reset(spent.account.per, now))


def next_reset(per: Per, now: float) -> float:
    """A month is 30 days from its first call on; a day ends at midnight, UTC. A conversation goes on for ever, and of a
    job's run nobody asks after a month."""
    match per:
        case "day":
            return (now // DAY + 1) * DAY
        case "month" | "job":
            return now + MONTH
    return 0.0


def _left(limit: int | None, gone: int) -> int:
    return BOUNDLESS if limit is None else limit - gone


def _share(limit: int | None, used: int) -> float:
    return 0.0 if limit is None else used / limit if limit else 1.0


class Budgets(Protocol):
    """Raises StoreError. What a turn's calls use is reserved and charged with its commits (rows.Commit)."""

    async def limits(self, owners: Sequence[str] = ()) -> list[LimitRow]:
        """Those that were set for these, or for anyone."""

    async def set_limit(self, owner: str, per: Per, limit: Limit | None) -> None:
        """From the next call on; None: as it goes with their role. What they have spent stays spent."""

    async def spending(self, owners: Sequence[str] = (), scopes: Sequence[str] = ("",)) -> list[Spending]:
        """What these have spent in the periods that run now, or what anyone has."""

    async def begin_anew(self, owner: str, per: Per) -> None:
        """Forget what was used in the period that runs; the next begins with the next call."""

    async def reserve(self, reservation: Reservation) -> Account | None:
        """Hold what a call may use in all of its accounts, or in none; then the one in which there is no room."""

    async def charge(self, charge: Charge) -> None:
        """Where nothing is held by this key, nothing is charged."""

    async def warn_once(self, account: Account) -> bool:
        """Whether nobody was told yet in this period."""
