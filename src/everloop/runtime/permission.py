"""Putting questions to people, with the rest that follows them, unless they were answered ahead."""

from functools import partial

from ..core.errors import ThreadGone
from ..core.events import PermissionAsked
from ..core.failpoint import reach
from ..core.log import Answered
from ..core.ports import Bus, Clock, Log
from ..core.rows import MANY
from .approvals import Approvals, asking, pending_in, question, wanted
from .auditing import granted
from .book import Book
from .calls import Toolbox


class PermissionQuestions:
    def __init__(self, store: Log, bus: Bus, toolbox: Toolbox, approvals: Approvals, clock: Clock) -> None:
        self._store = store
        self._bus = bus
        self._toolbox = toolbox
        self._approvals = approvals
        self._clock = clock

    async def ask(self, book: Book, places: tuple[int, ...]) -> bool:
        """The question and the rest that follows it are one commit; says whether the thread rests.

        What was allowed ahead is not asked, and where nobody is there nobody is."""
        thread = book.thread
        unanswered = False
        for place in places:
            toolbox = self._toolbox
            spec, grounds = toolbox.spec(thread, place), toolbox.ground(thread, place)
            asked = asking(thread, place, spec, grounds, self._clock.now())
            book.keep(asked)
            call = wanted(thread, asked)
            grant = await book.patiently(partial(self._approvals.granted, call))
            if grant:
                answered = Answered(asked.answer, place, "allowed", f"grant:{grant}")
                book.keep(answered)
                book.note(granted(thread, answered))
            elif thread.turn.unattended:
                book.keep(Answered(asked.answer, place, "unattended"))
            else:
                unanswered = True
                book.send(*question(thread, asked))
        if not unanswered:
            return False
        rests = await book.rest()
        reach("approval.asked")
        self._bus.publish(PermissionAsked(thread.id, book.lease.head, tuple(pending_in(thread, thread.address))))
        return rests

    async def ask_about_files(self, thread: str = "") -> None:
        """Tell people of changes of prompt files that are held back, now that this thread rests."""
        for approval in await self._approvals.ask_about_files(thread):
            where = approval.decision.thread
            if where and self._bus.hears(where):
                try:
                    head = (await self._store.open(where, MANY)).row.head
                except ThreadGone:  # the change of the file waits all the same
                    head = 0
                self._bus.publish(PermissionAsked(where, head, (approval,)))
