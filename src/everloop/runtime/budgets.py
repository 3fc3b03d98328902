"""Who may have a model asked, and for how much: bounds are looked up before each call, and what it may use is reserved.

Somebody for whom no limit holds costs nothing here. Limits are looked up again a second after they were, so that one
that another process has set holds from then on; what was spent is looked at before every call, and what is reserved is
decided by the store, in the transaction of the call's intent.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, structs

from ..core.overrun import Account, Overrun
from ..core.people import OWNER, Role
from ..core.prompt import Usage
from ..ports import Budgets
from ..ports.budgets import (
    BOUNDLESS,
    GUESTS,
    HOUSE,
    LEAST_ANSWER,
    Bound,
    Charge,
    Cost,
    Limit,
    Reservation,
    Spending,
    all_full,
    first_full,
    is_priced,
    money_of,
    room_for_answer,
    used_by,
)
from .budget_words import YOU, Reader, said_beyond, said_full, said_spent

SECONDS = 1.0  # for which limits are known
PEOPLE = 10_000  # whose limits are remembered
Price = Callable[[Usage], float | None]
_ANYWHERE = ("month", "day")  # what is counted wherever it is spent
UNPRICED = (
    "Nobody knows what {model} costs, and there is a limit on money here, so it was not asked. Whoever runs this can "
    "say what it costs in the settings (prices), or choose another model."
)


class BudgetRules(Struct, frozen=True):
    """What holds where nobody has set anything else: by role, each a month; of all guests together; and the shares of a
    budget from which on its owner is told so, and is answered by a cheaper model (0: never)."""

    roles: Mapping[Role, Limit] = {}
    guests: Limit = Limit()
    warn_at: float = 0.0
    cheaper_at: float = 0.0
    cheaper_model: str = ""
    ask: Literal["never", "admins", "requester"] = "never"  # who may let a turn go beyond a budget

    @property
    def roomy(self) -> float:
        """The share up to which nothing is done."""
        return 0.5 * min(self.warn_at or 1.0, self.cheaper_at or 1.0)


class Payer(Struct, frozen=True):
    """Who has asked, as what, in which conversation; `job` is the run that asks for them, if one does."""

    id: str
    role: Role
    thread: str = ""
    job: str = ""
    in_group: bool = False  # others read along
    requester: str = ""  # whose turn it is
    beyond: tuple[Account, ...] = ()  # in which somebody lets this turn spend more than there is

    @property
    def reader(self) -> Reader:
        """To whom it is told what was spent."""
        return Reader(self.id, self.role, self.in_group)


class AllowedCall(Struct, frozen=True):
    """A call may be made, with an answer of so many tokens at most, as soon as this is reserved."""

    reservation: Reservation
    cost: Cost


class Denied(Struct, frozen=True):
    """It may not, and why: `full` has no room for what it would cost. Empty: room would not help."""

    text: str
    full: tuple[Bound, ...] = ()
    cost: Cost = Cost(0, 0, None)


class _Seen:
    """An account as it was looked at, until when that may be relied on, and how much may be used of it until then
    before somebody has to look again."""

    __slots__ = ("bound", "money", "tokens", "until", "used_money", "used_tokens")

    def __init__(self, bound: Bound, roomy: float) -> None:
        """`roomy` is the share up to which nothing depends on how much is left."""
        limit, spent = bound.limit, bound.spent
        self.until = time.monotonic() + SECONDS
        self.bound = bound
        self.tokens = BOUNDLESS if limit.tokens is None else int(roomy * limit.tokens) - spent.tokens
        self.money = BOUNDLESS if limit.money is None else int(roomy * limit.money) - spent.money
        self.used_tokens = self.used_money = 0

    @property
    def is_roomy(self) -> bool:
        return self.used_tokens <= self.tokens and self.used_money <= self.money

    def as_noted(self) -> Bound:
        return used_by(self.bound, Charge("", self.used_tokens, self.used_money))


class BudgetControl:
    def __init__(self, store: Budgets, rules: Callable[[], BudgetRules] = BudgetRules) -> None:
        """`rules` are asked for each time, for the settings may change."""
        self._store = store
        self._rules = rules
        self._spent: dict[Account, _Seen] = {}
        self._known: dict[tuple[str, Role], tuple[float, BudgetRules, dict[Account, Limit]]] = {}

    @property
    def rules(self) -> BudgetRules:
        return self._rules()

    def forget_limits(self) -> None:
        """They have been changed here."""
        self._known.clear()
        self._spent.clear()

    async def bounds(self, payer: Payer) -> tuple[Bound, ...]:
        """What a call of theirs is charged to; nothing for somebody without a limit. Raises StoreError."""
        seen = self.bounds_seen(payer)
        return await self._look_at(payer) if seen is None else seen

    def bounds_seen(self, payer: Payer) -> tuple[Bound, ...] | None:
        """The same, where it was seen a moment ago and nothing depends on how much is left: whether there is room is
        for the store to say. None: it has to be looked at."""
        now = time.monotonic()
        known = self._known.get((payer.id, payer.role))
        if known is None or known[0] < now or known[1] is not self._rules():
            return None
        found = []
        for account, limit in known[2].items():
            placed = account if account.per in _ANYWHERE else _placed(account, payer)
            if placed is None:
                continue
            seen = self._spent.get(placed)
            if seen is None or seen.until < now or seen.bound.limit != limit or not seen.is_roomy:
                return None
            found.append(seen.bound)
        return tuple(found)

    async def _look_at(self, payer: Payer) -> tuple[Bound, ...]:
        accounts = _in_place(await self._limits(payer.id, payer.role), payer)
        if not accounts:
            return ()
        owners = tuple({account.owner: None for account, _ in accounts})
        spent = {row.account: row for row in await self._store.spending(owners, ("", payer.thread, payer.job))}
        bounds = tuple(Bound(account, limit, spent.get(account, Spending(account))) for account, limit in accounts)
        if len(self._spent) >= PEOPLE:
            self._spent.clear()
        roomy = self._rules().roomy
        self._spent |= {bound.account: _Seen(bound, roomy) for bound in bounds}
        return bounds

    async def bounds_anew(self, payer: Payer) -> tuple[Bound, ...]:
        """As they are now, after others were quicker than was to be seen. Raises StoreError."""
        self._spent.clear()
        return await self.bounds(payer)

    def note(self, charge: Charge) -> tuple[Bound, ...]:
        """What was seen a moment ago has become more. Those of its bounds are returned, as they are with it, of which
        so much is gone that it may be told."""
        scarce = []
        for bound in charge.reserved.bounds if charge.reserved else ():
            seen = self._spent.get(bound.account)
            if seen is None:
                scarce.append(used_by(bound, charge))
                continue
            seen.used_tokens += charge.tokens or 0
            seen.used_money += charge.money or 0
            if not seen.is_roomy:
                scarce.append(seen.as_noted())
        return tuple(scarce)

    async def _limits(self, who: str, role: Role) -> dict[Account, Limit]:
        """By account, as yet without conversation or job."""
        now, rules = time.monotonic(), self._rules()
        known = self._known.get((who, role))
        if known is None or known[0] < now or known[1] is not rules:
            if len(self._known) >= PEOPLE:
                self._known.clear()
            known = self._known[who, role] = now + SECONDS, rules, await self._look_up(who, role, rules)
        return known[2]

    async def _look_up(self, who: str, role: Role, rules: BudgetRules) -> dict[Account, Limit]:
        owners = (who, HOUSE, GUESTS) if role < Role.USER else (who, HOUSE)
        limits = {Account(who, "month"): rules.roles.get(role, Limit())}
        if role < Role.USER:
            limits[Account(GUESTS, "month")] = rules.guests
        limits |= {Account(row.owner, row.per): row.limit for row in await self._store.limits(owners)}
        return {account: limit for account, limit in limits.items() if limit}

    def plan(self, payer: Payer, bounds: tuple[Bound, ...], key: str, model: str, price: Price, cost: Usage) -> "Plan":
        """Whether a call may be made that reads `cost.input` and answers with at most `cost.output` tokens. Where less
        is left than that, the answer may be shorter."""
        if payer.beyond:
            bounds = tuple(_unbounded(bound) if bound.account in payer.beyond else bound for bound in bounds)
        most = most_of(price, cost.input, cost.output)
        if not first_full(most, bounds) and is_priced(most, bounds):
            return _allowed(payer, bounds, key, most)
        room = room_for_answer(most, bounds, rate_of(price, cost.input, cost.output))
        if min(LEAST_ANSWER, most.output) <= room < most.output:
            most = most_of(price, cost.input, room)
        return _planned(payer, bounds, key, model, most)

    async def denied(self, payer: Payer, account: Account, allowed: AllowedCall) -> Denied:
        """Somebody was quicker: there is no room in this account any more."""
        bounds = await self.bounds_anew(payer)
        full = next((bound for bound in bounds if bound.account == account), None)
        if full is None:
            return Denied("There is no room left in the budget.")
        return Denied(said_full(full, payer.reader, allowed.cost), (full,), allowed.cost)

    async def reserve(
        self, payer: Payer, key: str, model: str, price: Price, cost: Usage, bounds: tuple[Bound, ...] | None = None
    ) -> AllowedCall | Denied | None:
        """For a call that goes with no commit; None: nothing has to be reserved. `bounds` hold for it where they are
        given, in place of the payer's. Raises StoreError."""
        bounds = await self.bounds(payer) if bounds is None else bounds
        if not bounds:
            return None
        plan = _planned(payer, bounds, key, model, most_of(price, cost.input, cost.output))
        if isinstance(plan, AllowedCall) and (full := await self._store.reserve(plan.reservation)):
            return await self.denied(payer, full, plan)
        return plan

    async def charge(self, charge: Charge) -> None:
        await self._store.charge(charge)

    async def warning(self, payer: Payer, scarce: Sequence[Bound]) -> str:
        """What they are told when most of their own is gone, once a period; "" if there is nothing. `scarce` are those
        that `note` has returned."""
        share = self.rules.warn_at
        for bound in scarce if share else ():
            mine = bound.account.owner == payer.id and not bound.spent.warned
            if mine and bound.share >= share and await self._store.warn_once(bound.account):
                return said_spent(bound)
        return ""

    def overrun(self, payer: Payer, denied: Denied) -> Overrun | None:
        """What may be asked before a turn ends for this; None: nobody is asked. Guests never are, nor is anybody for
        them: whoever writes is one, and could have others asked all day."""
        ask = self.rules.ask
        if ask == "never" or not denied.full or payer.role < Role.USER:
            return None
        theirs = all(bound.account.owner == payer.id for bound in denied.full)
        own = ask == "requester" and theirs and payer.id == payer.requester
        who = YOU if payer.id == OWNER else f"{payer.id} has"  # others read it, too, but for the owner's
        return Overrun(
            accounts=tuple(bound.account for bound in denied.full),
            question=said_beyond(denied.full, payer.reader, denied.cost, who),
            refusal=denied.text,
            least=Role.ADMIN if theirs and payer.role < Role.ADMIN else Role.OWNER,
            answerer=payer.id if own else "",
        )

    def is_tight(self, bounds: tuple[Bound, ...]) -> bool:
        """Whether a cheaper model is to answer."""
        share = self.rules.cheaper_at
        return bool(share) and any(bound.share >= share for bound in bounds)


Plan = AllowedCall | Denied


def _planned(payer: Payer, bounds: tuple[Bound, ...], key: str, model: str, most: Cost) -> Plan:
    if not is_priced(most, bounds):
        plainly = payer.in_group or payer.role < Role.USER
        return Denied(UNPRICED.format(model="the model that answers here" if plainly else model))
    if full := all_full(most, bounds):
        return Denied(said_full(full[0], payer.reader, most), full, most)
    return _allowed(payer, bounds, key, most)


def _allowed(payer: Payer, bounds: tuple[Bound, ...], key: str, most: Cost) -> AllowedCall:
    return AllowedCall(Reservation(key, payer.id, most.tokens, most.money or 0, bounds), most)


def most_of(price: Price, input: int, output: int) -> Cost:
    """What a call costs at most: all that it reads may be written to a cache, which some hosts ask more for."""
    plain, cached = price(Usage(input, output)), price(Usage(input, output, cache_write=input))
    known = [each for each in (plain, cached) if each is not None]
    return Cost(input, output, money_of(max(known)) if known else None)


def rate_of(price: Price, input: int, output: int) -> float:
    """What one token of an answer costs, in the money of budgets."""
    with_it, without = price(Usage(input, output)), price(Usage(input, 0))
    if with_it is None or without is None or output <= 0:
        return 0.0
    return (money_of(with_it - without) or 0) / output


_NOTHING_PAID = {"key", "credit", "model", "rate", "overflow", "request", "vision", "connection"}


def charge_for(allowed: AllowedCall, price: Price, usage: Usage, cost: float | None, text: str) -> Charge:
    """What a call has used that was answered. A host that does not count is counted for."""
    if not usage.input and not usage.output:
        return charge_for_cut(allowed, price, text)
    money = cost if cost is not None else price(usage)
    return _charged(allowed, usage.input + usage.output, money_of(max(0.0, money or 0.0)) or 0)


def charge_for_failure(allowed: AllowedCall, price: Price, kind: str, cut: str) -> Charge:
    """Who refused, or was not reached, has read nothing; whoever broke off has."""
    if kind in _NOTHING_PAID and not cut:
        return _charged(allowed, 0, 0)
    return charge_for_cut(allowed, price, cut)


def charge_for_cut(allowed: AllowedCall, price: Price, text: str) -> Charge:
    """As far as one can tell from what came of it."""
    output = min(len(text) // 3, allowed.cost.output)
    used = most_of(price, allowed.cost.input, output)
    return _charged(allowed, used.tokens, used.money or 0)


def _charged(allowed: AllowedCall, tokens: int, money: int) -> Charge:
    return Charge(allowed.reservation.key, tokens, money, allowed.reservation)


def _unbounded(bound: Bound) -> Bound:
    return structs.replace(bound, limit=Limit())


def _in_place(limits: Mapping[Account, Limit], payer: Payer) -> list[tuple[Account, Limit]]:
    places = [(_placed(account, payer), limit) for account, limit in limits.items()]
    return [(account, limit) for account, limit in places if account is not None]


def _placed(account: Account, payer: Payer) -> Account | None:
    """An account of each conversation, or of each run of a job, is that of this one."""
    match account.per:
        case "session":
            return structs.replace(account, scope=payer.thread) if payer.thread else None
        case "job":
            return structs.replace(account, scope=payer.job) if payer.job else None
    return account
