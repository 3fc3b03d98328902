"""What people may spend: looked at by themselves, and set by whoever may, from whichever door."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from ..core.overrun import Account, Per
from ..core.people import Role
from ..errors import MailRefused
from ..ports import Budgets, Directory
from ..ports.budgets import DOLLAR, GUESTS, HOUSE, Bound, Limit, Spending, dollars, money_of
from .budget_words import said_spent, shown_money, shown_time
from .budgets import BudgetRules
from .membership import Membership

TOGETHER = {"house": HOUSE, "guests": GUESTS}  # who has a budget and is no person
NO_LIMIT = "No limit is set."
LIMITED_TOGETHER = "What everyone together may spend here is limited, too."
EACH = {"session": "in each conversation", "job": "in each run of a job"}
MOST_TOKENS, MOST_DOLLARS = 10**15, 10**7


class BudgetLine(Struct, frozen=True):
    """A limit in tokens and dollars (None: none), what was spent in the period that runs, and when the next begins
    (Unix time; 0: with the first call, or never). What was spent is None where it is counted in each conversation, or
    each run of a job, and none is looked at. `set`: for them, and not as it goes with their role."""

    per: Per
    tokens: int | None
    money: float | None
    spent_tokens: int | None
    spent_money: float | None
    held_tokens: int | None
    held_money: float | None
    resets: float
    set: bool


class AllotmentStore(Directory, Budgets, Protocol):
    """Who is known, and what they may spend."""


class Allotments:
    """What changes something raises MailRefused, with a sentence that says why not."""

    def __init__(
        self,
        store: AllotmentStore,
        rules: Callable[[], BudgetRules],
        changed: Callable[[], None] = lambda: None,
        unpriced: Callable[[], str] = lambda: "",
    ) -> None:
        """`changed` is told when limits are others than they were; `unpriced` is the usual model's name, if nobody
        knows what it costs."""
        self._store = store
        self._members = Membership(store)
        self._rules = rules
        self._changed = changed
        self._unpriced = unpriced

    async def of(self, owner: str, role: Role, thread: str = "") -> list[BudgetLine]:
        """What holds for somebody, and what they have spent of it; of what holds in each conversation, in this one."""
        rules = self._rules()
        usual = rules.guests if owner == GUESTS else Limit() if owner == HOUSE else rules.roles.get(role, Limit())
        limits: dict[Per, tuple[Limit, bool]] = {"month": (usual, False)} if usual else {}
        limits |= {row.per: (row.limit, True) for row in await self._store.limits([owner])}
        spent = {row.account: row for row in await self._store.spending([owner], ("", thread))}
        found = []
        for per, (limit, is_set) in limits.items():
            account = _account(owner, per, thread)
            found.append(_line(per, limit, is_set, spent.get(account, Spending(account)) if account else None))
        return found

    async def tell(self, owner: str, role: Role, thread: str) -> str:
        """As somebody is told in a conversation that nobody else reads, with what holds for everyone together."""
        together = [line for line in await self.of(HOUSE, Role.OWNER) if _is_limit(line)]
        said = said_lines(await self.of(owner, role, thread))
        if role >= Role.ADMIN:
            said += [said_spent(_bound(line, HOUSE)) for line in together]
        elif together:
            said.append(LIMITED_TOGETHER)
        return "\n".join(said) or NO_LIMIT

    async def show(self, who: str) -> tuple[str, list[BudgetLine]]:
        """What somebody is called, and what holds for them. Raises MailRefused."""
        owner, name, role = await self._found(who)
        return name, await self.of(owner, role)

    async def change(self, who: str, per: Per, by: Role, limit: Limit | None) -> str:
        """Set what somebody may spend; None: as it goes with their role. What they are called."""
        owner, name, _ = await self._below(who, by)
        if owner in TOGETHER.values() and per in ("session", "job"):
            raise MailRefused(f"{who} has budgets of a month and a day")
        check_limit(limit or Limit())
        await self.assign(owner, per, limit)
        return name

    async def limit(self, who: str, per: Per, by: Role, tokens: int | None, money: float | None) -> str:
        """As `change`, in dollars."""
        return await self.change(who, per, by, limit_of(tokens, money))

    def notes_on(self, money: float | None) -> list[str]:
        """What whoever limits money has to know."""
        model = "" if money is None else self._unpriced()
        return [said_unpriced(model)] if model else []

    async def begin_anew(self, who: str, per: Per, by: Role) -> str:
        owner, name, _ = await self._below(who, by)
        await self._store.begin_anew(owner, per)
        self._changed()
        return name

    async def assign(self, owner: str, per: Per, limit: Limit | None) -> None:
        """For a program, which knows itself whom it lets do so."""
        await self._store.set_limit(owner, per, limit)
        self._changed()

    async def set_before(self, who: str, per: Per) -> Limit | None:
        owner, _, _ = await self._found(who)
        return next((row.limit for row in await self._store.limits([owner]) if row.per == per), None)

    async def _found(self, who: str) -> tuple[str, str, Role]:
        if who in TOGETHER:
            return TOGETHER[who], who, Role.OWNER if who == "house" else Role.GUEST
        person = await self._members.find(who)
        return person.id, person.name, person.role

    async def _below(self, who: str, by: Role) -> tuple[str, str, Role]:
        """The owner changes everybody's; an administrator that of those below, and so never their own."""
        owner, name, role = await self._found(who)
        if by is not Role.OWNER and (by < Role.ADMIN or role >= by):
            raise MailRefused(f"only the owner changes what {name} may spend")
        return owner, name, role


def said_unpriced(model: str) -> str:
    return (
        f"{model} has no price here, so nobody under a limit on money is answered by it: say what it costs in the "
        "settings ([prices]), or limit tokens."
    )


def check_limit(limit: Limit) -> None:
    if limit.tokens is not None and not 0 <= limit.tokens <= MOST_TOKENS:
        raise MailRefused(f"a limit of tokens is a whole number from 0 to {MOST_TOKENS:,}, or none")
    if limit.money is not None and not 0 <= limit.money <= MOST_DOLLARS * DOLLAR:
        raise MailRefused(f"a limit of money is an amount of dollars from 0 to {MOST_DOLLARS:,}, or none")


def limit_of(tokens: int | None, money: float | None) -> Limit:
    """Of dollars, as they are counted."""
    return Limit(tokens, money_of(money))


def said_lines(lines: list[BudgetLine]) -> list[str]:
    """For whose they are: what was spent of each, and when it begins anew."""
    return [
        f"You may spend {shown_limit(line)}." if line.spent_tokens is None else said_spent(_bound(line))
        for line in lines
        if _is_limit(line)
    ]


def shown_limit(line: BudgetLine) -> str:
    parts = [f"{line.tokens:,} tokens"] if line.tokens is not None else []
    parts += [shown_money(money_of(line.money) or 0)] if line.money is not None else []
    where = f" {EACH[line.per]}" if line.spent_tokens is None else ""
    return f"{' and '.join(parts) or 'no limit'}{where}"


def shown_spent(line: BudgetLine) -> str:
    if line.spent_tokens is None:
        return ""
    held = f" ({line.held_tokens:,} tokens held)" if line.held_tokens else ""
    return f"{line.spent_tokens:,} tokens, {shown_money(money_of(line.spent_money) or 0)}{held}"


def shown_reset(line: BudgetLine) -> str:
    return shown_time(line.resets) if line.resets else ""


def _account(owner: str, per: Per, thread: str) -> Account | None:
    """Where it is counted; None: in each conversation, or run of a job, and in none that is looked at."""
    if per not in EACH:
        return Account(owner, per)
    return Account(owner, per, thread) if per == "session" and thread else None


def _is_limit(line: BudgetLine) -> bool:
    return line.tokens is not None or line.money is not None


def _bound(line: BudgetLine, owner: str = "") -> Bound:
    account = Account(owner, line.per)
    held = line.held_tokens or 0, money_of(line.held_money) or 0
    spent = Spending(account, line.spent_tokens or 0, money_of(line.spent_money) or 0, *held, line.resets)
    return Bound(account, limit_of(line.tokens, line.money), spent)


def _line(per: Per, limit: Limit, is_set: bool, spent: Spending | None) -> BudgetLine:
    return BudgetLine(
        per=per,
        tokens=limit.tokens,
        money=None if limit.money is None else dollars(limit.money),
        spent_tokens=spent.tokens if spent else None,
        spent_money=dollars(spent.money) if spent else None,
        held_tokens=spent.held_tokens if spent else None,
        held_money=dollars(spent.held_money) if spent else None,
        resets=spent.resets if spent else 0.0,
        set=is_set,
    )
