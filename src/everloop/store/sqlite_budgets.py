"""What goes with commits on SQLite of what calls use: as budgets.py has it, in fewer and cheaper statements.

What RETURNING tells, the count of changes tells too, and whoever charges a call knows what was reserved for it.
"""

from ..core.budget import Account, Charge, Reservation
from .budgets import FREE, GIVE_BACK, HOLD, TAKE, accounts_of, hold, in_order, settle, values_of
from .database import run_at_once
from .sqlite_statements import asking, in_sqlite
from .writer import Execute

_HOLD, _TAKE, _FREE = (in_sqlite(text.partition(" RETURNING")[0]) for text in (HOLD, TAKE, FREE))
_GIVE_BACK = in_sqlite(GIVE_BACK)


def charge_now(execute: Execute, charge: Charge) -> None:
    reserved = charge.reserved
    if reserved is None or charge.tokens is None or charge.money is None:
        run_at_once(settle(asking(execute), charge))
    elif execute(_FREE, (charge.key,)).connection.changes():
        for bound in reserved.bounds:
            a, r = bound.account, reserved
            execute(_GIVE_BACK, (a.owner, a.per, a.scope, r.tokens, r.money, charge.tokens, charge.money))


def reserve_now(execute: Execute, reservation: Reservation) -> Account | None:
    """The account in which there is no room for it. With more than one, or after a lost call, as elsewhere."""
    r = reservation
    if len(r.bounds) > 1 or not _take_one(execute, r):
        return run_at_once(hold(asking(execute), r))
    return None


def _take_one(execute: Execute, r: Reservation) -> bool:
    held = execute(_HOLD, (r.key, r.owner, r.tokens, r.money, accounts_of(r))).connection
    if not held.changes():
        return False
    if execute(_TAKE, values_of(r, in_order(r)[0])).connection.changes():
        return True
    execute(_FREE, (r.key,))
    return False
