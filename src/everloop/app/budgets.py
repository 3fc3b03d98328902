"""Budgets as the settings have them."""

from collections.abc import Callable

from ..core.people import Role
from ..core.prompt import Usage
from ..errors import ModelMissing
from ..ports.budgets import Limit, money_of
from ..runtime.budgets import BudgetRules
from ..runtime.models import Models
from ..settings.shape import BudgetSection
from .waiting_models import Absent


def following(section: Callable[[], BudgetSection]) -> Callable[[], BudgetRules]:
    """The rules, as the settings are now; the same value as long as these are."""
    last = section()
    rules = budget_rules(last)

    def now() -> BudgetRules:
        nonlocal last, rules
        if (found := section()) is not last:
            last, rules = found, budget_rules(found)
        return rules

    return now


def budget_rules(section: BudgetSection) -> BudgetRules:
    return BudgetRules(
        roles={
            Role.GUEST: _limit(section.guest_tokens, section.guest_money),
            Role.USER: _limit(section.user_tokens, section.user_money),
        },
        guests=_limit(section.guests_tokens, section.guests_money),
        warn_at=section.warn_at,
        cheaper_at=section.cheaper_at,
        cheaper_model=section.cheaper_model,
        ask=section.ask,
    )


def _limit(tokens: int, money: float) -> Limit:
    return Limit(tokens or None, money_of(money) or None)


def unpriced_in(models: Models) -> str:
    """What the usual model is called, if there is one and nobody knows what it costs."""
    try:
        model = models.find("")
    except ModelMissing:
        return ""
    is_there = not isinstance(model.provider, Absent)
    return model.name if is_there and model.price(Usage(1, 1)) is None else ""
