"""A task that a turn has handed on: who works for whom, and for how much."""

from msgspec import Struct

from .exits import Exits


class TaskBudget(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a task and all that works for it may spend: tokens, and money in billionths of a dollar; None: any."""

    call: str
    tokens: int | None = None
    money: int | None = None


class Task(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a conversation works for: a `call` (thread:answer:place) of another, which `waits` for what comes of it, or
    is told. In the end it works for `root`, whose conversation's budget is its own, or for the `run` of a job."""

    call: str
    waits: bool = False
    agent: str = ""  # the profile by whose name it works
    depth: int = 1  # a task of a task has 2
    root: str = ""
    run: str = ""
    budgets: tuple[TaskBudget, ...] = ()  # its own, and those of the tasks that it works for
    rounds: int = 0  # tasks that have reported before it, in a row, with nobody saying anything
    outside: bool = False  # strangers' words had been read where it was handed on
    exits: Exits = Exits()  # what had left there of what only strangers gave
