"""Letters that somebody waits for an answer to, and how each is followed to it: asked, watched, or answered to someone
who may have gone."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from ..core.mail import Inbound, Said, reply_key
from ..core.turn import Finished
from ..errors import EverloopError, Fenced, MailRefused, TurnFailed
from ..ports import Feed
from ..ports.channel import traits_of
from ..ports.events import Answer, AnswerGiven, Event, LetterTaken, TurnEnded, answer_of
from ..ports.rows import Receipt
from ..runtime.askers import Asker, Askers
from ..runtime.lanes import Begun
from .house import House
from .user import as_before

PATIENCE = 1.0  # seconds between looks whether a turn waits for a person
WAITS = "a question waits in {} and has to be answered first (see: everloop approvals)"

Again = Callable[[], Awaitable[Inbound | None]]
Admit = Callable[[], Awaitable[None]]


class Answering:
    """`askers` are those who wait here."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._store = house.store
        self._traits = house.traits
        self._bus = house.bus
        self._inbox = house.inbox
        self._lanes = house.lanes
        self._shown = house.shown
        self.askers = Askers(house.shown, house.traits)

    async def answer(self, inbound: Inbound) -> Answer:
        """As `ask`, for a letter that is already written."""
        if begun := self._inbox.begin(inbound):
            try:
                return answer_of(await begun.finished, begun.thread, begun.session)
            except Fenced:  # it has to go through the inbox
                pass
        return await self.outcome(*await self._take(inbound))

    async def watch(
        self, inbound: Inbound, again: Again | None = None, beat: float = 0.0, admit: Admit | None = None
    ) -> AsyncGenerator[Sequence[Event]]:
        """The events of its turn, from LetterTaken, when it is committed, to AnswerGiven; see Agent.watch."""
        session = str(inbound.address)
        with self.askers.asking(session) as asker:
            followed = await self._follow(inbound, session, again, admit)
            receipt, feed = followed.receipt, followed.feed
            asker.mail = lambda: receipt.id
            try:
                yield (LetterTaken(receipt.thread, 0, receipt.id),)
                last: Sequence[Event] = ()
                while not last and (events := await feed.next_ones(beat)) is not None:
                    last = _until_over(events, receipt.id)
                    if not last:
                        yield events
                try:
                    answer, key = await followed.answer()
                except EverloopError:
                    if last:
                        yield last
                    raise
            finally:
                feed.close()
                followed.ending.cancel()
            yield (*last, AnswerGiven(receipt.thread, 0, answer))
            self.note_shown(key, receipt.id)  # whoever came back for more has shown it
            asker.has_it = True

    async def _follow(self, inbound: Inbound, session: str, again: Again | None, admit: Admit | None) -> "_Followed":
        """Take a letter, and listen before anything is told of its turn. Whoever calls this closes the feed."""
        if not self._may_wait(inbound, session) and (begun := self._inbox.begin(inbound, asked=False)):
            feed = self._bus.subscribe(begun.thread)  # it has not begun to run yet
            try:
                receipt = await begun.receipt()
            except BaseException:
                feed.close()
                raise
            if receipt is not None:
                return _Followed(receipt, feed, begun.finished, partial(self._begun, begun, session))
            feed.close()
        receipt, inbound = await self._take(inbound, again, admit)  # which wakes nobody before we listen
        feed = self._bus.subscribe(receipt.thread)
        ending = asyncio.ensure_future(self._answer(receipt, inbound, str(inbound.address)))
        return _Followed(receipt, feed, ending, lambda: ending)

    async def _take(
        self, inbound: Inbound, again: Again | None = None, admit: Admit | None = None
    ) -> tuple[Receipt, Inbound]:
        if admit is not None:
            await admit()
        try:
            receipt = await self._inbox.take(inbound, express=False)
        except MailRefused:
            if (other := as_before(inbound)) is None:
                raise
            receipt, inbound = await self._inbox.take(other, express=False), other
        while again is not None and not receipt.fresh:
            await self._shown.settle()  # what was given a moment ago is known as given
            other = await again()
            if other is None:
                break
            inbound = other
            receipt = await self._inbox.take(inbound, express=False)
        return receipt, inbound

    @asynccontextmanager
    async def answering(
        self, inbound: Inbound, again: Again | None = None, admit: Admit | None = None
    ) -> AsyncIterator[Answer]:
        """As `answer`, for someone who may have gone when it comes; see GatewayDesk.answering."""
        session = str(inbound.address)
        with self.askers.asking(session) as asker:
            answer, key = await self._asked(inbound, session, again, admit, asker)
            yield answer
            self.note_shown(key, asker.mail())
            asker.has_it = True

    async def _asked(
        self, inbound: Inbound, session: str, again: Again | None, admit: Admit | None, asker: Asker
    ) -> tuple[Answer, str]:
        """The answer to a letter, and its key in the outbox."""
        if not self._may_wait(inbound, session) and (begun := self._inbox.begin(inbound, asked=False)):
            asker.mail = lambda: begun.mail
            try:
                return await self._begun(begun, session)
            except Fenced:  # it has to go through the inbox
                pass
        receipt, inbound = await self._take(inbound, again, admit)
        asker.mail = lambda: receipt.id
        return await self._answer(receipt, inbound, str(inbound.address))

    async def outcome(
        self, receipt: Receipt, inbound: Inbound, ending: asyncio.Future[Finished] | None = None
    ) -> Answer:
        """Wake the thread of a posted letter and wait for the answer, or for the ending of its turn where that is
        known. Raises TurnFailed."""
        session = str(inbound.address)
        if ending is not None:
            answer, key = self._result(await ending, receipt.thread, session)
        else:
            answer, key = await self._answer(receipt, inbound, session)
        self.note_shown(key)
        return answer

    async def _answer(self, receipt: Receipt, inbound: Inbound, session: str) -> tuple[Answer, str]:
        """The answer to a letter and its key in the outbox. Raises TurnFailed, which says all that was to be shown."""
        if receipt.reply is not None:
            self._inbox.wake(receipt, inbound)
            return Answer(receipt.reply, session, ""), f"command:{receipt.id}"
        return self._result(await self._finished(receipt, inbound), receipt.thread, session)

    async def _begun(self, begun: Begun, session: str) -> tuple[Answer, str]:
        return self._result(await begun.finished, begun.thread, session)

    def _result(self, finished: Finished, thread: str, session: str) -> tuple[Answer, str]:
        key = reply_key(thread, finished.seq)
        polled = traits_of(session, self._traits).polled
        if finished.reason and not polled:
            self.note_shown(key)
        try:
            return answer_of(finished, thread, session), key
        except TurnFailed as failed:
            failed.key = key if polled else ""  # a bot fetches it, unless it is told here
            raise

    async def _finished(self, receipt: Receipt, inbound: Inbound) -> Finished:
        if not receipt.fresh and (seq := await self._store.ended(receipt.id)):
            return await self._lanes.recall(receipt.thread, seq)
        future = self._lanes.outcome(receipt.thread, receipt.id)
        self._inbox.wake(receipt, inbound)
        session = str(inbound.address)
        if self._may_wait(inbound, session) or (isinstance(inbound.letter, Said) and inbound.letter.unattended):
            await self._wait_for_no_question(future, receipt.thread, session)
        return await future

    def _may_wait(self, inbound: Inbound, session: str) -> bool:
        """Whether its turn may come to a question that its sender is asked elsewhere, and not where they wait."""
        asked = isinstance(inbound.letter, Said) and not inbound.letter.unattended
        traits = traits_of(session, self._traits)
        return asked and (traits.polled or traits.unasked)

    async def _wait_for_no_question(self, future: asyncio.Future[Finished], thread: str, session: str) -> None:
        """Who is not there to be asked does not wait for what someone else is asked. Raises TurnFailed."""
        while not future.done():
            await asyncio.wait({future}, timeout=PATIENCE)
            if future.done() or self._lanes.is_driving(thread):
                continue
            if any(each.decision.thread == thread for each in await self._house.approvals.waiting_calls(session)):
                future.cancel()
                raise TurnFailed(f"{WAITS.format(session)}; the message is kept and answered then", "waiting", "")

    def note_shown(self, key: str, mail: int = 0) -> None:
        """Whoever waited has the answer; saying so to the store is in no hurry. `mail` is the letter of theirs."""
        self._shown.note(key, mail)


def _until_over(events: Sequence[Event], mail: int) -> Sequence[Event]:
    """Those up to the end of the turn that took this letter, for what follows belongs to the next; none before that."""
    for count, event in enumerate(events, 1):
        if isinstance(event, TurnEnded) and mail in event.finished.mails:
            return [*events][:count]
    return ()


class _Followed:
    """A letter whose turn is followed: what happens in its thread until its `ending`, and the answer with its key."""

    __slots__ = ("answer", "ending", "feed", "receipt")

    def __init__(
        self,
        receipt: Receipt,
        feed: Feed,
        ending: asyncio.Future[Any],
        answer: Callable[[], Awaitable[tuple[Answer, str]]],
    ) -> None:
        self.receipt = receipt
        self.feed = feed
        self.ending = ending
        self.answer = answer
        ending.add_done_callback(lambda _: feed.end())  # wherever it is given
