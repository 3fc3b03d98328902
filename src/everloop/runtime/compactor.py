"""Making room: a summary takes the place of what was said before, committed before anybody is told."""

from ..core.decide import Rules, used
from ..core.prompt import Usage
from ..ports import Bus
from ..ports.budgets import Charge
from ..ports.events import SummaryBegan, SummaryWritten, Warned
from ..ports.failpoint import reach
from ..readings.compaction import Plan
from .book import Book
from .budgets import AllowedCall, BudgetControl, Denied, Payer, Price, charge_for
from .interrupt import Interrupt
from .models import Briefed, Model, Models
from .own_keys import NO_OWN_KEYS, AskedProvider, OwnKeys
from .summaries import Summary, bounds, compacted, plan_for, summarise, summary_tokens


class Compactor:
    def __init__(self, models: Models, bus: Bus, budgets: BudgetControl, own_keys: OwnKeys = NO_OWN_KEYS) -> None:
        self._own_keys = own_keys
        self._models = models
        self._bus = bus
        self._budgets = budgets

    async def make_room(self, book: Book, briefed: Briefed, interrupt: Interrupt, payer: Payer) -> bool:
        """Whether that could be tried: False when even a summary of it all would be too long. Where `payer` may spend
        no more on it, it is written plainly."""
        thread = book.thread
        rules, before = bounds(thread, briefed.rules), used(thread, briefed.rules)
        planned = plan_for(thread, rules)
        if planned is None and not thread.wants_room:
            return False
        if thread.owes_reply:
            await book.write()  # a turn that ends without a model call must know its letter's number first
        written = await self._summarise(book, briefed, planned, rules, interrupt, payer) if planned else Summary("")
        if written is None:
            return True  # stopped
        reach("compaction.summarised")
        book.keep(compacted(thread, planned, written))
        await book.write()  # nobody is told before
        reach("compaction.written")
        if planned:
            after = used(thread, briefed.rules)
            self._bus.publish(SummaryWritten(thread.id, book.lease.head, before, after, written.model))
        return True

    async def _summarise(
        self, book: Book, briefed: Briefed, planned: Plan, rules: Rules, interrupt: Interrupt, payer: Payer
    ) -> Summary | None:
        """None if it was stopped."""
        thread, tokens = book.thread, used(book.thread, briefed.rules)
        self._bus.publish(SummaryBegan(thread.id, book.lease.head, tokens))
        held: list[tuple[AllowedCall, Price]] = []

        async def afford(model: Model, most: Usage) -> bool:
            plan = await book.patiently(lambda: self._budgets.reserve(payer, thread.id, model.name, model.price, most))
            if isinstance(plan, AllowedCall):
                held.append((plan, model.price))
            return not isinstance(plan, Denied)

        async def asked(model: Model) -> AskedProvider:
            return await self._own_keys.asked(payer.id, model.key, model.provider)

        summary: Summary | None = None
        with interrupt:
            summary = await summarise(
                self._models,
                briefed.model,
                planned.covered,
                thread.summary,
                summary_tokens(rules),
                afford,
                asked if self._own_keys.has(payer.id) else None,
            )
        if summary and summary.refused:
            self._bus.publish(Warned(thread.id, book.lease.head, "own_summary", summary.refused))
        for allowed, price in held:
            book.charge(_charge(allowed, price, summary))
        return summary


def _charge(allowed: AllowedCall, price: Price, summary: Summary | None) -> Charge:
    """Of one that was stopped nobody knows how much was written."""
    if summary is None:
        return Charge(allowed.reservation.key)
    return charge_for(allowed, price, summary.usage, summary.cost, summary.text)
