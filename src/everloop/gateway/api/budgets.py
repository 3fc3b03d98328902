"""Budgets: one's own to look at, others' to set. Nobody sets their own but the owner."""

from collections.abc import Sequence

import msgspec

from ...errors import MailRefused
from ..http.errors import Refused, sentence
from .budget_shapes import BudgetList, BudgetShown
from .people_ports import BudgetState
from .route import ApiAnswer, ApiCall


async def own_budget(call: ApiCall) -> ApiAnswer:
    who = call.principal
    return _listed("", await call.agent.budgets.of(who.user, who.role))


async def show_budget(call: ApiCall) -> ApiAnswer:
    try:
        return _listed(*await call.agent.budgets.show(call.path.id))
    except MailRefused as error:
        raise Refused(404, "not_found", sentence(error)) from error


async def change_budget(call: ApiCall) -> ApiAnswer:
    asked, budgets = call.body, call.agent.budgets
    await budgets.limit(call.path.id, asked.per, call.principal.role, asked.tokens, asked.money)
    return _listed(*await budgets.show(call.path.id), notes=budgets.notes_on(asked.money))


async def drop_budget(call: ApiCall) -> ApiAnswer:
    await call.agent.budgets.change(call.path.id, call.query.per, call.principal.role, None)
    return await show_budget(call)


async def begin_budget_anew(call: ApiCall) -> ApiAnswer:
    await call.agent.budgets.begin_anew(call.path.id, call.body.per, call.principal.role)
    return await show_budget(call)


def _listed(name: str, lines: Sequence[BudgetState], notes: Sequence[str] = ()) -> BudgetList:
    shown = [msgspec.convert(line, BudgetShown, from_attributes=True) for line in lines]
    return BudgetList(name, shown, list(notes))
