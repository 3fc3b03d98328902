"""Limits, what was spent of them and what running calls hold, written once for both databases.

Room is looked for and taken by one statement, so that no two can take the same; the next period begins in it, too. On
PostgreSQL what goes with a turn's commit is done in the batch function (budget_functions.py).
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import msgspec

from ..core.overrun import Account, Per
from ..ports.audit import line_of
from ..ports.budgets import BOUNDLESS, Bound, Charge, Limit, LimitRow, Reservation, Spending, in_new_period
from .audit import note
from .database import Ask, Database

_encode = msgspec.json.Encoder().encode
_read_accounts = msgspec.json.Decoder(list[Account]).decode
read_account = msgspec.json.Decoder(Account).decode


def take(owner: str, per: str, scope: str, tokens: str, money: str, most_tokens: str, most_money: str) -> str:
    """The statement that takes room in an account if there is any, in these words for its values. A row comes of it, or
    none."""
    due = "s.resets > 0 AND s.resets <= {now}"
    return f"""INSERT INTO spending AS s (owner, per, scope, tokens, money, held_tokens, held_money, resets)
        SELECT {owner}, {per}, {scope}, 0, 0, {tokens}, {money}, CASE {per} WHEN 'session' THEN 0.0
            WHEN 'day' THEN (floor({{now}} / 86400) + 1) * 86400 ELSE {{now}} + 30 * 86400.0 END
        WHERE {tokens} <= {most_tokens} AND {money} <= {most_money}
        ON CONFLICT (owner, per, scope) DO UPDATE SET
            tokens = CASE WHEN {due} THEN 0 ELSE s.tokens END, money = CASE WHEN {due} THEN 0 ELSE s.money END,
            warned = CASE WHEN {due} THEN 0 ELSE s.warned END,
            resets = CASE WHEN {due} THEN excluded.resets ELSE s.resets END,
            held_tokens = s.held_tokens + excluded.held_tokens, held_money = s.held_money + excluded.held_money
        WHERE CASE WHEN {due} THEN 0 ELSE s.tokens END + s.held_tokens + excluded.held_tokens <= {most_tokens}
            AND CASE WHEN {due} THEN 0 ELSE s.money END + s.held_money + excluded.held_money <= {most_money}
        RETURNING owner"""


TAKE = take(
    *(f"CAST(${n} AS TEXT)" for n in (1, 2, 3)),
    *(f"CAST(${n} AS {{int}})" for n in (4, 5, 6, 7)),
)
GIVE_BACK = """UPDATE spending SET held_tokens = held_tokens - $4, held_money = held_money - $5,
    tokens = tokens + $6, money = money + $7 WHERE owner = $1 AND per = $2 AND scope = $3"""
HOLD = """INSERT INTO reservations(key, owner, tokens, money, at, accounts)
    VALUES($1, $2, $3, $4, {now}, $5) ON CONFLICT DO NOTHING RETURNING key"""
FREE = "DELETE FROM reservations WHERE key = $1 RETURNING tokens, money, accounts"

_SPENT = (
    "SELECT owner, per, scope, tokens, money, held_tokens, held_money, resets, warned, CAST({now} AS {real}) "
    "FROM spending"
)
_MOST = 3  # owners, and scopes, that are asked for at once
_OF, _IN = "owner IN ($1, $2, $3)", "scope IN ($4, $5, $6)"
_SET = """INSERT INTO limits(owner, per, tokens, money, at) VALUES($1, $2, $3, $4, {now})
    ON CONFLICT(owner, per) DO UPDATE SET tokens = excluded.tokens, money = excluded.money, at = excluded.at"""
_ANEW = """UPDATE spending SET tokens = 0, money = 0, warned = 0,
    resets = CASE WHEN resets > 0 THEN {now} ELSE 0 END WHERE owner = $1 AND per = $2"""
_WARN = """UPDATE spending SET warned = 1 WHERE owner = $1 AND per = $2 AND scope = $3 AND warned = 0 RETURNING owner"""


class BudgetRows(Database):
    async def limits(self, owners: Sequence[str] = ()) -> list[LimitRow]:
        statement = "SELECT owner, per, tokens, money FROM limits"
        if owners:
            rows = await self._glance(f"{statement} WHERE {_OF} ORDER BY owner, per", *_three(owners))
        else:
            rows = await self._ask(f"{statement} ORDER BY owner, per")
        return [LimitRow(owner, per, Limit(tokens, money)) for owner, per, tokens, money in rows]

    async def set_limit(self, owner: str, per: Per, limit: Limit | None) -> None:
        said = {"tokens": limit.tokens, "money": limit.money} if limit is not None else {"default": True}
        line = line_of("budget.changed", owner, {"per": per, **said})

        async def work(ask: Ask) -> None:
            if limit is None:
                await ask("DELETE FROM limits WHERE owner = $1 AND per = $2", owner, per)
            else:
                await ask(_SET, owner, per, limit.tokens, limit.money)
            await note(ask, line)

        await self._do(work)

    async def spending(self, owners: Sequence[str] = (), scopes: Sequence[str] = ("",)) -> list[Spending]:
        if owners:
            rows = await self._glance(f"{_SPENT} WHERE {_OF} AND {_IN}", *_three(owners), *_three(scopes))
        else:
            rows = await self._ask(f"{_SPENT} ORDER BY owner, per, scope")
        return [_spending(row) for row in rows]

    async def begin_anew(self, owner: str, per: Per) -> None:
        line = line_of("budget.changed", owner, {"per": per, "reset": True})

        async def work(ask: Ask) -> None:
            await ask(_ANEW, owner, per)
            await note(ask, line)

        await self._do(work)

    async def reserve(self, reservation: Reservation) -> Account | None:
        return await self._do(partial(hold, reservation=reservation))

    async def charge(self, charge: Charge) -> None:
        await self._do(partial(settle, charge=charge))

    async def warn_once(self, account: Account) -> bool:
        return await self._changed_one(_WARN, account.owner, account.per, account.scope)


def _three(names: Sequence[str]) -> list[str]:
    """Some of them twice, so that the statement is always the same."""
    assert 0 < len(names) <= _MOST
    return [*names, *[names[0]] * (_MOST - len(names))]


async def hold(ask: Ask, reservation: Reservation) -> Account | None:
    """As `Budgets.reserve` promises. On PostgreSQL the accounts are locked in one order."""
    r, accounts = reservation, accounts_of(reservation)
    held = r.key, r.owner, r.tokens, r.money, accounts
    if not await ask(HOLD, *held):  # the call that holds it was lost
        await settle(ask, Charge(r.key))
        await ask(HOLD, *held)
    taken: list[Account] = []
    for bound in in_order(r):
        if not await ask(TAKE, *values_of(r, bound)):
            for account in taken:
                await _give_back(ask, account, r.tokens, r.money)
            await ask(FREE, r.key)
            return bound.account
        taken.append(bound.account)
    return None


async def settle(ask: Ask, charge: Charge) -> None:
    """As `Budgets.charge` promises."""
    for tokens, money, accounts in await ask(FREE, charge.key):
        used_tokens = tokens if charge.tokens is None else charge.tokens
        used_money = money if charge.money is None else charge.money
        for account in _read_accounts(accounts):
            await _give_back(ask, account, tokens, money, used_tokens, used_money)


async def settle_lost(ask: Ask, threads: Sequence[str]) -> None:
    """Charge what the calls of threads hold that are no more, or of which nobody hears any more."""
    for thread in threads:
        for key in (thread, f"title:{thread}"):  # of its turns, and of whoever was to find a title for it
            await settle(ask, Charge(key))


def in_order(reservation: Reservation) -> Sequence[Bound]:
    """So that two who lock the same accounts do so one after the other."""
    bounds = reservation.bounds
    if len(bounds) < 2:
        return bounds
    return sorted(bounds, key=lambda bound: (bound.account.owner, bound.account.per, bound.account.scope))


def accounts_of(reservation: Reservation) -> str:
    return _encoded(tuple([bound.account for bound in in_order(reservation)]))


@lru_cache(maxsize=1000)
def _encoded(accounts: tuple[Account, ...]) -> str:
    return _encode(accounts).decode()


def most_of(limit: Limit) -> tuple[int, int]:
    return (
        BOUNDLESS if limit.tokens is None else limit.tokens,
        BOUNDLESS if limit.money is None else limit.money,
    )


async def _give_back(
    ask: Ask, account: Account, tokens: int, money: int, used_tokens: int = 0, used_money: int = 0
) -> None:
    await ask(GIVE_BACK, account.owner, account.per, account.scope, tokens, money, used_tokens, used_money)


def values_of(reservation: Reservation, bound: Bound) -> tuple[object, ...]:
    a = bound.account
    return a.owner, a.per, a.scope, reservation.tokens, reservation.money, *most_of(bound.limit)


def _spending(row: Sequence[Any]) -> Spending:
    owner, per, scope, tokens, money, held_tokens, held_money, resets, warned, now = row
    spent = Spending(Account(owner, per, scope), tokens, money, held_tokens, held_money, resets, bool(warned))
    return in_new_period(spent, now)
