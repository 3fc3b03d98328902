"""`everloop users budget`: what somebody may spend, or everyone together, and what they have spent of it."""

import argparse
import math

from ..app.records import Records
from ..app.spending import Allotments, BudgetLine, limit_of, note_on_money, shown_limit, shown_reset, shown_spent
from ..core.people import Role
from ..ports.budgets import PERIODS, Limit
from .table import table
from .terminal import Terminal, WrongUse

EITHER = "--default lets hold again what goes with the role: say it without --tokens and --money, or say these alone"
HEADS = ("PER", "LIMIT", "SPENT", "BEGINS ANEW", "")
WHOSE = "an id, an account, a name that one person alone has; or `house` (everyone together), `guests` (all of them)"


def add_budget(words: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    budget = words.add_parser("budget", help="show, or say, what somebody may spend")
    budget.add_argument("who", metavar="WHO", help=WHOSE)
    budget.add_argument("--tokens", type=_tokens, metavar="N", help="at most so many tokens; or none")
    budget.add_argument("--money", type=_money, metavar="X", help="at most so many US dollars; or none")
    budget.add_argument("--per", choices=PERIODS, default="month", help="in what time (default: month, of 30 days)")
    budget.add_argument("--default", action="store_true", help="let hold again what goes with their role")
    budget.add_argument("--reset", action="store_true", help="let the period begin anew, with nothing spent")


async def change_budget(records: Records, terminal: Terminal, given: argparse.Namespace) -> None:
    """What was asked for, done; then how it stands. Raises MailRefused."""
    budgets, who, per = records.budgets, given.who, given.per
    sets = given.tokens is not None or given.money is not None
    if given.default and sets:
        raise WrongUse(EITHER)
    if given.default:
        await budgets.change(who, per, Role.OWNER, None)
    elif sets:
        before = await budgets.set_before(who, per) or Limit()
        await budgets.change(who, per, Role.OWNER, _changed(before, given.tokens, given.money))
    if given.reset:
        await budgets.begin_anew(who, per, Role.OWNER)
    terminal.answer(await shown_budget(budgets, who))
    if given.money is not None and given.money >= 0 and (note := await note_on_money(records)):
        terminal.note(note)


async def shown_budget(budgets: Allotments, who: str) -> str:
    name, lines = await budgets.show(who)
    return table(HEADS, [_row(line) for line in lines]) if lines else f"There is no limit on what {name} may spend."


def _row(line: BudgetLine) -> tuple[str, ...]:
    return line.per, shown_limit(line), shown_spent(line), shown_reset(line), "" if line.set else "by role"


def _changed(before: Limit, tokens: int | None, money: float | None) -> Limit:
    """What is not said stays; below 0 is none."""
    asked = limit_of(tokens, money)
    return Limit(
        before.tokens if tokens is None else None if tokens < 0 else asked.tokens,
        before.money if money is None else None if money < 0 else asked.money,
    )


def _tokens(text: str) -> int:
    if text.lower() == "none":
        return -1
    plain = text.replace(",", "").replace("_", "")
    if not plain.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number of tokens, or none, not {text!r}")
    return int(plain)


def _money(text: str) -> float:
    if text.lower() == "none":
        return -1.0
    try:
        amount = float(text.removeprefix("$").replace(",", ""))
    except ValueError:
        amount = math.nan
    if not (math.isfinite(amount) and amount >= 0):
        raise argparse.ArgumentTypeError(f"an amount of US dollars such as 2.50, or none, not {text!r}")
    return amount
