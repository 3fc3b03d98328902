"""Budgets as commands need them."""

from ..runtime.allotments import Allotments, BudgetLine, limit_of, shown_limit, shown_reset, shown_spent

__all__ = ["Allotments", "BudgetLine", "limit_of", "shown_limit", "shown_reset", "shown_spent"]
