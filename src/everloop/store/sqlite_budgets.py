"""What goes with commits on SQLite of what calls use: as budgets.py has it, in fewer and cheaper statements.

What RETURNING tells, the count of changes tells too, and whoever charges a call knows what was reserved for it. Where a
period runs and has room, which is nearly always so, one plain statement finds that out and takes it; only where it
finds nothing, the one that also begins periods is asked.
"""

from ..core.overrun import Account
from ..ports.budgets import Charge, Reservation
from .budgets import FREE, GIVE_BACK, accounts_of, hold, most_of, settle
from .database import run_at_once
from .sqlite_statements import asking, in_sqlite
from .writer import Execute

_HOLD = "INSERT OR IGNORE INTO reservations(key, owner, tokens, money, at, accounts) VALUES(?, ?, ?, ?, ?, ?)"
_TAKE = """UPDATE spending SET held_tokens = held_tokens + ?1, held_money = held_money + ?2
    WHERE owner = ?3 AND per = ?4 AND scope = ?5 AND (resets > ?6 OR resets = 0)
    AND tokens + held_tokens + ?1 <= ?7 AND money + held_money + ?2 <= ?8"""
_FREE = in_sqlite(FREE.partition(" RETURNING")[0])
_GIVE_BACK = in_sqlite(GIVE_BACK)


def charge_now(execute: Execute, charge: Charge) -> None:
    reserved = charge.reserved
    if reserved is None or charge.tokens is None or charge.money is None:
        run_at_once(settle(asking(execute), charge))
    elif execute(_FREE, (charge.key,)).connection.changes():
        for bound in reserved.bounds:
            a, r = bound.account, reserved
            execute(_GIVE_BACK, (a.owner, a.per, a.scope, r.tokens, r.money, charge.tokens, charge.money))


def reserve_now(execute: Execute, reservation: Reservation, now: float) -> Account | None:
    """The account in which there is no room for it. With more than one, in a new period or after a lost call, as
    elsewhere."""
    if len(reservation.bounds) > 1 or not _take_one(execute, reservation, now):
        return run_at_once(hold(asking(execute), reservation))
    return None


def _take_one(execute: Execute, r: Reservation, now: float) -> bool:
    (bound,) = r.bounds
    a = bound.account
    if not execute(_HOLD, (r.key, r.owner, r.tokens, r.money, now, accounts_of(r))).connection.changes():
        return False
    taking = (r.tokens, r.money, a.owner, a.per, a.scope, now, *most_of(bound.limit))
    if execute(_TAKE, taking).connection.changes():
        return True
    execute(_FREE, (r.key,))
    return False
