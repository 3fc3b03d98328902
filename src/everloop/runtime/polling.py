"""The way out of a door that sends nothing by itself: bots fetch what was said, and say what became of it.

The rows are those of the one outbox. What a bot is given is claimed for a while; what it does not confirm comes again,
and what it confirms never does. So each arrives at least once, under the same id.
"""

import logging
from collections.abc import Sequence
from typing import Protocol

from ..core.people import OWNER
from ..ports import Clock, Outgoing, Polled
from ..ports.polled import PolledAnswer, PolledPlaces, PolledReceipt, polled_id
from .acknowledgements import Acknowledgements
from .approvals import Approvals
from .askers import Askers
from .clock import MACHINE
from .outbox import LASTS, LEAST

_log = logging.getLogger("everloop.polling")

GRACE = 10.0  # seconds for which an answer is kept for whoever asked, where that may be another process
NOTED = 60.0  # seconds after which it is noted again that a bot comes
NOT_CONFIRMED = "it was fetched {} times, and no bot has confirmed it within {:g} hours"


class PollingStore(Outgoing, Polled, Protocol):
    """Answers on their way out, and those that are fetched."""


class PolledOutbox:
    def __init__(
        self,
        store: PollingStore,
        shown: Acknowledgements,
        askers: Askers,
        approvals: Approvals,
        grace: float = GRACE,
        lasts: float = LASTS,
        clock: Clock = MACHINE,
    ) -> None:
        self._store = store
        self._shown = shown
        self._askers = askers
        self._approvals = approvals
        self._grace = grace
        self._lasts = lasts
        self._clock = clock
        self._noted: dict[str, float] = {}

    async def take(self, places: PolledPlaces, limit: int, seconds: float) -> list[PolledAnswer]:
        """What may be delivered now, in order, at most one of each session; nobody else has it for so many seconds."""
        await self._note(places)
        await self._shown.settle()  # what was given a moment ago is not among them
        spare = self._askers.mails
        found = await self._store.poll(places, limit=limit, seconds=seconds, grace=self._grace, spare=spare)
        asked = any(each.outbound.approval for each in found)
        waiting = {each.id for each in await self._approvals.waiting()} if asked else set()
        return [each for each in found if await self._is_wanted(each, waiting)]

    async def _note(self, places: PolledPlaces) -> None:
        """Whoever may have to be asked something is asked there, as long as a bot of the owner's comes."""
        now = self._clock.now()
        fresh = [each for each in places.prefixes if now - self._noted.get(each, 0.0) > NOTED]
        if places.owner == OWNER and fresh:
            self._noted |= dict.fromkeys(fresh, now)
            await self._store.note_polled(fresh)

    async def _is_wanted(self, each: PolledAnswer, waiting: set[str]) -> bool:
        """No question that was answered before it could be asked, and nothing that no bot can deliver."""
        if each.outbound.approval and each.outbound.approval not in waiting and each.attempts == 1:
            await self._store.settle_polled(each.row, "sent", "it was answered before a bot has fetched it")
            return False
        if each.attempts <= LEAST or each.trying <= self._lasts:
            return True
        why = NOT_CONFIRMED.format(each.attempts - 1, self._lasts / 3600)
        _log.warning("an answer to %s was given up: %s", each.outbound.address, why)
        await self._store.settle_polled(each.row, "failed", why)
        return False

    async def put_back(self, answers: Sequence[PolledAnswer]) -> None:
        """Nobody was there any more to be given these."""
        await self._store.put_back(answers)

    async def settle(self, places: PolledPlaces, receipts: Sequence[PolledReceipt]) -> list[str]:
        """What a bot says became of answers; returns the ids that are none of its answers. Saying it twice is once."""
        rows = {each.id: _row_in(each.id) for each in receipts}
        known = await self._store.find_polled(places, [row for row in rows.values() if row])
        unknown = []
        for each in receipts:
            row = rows[each.id]
            if row not in known or polled_id(row, known[row]) != each.id:
                unknown.append(each.id)
                continue
            await self._store.settle_polled(row, each.state, each.why, each.seconds)
        return unknown


def _row_in(id: str) -> int:
    """0 where there is none."""
    number = id.partition("-")[0]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0
