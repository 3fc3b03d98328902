"""Asking a model what is to be remembered: whose memory it is pays for it, within a bound of its own for each day."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import structs

from ..core.overrun import Account
from ..core.people import OWNER, Role, is_chat
from ..core.prompt import Prompt, Usage
from ..errors import Postponed, ProviderError
from ..ports import Budgets, Clock, People, Provider
from ..ports.budgets import Bound, Charge, Limit, Spending, next_reset
from ..ports.memory_model import MemoryAnswer
from ..ports.provider import Delta, Reply
from ..ports.rows import Spent
from .budgets import AllowedCall, BudgetControl, Denied, Payer, charge_for, charge_for_failure
from .models import Model
from .own_keys import NO_OWN_KEYS, OwnKeys

SCOPE = "memory"  # of the account in which what a day of remembering may use is counted
SECONDS = 180.0  # for one call
SOONEST, LATEST = 60.0, 3600.0  # seconds after which it is looked again whether there is room: limits may be raised
ROUGHLY = 3  # characters of a token


class MemoryCalls:
    """The MemoryModel port. `model` finds who is asked (raises ModelMissing), `per_day` are the tokens that each
    principal may use for it in a day; 0: as many as their budgets have."""

    def __init__(
        self,
        model: Callable[[], Awaitable[Model]],
        budgets: BudgetControl,
        store: Budgets,
        people: People,
        clock: Clock,
        *,
        per_day: Callable[[], int],
        own_keys: OwnKeys = NO_OWN_KEYS,
    ) -> None:
        self._model = model
        self._budgets = budgets
        self._store = store
        self._people = people
        self._clock = clock
        self._per_day = per_day
        self._own_keys = own_keys

    async def room(self) -> int:
        """A third of what it can read, and of what a day allows: what is known and how to answer stand beside it."""
        tokens = min(filter(None, ((await self._model()).window, self._per_day())))
        return max(2000, tokens // 3 * ROUGHLY)

    async def ask(self, principal: str, owner: str, thread: str, key: str, prompt: Prompt) -> MemoryAnswer | None:
        await self._budgets.charge(Charge(key))  # of one that was lost
        model = await self._model()
        payer = await self._payer(principal, owner, thread)
        asked = await self._own_keys.asked(payer.id, model.key, model.provider)
        most = Usage(_size(prompt) // ROUGHLY + 20, prompt.max_tokens)
        if 0 < self._per_day() < most.input + most.output:
            return None
        bounds = (() if asked.own else await self._budgets.bounds(payer)) + await self._bound_of(principal)
        allowed = await self._budgets.reserve(payer, key, model.name, model.price, most, bounds)
        if isinstance(allowed, Denied):
            raise Postponed(f"there is no room in the budget: {allowed.text}", self._wait(allowed))
        reply = await self._reply(asked.provider, model, structs.replace(prompt, model=model.model), allowed)
        spent = Spent(0, reply.model or model.name, reply.usage, reply.cost, own=asked.own)
        return MemoryAnswer(reply, spent)

    async def _reply(self, provider: Provider, model: Model, prompt: Prompt, allowed: AllowedCall | None) -> Reply:
        try:
            async with asyncio.timeout(SECONDS):
                reply = await provider.reply(prompt, _ignore)
        except (ProviderError, TimeoutError) as error:
            if allowed:
                kind = error.kind if isinstance(error, ProviderError) else "timeout"
                await self._budgets.charge(charge_for_failure(allowed, model.price, kind, ""))
            raise
        if allowed:
            said = reply.text + "".join(call.args for call in reply.calls)
            await self._budgets.charge(charge_for(allowed, model.price, reply.usage, reply.cost, said))
        return reply

    async def _payer(self, principal: str, owner: str, thread: str) -> Payer:
        """Whose memory it is; of what another's bot has brought, whose bot that is."""
        payer = principal if owner in (OWNER, principal) or is_chat(owner) else owner
        if is_chat(payer):
            return Payer(payer, Role.USER, thread)  # nobody's, but of those who are no guests
        return Payer(payer, await self._people.role(payer), thread)

    async def _bound_of(self, principal: str) -> tuple[Bound, ...]:
        if not (most := self._per_day()):
            return ()
        account = Account(principal, "day", SCOPE)
        spent = {row.account: row for row in await self._store.spending((principal,), (SCOPE,))}
        return (Bound(account, Limit(tokens=most), spent.get(account, Spending(account))),)

    def _wait(self, denied: Denied) -> float:
        now = self._clock.now()
        resets = [bound.spent.resets or next_reset(bound.account.per, now) for bound in denied.full]
        return max(SOONEST, min(LATEST, max(resets, default=now + LATEST) - now))


def _size(prompt: Prompt) -> int:
    schemas = sum(len(str(tool.schema)) for tool in prompt.tools)
    return len(prompt.system) + len(prompt.transcript.text) + schemas


def _ignore(delta: Delta) -> None:
    pass
