"""Putting questions to people, with the rest that follows them, unless they were answered ahead."""

from functools import partial

from msgspec import structs

from ..core.decide import APPROVER
from ..core.log import MANY, Answered, ToldApprover
from ..core.overrun import OVERRUN, Overrun
from ..core.people import Role
from ..errors import ThreadGone
from ..ports import Bus, Clock, Log
from ..ports.events import PermissionAsked
from ..ports.failpoint import reach
from .approvals import Approvals, asking, asking_beyond, pending_in, question, wanted
from .approvers import Approvers, ReachedApprover
from .auditing import granted
from .book import Book
from .calls import Toolbox


class PermissionQuestions:
    def __init__(
        self,
        store: Log,
        bus: Bus,
        toolbox: Toolbox,
        approvals: Approvals,
        clock: Clock,
        approvers: Approvers | None = None,
    ) -> None:
        self._store = store
        self._bus = bus
        self._toolbox = toolbox
        self._approvals = approvals
        self._clock = clock
        self._approvers = approvers

    async def ask(self, book: Book, places: tuple[int, ...], role: Role) -> bool:
        """The question and the rest that follows it are one commit; says whether the thread rests.

        What was allowed ahead is not asked, and where nobody is there nobody is. `role` is the requester's: who may not
        answer is told who else was asked."""
        thread = book.thread
        unanswered = False
        for place in places:
            toolbox = self._toolbox
            spec, grounds = toolbox.spec(thread, place), toolbox.ground(thread, place)
            asked = asking(thread, place, spec, grounds, self._clock.now())
            reached = await self._reached(book, role)
            told = tuple(ToldApprover(each.person, each.session) for each in reached if each.session)
            book.keep(structs.replace(asked, told=told) if told else asked)
            grant = await book.patiently(partial(self._approvals.granted, wanted(thread, asked)))
            if grant:
                answered = Answered(asked.answer, place, "allowed", f"grant:{grant}")
                book.keep(answered)
                book.note(granted(thread, answered))
            elif thread.turn.unattended:
                book.keep(Answered(asked.answer, place, "unattended"))
            else:
                unanswered = True
                outbound, timer = question(thread, thread.asked[place], reached, await self._requester(book, reached))
                book.send(*outbound, timers=(timer,))
        return await self._rest(book) if unanswered else False

    async def ask_beyond(self, book: Book, overrun: Overrun, role: Role) -> bool:
        """Ask whether a turn may go beyond a budget, as `ask` does about calls; says whether the thread rests."""
        thread = book.thread
        reached = await self._reached_for(book, overrun, role)
        asked = asking_beyond(thread, overrun, self._clock.now())
        told = tuple(ToldApprover(each.person, each.session) for each in reached if each.session)
        book.keep(structs.replace(asked, told=told) if told else asked)
        outbound, timer = question(thread, thread.asked[OVERRUN], reached, await self._requester(book, reached))
        book.send(*outbound, timers=(timer,))
        return await self._rest(book)

    async def _rest(self, book: Book) -> bool:
        thread, rests = book.thread, await book.rest()
        reach("approval.asked")
        asked = tuple(pending_in(thread, thread.address))
        self._bus.publish(PermissionAsked(thread.id, book.lease.head, asked))
        if (terms := thread.turn.terms) and terms.task:  # whoever watches the conversation that it works for answers it
            self._bus.publish(PermissionAsked(terms.task.root, 0, asked))
        if (front := await book.front()) != thread.id:  # so does whoever is in the chat in whose background it is
            self._bus.publish(PermissionAsked(front, 0, asked))
        return rests

    async def _reached_for(self, book: Book, overrun: Overrun, role: Role) -> list[ReachedApprover]:
        """Those who may answer it, unless the requester may themselves."""
        if self._approvers is None or overrun.may_answer(book.thread.turn.requester, role):
            return []
        reached = await book.patiently(self._approvers.reached)
        return [each for each in reached if overrun.may_answer(each.person, each.role)]

    async def _requester(self, book: Book, reached: list[ReachedApprover]) -> str:
        """By name, for others who are asked."""
        who = book.thread.turn.requester
        if self._approvers is None or not reached or not who:
            return who
        return await book.patiently(partial(self._approvers.name_of, who))

    async def _reached(self, book: Book, role: Role) -> list[ReachedApprover]:
        if role >= APPROVER or book.thread.turn.unattended or self._approvers is None:
            return []
        return await book.patiently(self._approvers.reached)

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
