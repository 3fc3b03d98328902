"""Making room: a summary takes the place of what was said before, committed before anybody is told."""

from ..core.decide import Rules, used
from ..core.events import SummaryBegan, SummaryWritten
from ..core.failpoint import reach
from ..core.ports import Bus
from ..readings.compaction import Plan
from .book import Book
from .interrupt import Interrupt
from .models import Briefed, Models
from .summaries import Summary, bounds, compacted, plan_for, summarise, summary_tokens


class Compactor:
    def __init__(self, models: Models, bus: Bus) -> None:
        self._models = models
        self._bus = bus

    async def make_room(self, book: Book, briefed: Briefed, interrupt: Interrupt) -> bool:
        """Whether that could be tried: False when even a summary of it all would be too long."""
        thread = book.thread
        rules, before = bounds(thread, briefed.rules), used(thread, briefed.rules)
        planned = plan_for(thread, rules)
        if planned is None and not thread.wants_room:
            return False
        if thread.owes_reply:
            await book.write()  # a turn that ends without a model call must know its letter's number first
        written = await self._summarise(book, briefed, planned, rules, interrupt) if planned else Summary("")
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
        self, book: Book, briefed: Briefed, planned: Plan, rules: Rules, interrupt: Interrupt
    ) -> Summary | None:
        """None if it was stopped."""
        tokens = used(book.thread, briefed.rules)
        self._bus.publish(SummaryBegan(book.thread.id, book.lease.head, tokens))
        with interrupt:
            return await summarise(
                self._models, briefed.model, planned.covered, book.thread.summary, summary_tokens(rules)
            )
        return None
