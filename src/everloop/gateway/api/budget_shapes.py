"""What is asked and told about budgets. Money is in US dollars."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from .shapes import ApiInput

Period = Literal["month", "day", "session", "job"]


class BudgetSetting(ApiInput, frozen=True):
    """What may be spent from now on; null is no limit. What was spent in the period that runs stays spent."""

    per: Period = "month"
    tokens: Annotated[int, Meta(ge=0, le=10**15)] | None = None
    money: Annotated[float, Meta(ge=0, le=10**7)] | None = None


class OfPeriod(ApiInput, frozen=True):
    per: Period = "month"


class BudgetShown(Struct, frozen=True):
    """A limit (null: none), what was spent of it in the period that runs, what running calls hold of it, and when the
    next period begins (Unix time; 0: with the next call, or never). What was spent and is held is null where the limit
    holds in each conversation, or each run of a job. `set`: for them, and not as it goes with a role."""

    per: Period
    tokens: int | None
    money: float | None
    spent_tokens: int | None
    spent_money: float | None
    held_tokens: int | None
    held_money: float | None
    resets: float
    set: bool


class BudgetList(Struct, frozen=True):
    """Whose they are, and those that hold; none at all is no limit. `notes` say what is to be known of a change."""

    name: str
    budgets: list[BudgetShown]
    notes: list[str] = []
