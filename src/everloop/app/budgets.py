"""Budgets as the settings have them."""

from functools import lru_cache

from ..core.budget import Limit, money_of
from ..core.people import Role
from ..runtime.budgets import BudgetRules
from ..settings.shape import BudgetSection


@lru_cache(maxsize=8)
def budget_rules(section: BudgetSection) -> BudgetRules:
    """The same value for the same settings."""
    guest = _limit(section.guest_tokens, section.guest_money)
    user = _limit(section.user_tokens, section.user_money)
    return BudgetRules(
        roles={Role.GUEST: guest, Role.USER: user},
        guests=_limit(section.guests_tokens, section.guests_money),
        warn_at=section.warn_at,
        cheaper_at=section.cheaper_at,
        cheaper_model=section.cheaper_model,
    )


def _limit(tokens: int, money: float) -> Limit:
    return Limit(tokens or None, money_of(money) or None)
