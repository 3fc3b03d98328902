"""Routes of the API: what people may spend."""

from ....core.people import Role
from .. import budget_shapes, budgets, people_shapes
from ..route import ApiRoute

ROUTES = (
    ApiRoute(
        "GET",
        "/api/budget",
        "What you may spend, and have spent",
        handle=budgets.own_budget,
        answers=budget_shapes.BudgetList,
        least=Role.GUEST,
    ),
    ApiRoute(
        "GET",
        "/api/users/{id}/budget",
        "What somebody may spend, or `house`, or `guests`",
        handle=budgets.show_budget,
        answers=budget_shapes.BudgetList,
        at=people_shapes.OfPerson,
        least=Role.ADMIN,
        needs="admin",
    ),
    ApiRoute(
        "PUT",
        "/api/users/{id}/budget",
        "Say what somebody may spend, or `house`, or `guests`",
        handle=budgets.change_budget,
        answers=budget_shapes.BudgetList,
        at=people_shapes.OfPerson,
        body=budget_shapes.BudgetSetting,
        least=Role.ADMIN,
        needs="admin",
    ),
    ApiRoute(
        "DELETE",
        "/api/users/{id}/budget",
        "Let hold again what goes with their role",
        handle=budgets.drop_budget,
        answers=budget_shapes.BudgetList,
        at=people_shapes.OfPerson,
        query=budget_shapes.OfPeriod,
        least=Role.ADMIN,
        needs="admin",
    ),
    ApiRoute(
        "POST",
        "/api/users/{id}/budget/anew",
        "Let what was spent of it count as nothing",
        handle=budgets.begin_budget_anew,
        answers=budget_shapes.BudgetList,
        at=people_shapes.OfPerson,
        body=budget_shapes.OfPeriod,
        least=Role.ADMIN,
        needs="admin",
    ),
)
