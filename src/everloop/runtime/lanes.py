"""One driver per thread at a time, threads side by side: who runs, who waits, who is told.

Lanes are woken by hints; what hints miss, polling finds. A lane that fails is tried again, and what it was doing
counts as a crash of that turn, so that it cannot fail for ever.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol

from ..core.mail import Inbound, Said, Stop
from ..core.thread import Thread
from ..core.turn import Finished
from ..errors import EverloopError, Fenced, StoreError, ThreadGone, TurnFailed
from ..ports import Activity, Bus, Clock
from ..ports.audit import THE_PROGRAM, acting
from ..ports.rows import Receipt
from .acting import Acting, ForEveryone
from .book import Book, ThreadStore
from .cap import Cap
from .clock import MACHINE
from .driver import Driver
from .interrupt import Interrupt
from .resting import Resting
from .seats import Seats
from .supervisor import Supervised, Supervisor
from .waiters import Waiters

_log = logging.getLogger("everloop.lanes")

POLL = 0.2
LOOK_EVERY = 10  # polls after which we look even if nothing seems to have changed
RETRY = 2.0

# Parts of a lease. It is renewed early, so that after half a lease without the store there is time to try again; and a
# turn whose lease was not renewed ends a while before others may take it over.
RENEW_AFTER, END_AFTER = 1 / 8, 5 / 6


def gone() -> TurnFailed:
    return TurnFailed("this conversation was deleted", "deleted", "")


class LaneStore(ThreadStore, Activity, Protocol):
    """What lanes ask of the store: threads, and how much goes on."""


class Lane:
    """One thread that is being driven. It is the listener of its book."""

    __slots__ = (
        "_driver",
        "_waiters",
        "again",
        "book",
        "interrupt",
        "is_lost",
        "needs_seat",
        "seated",
        "task",
        "thread",
    )

    def __init__(self, thread: str, driver: Driver, waiters: Waiters) -> None:
        self._driver = driver
        self._waiters = waiters
        self.thread = thread
        self.interrupt = Interrupt()
        self.book: Book | None = None
        self.again = False
        self.is_lost = False  # its lease, so that it is ending
        self.needs_seat = ""  # whose: it works at a task, and has to wait for its turn
        self.seated: str | None = None  # whose seat it has; "": it goes on without one
        self.task: asyncio.Task[None] | None = None

    def nudge(self) -> None:
        self.again = True
        if self.book is not None:
            self.book.expect_mail()

    def take(self, mail: int, head: int) -> None:
        raise AssertionError(f"thread {self.thread} has begun with no letter")

    def finish(self, turn: Finished) -> None:
        self._driver.announce(self.thread, turn)
        self._waiters.tell(turn)

    def is_waited_for(self) -> bool:
        return False

    def wake(self, thread: str) -> None:
        self._driver.wake(thread)


class Begun(Lane):
    """One that begins with a letter, past the inbox: `asked`, someone waits for its turn to be `finished`, else for it
    to be `taken`. Both futures raise Fenced when it has to go through the inbox."""

    __slots__ = ("finished", "inbound", "is_taken", "mail", "session", "taken")

    def __init__(
        self, thread: str, driver: Driver, waiters: Waiters, inbound: Inbound, session: str, asked: bool
    ) -> None:
        super().__init__(thread, driver, waiters)
        loop = asyncio.get_running_loop()
        self.inbound = inbound
        self.session = session
        self.is_taken = False
        self.mail = 0  # the number of the letter, once it is taken
        self.taken: asyncio.Future[Receipt] | None = None if asked else loop.create_future()
        self.finished: asyncio.Future[Finished] = loop.create_future()

    def is_waited_for(self) -> bool:
        return self.taken is None and not self.finished.done()

    async def receipt(self) -> Receipt | None:
        """When the letter is committed; None when it has to go through the inbox."""
        assert self.taken is not None
        try:
            return await self.taken
        except Fenced:
            return None

    def take(self, mail: int, head: int) -> None:
        self.is_taken, self.mail = True, mail
        self._waiters.add(self.thread, mail, self.finished)
        if self.taken is not None and not self.taken.done():
            self.taken.set_result(Receipt(mail, self.thread, fresh=True, begun=head))

    def fail(self, error: EverloopError) -> None:
        """It was not taken; when it was, this says nothing new."""
        if self.is_taken:
            return
        for future in (self.taken, self.finished):
            if future is not None and not future.done():
                future.set_exception(error)
                future.exception()  # only one of the two is waited for


class Lanes:
    """Use as `async with lanes:`; leaving it ends every turn at the next step, or after `grace` seconds."""

    def __init__(
        self,
        store: LaneStore,
        bus: Bus,
        driver: Driver,
        supervisor: Supervisor,
        *,
        cap: int = 500,
        lease_seconds: float = 30.0,
        grace: float = 5.0,
        acting: Acting | None = None,
        clock: Clock = MACHINE,
        seats: Seats | None = None,
    ) -> None:
        """`seats` are for those that work at tasks."""
        self._seats = seats or Seats()
        self.acting = acting or ForEveryone()
        self._clock = clock
        self._store = store
        self._driver = driver
        self._supervisor = supervisor
        self._cap = Cap(cap)
        self._lease_seconds = lease_seconds
        self._round = min(1.0, lease_seconds / 30)
        self._grace = grace
        self._lanes: dict[str, Lane] = {}  # their tasks end before the group does; a group would cost each a round
        self._resting = Resting()
        self._early: dict[str, asyncio.TimerHandle] = {}  # threads whose letters wait for more of the same
        self._waiters = Waiters()
        self._group = asyncio.TaskGroup()
        self._closing = False
        self._leaving = lambda: self._closing
        self._rounds: list[Supervised] = []
        bus.listen(self.wake, self._check_stop)

    async def __aenter__(self) -> "Lanes":
        self._loop = asyncio.get_running_loop()
        await self._group.__aenter__()
        rounds = {"mail": self._poll, "leases": self._renew, "expiry": self._end_the_expired}
        self._rounds = [self._supervisor.start(f"lanes {name}", work) for name, work in rounds.items()]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.stop(self._grace)
        finally:
            for each in self._rounds:
                await each.end()
            await self._group.__aexit__(None, None, None)

    async def stop(self, grace: float) -> None:
        """Let what runs end, for so long. What takes longer goes on at the next start, and whoever waits is told."""
        self._closing = True
        self._seats.close()
        for early in self._early.values():
            early.cancel()
        tasks = [lane.task for lane in self._lanes.values() if lane.task]
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=grace)
        finally:  # also when whoever waits loses patience: nothing may go on behind a closed store
            for task in tasks:
                task.cancel()
            self._waiters.close()
            await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self, thread: str) -> None:
        if early := self._early.pop(thread, None):
            early.cancel()
        if lane := self._lanes.get(thread):
            lane.nudge()
            if self._driver.interrupts:
                self._check_stop(thread)
        elif not self._closing:
            self._start(Lane(thread, self._driver, self._waiters))

    def wake_by(self, thread: str, moment: float) -> None:
        """There is mail that waits for more of the same: however much comes, the thread is looked at when it is due."""
        if thread in self._lanes:
            self.wake(thread)
        elif thread not in self._early and not self._closing:
            self._wake_at(thread, moment)

    def begin(self, inbound: Inbound, *, asked: bool) -> Begun | None:
        """Take a letter straight into its thread, if that rests and is known here; else None.

        Saves a commit and a look at the database. With `asked`, whoever awaits `finished` has the answer with that,
        and it is not put into the outbox.
        """
        session = str(inbound.address)
        thread = self._resting.find(session)
        free = thread and thread not in self._lanes  # a lane that was just woken has not begun yet
        if not free or not isinstance(inbound.letter, Said) or self._closing:
            return None
        begun = Begun(thread, self._driver, self._waiters, inbound, session, asked)
        self._start(begun)
        return begun

    def outcome(self, thread: str, mail: int) -> asyncio.Future[Finished]:
        """Resolves when the turn that takes this letter is over, wherever it is driven."""
        return self._waiters.add(thread, mail)

    def let_go(self, mails: Sequence[int], text: str) -> None:
        """Whoever waits here for the turns of these letters waits no longer, and is told this."""
        self._waiters.let_go(mails, text)

    def is_driving(self, thread: str) -> bool:
        return thread in self._lanes

    async def recall(self, thread: str, seq: int) -> Finished:
        """How the turn that ended at this entry ended, read from the log."""
        opened = await self._store.open(thread)
        first, entries = opened.first, opened.entries
        if seq < first:  # it was compacted since
            first, entries = 1, await self._store.read(thread)
        fold = Thread(thread, first - 1)
        for entry in entries:
            fold.add(entry)
            if fold.finished is not None and fold.finished.seq == seq:
                return fold.finished
        raise StoreError(f"thread {thread} has no end of a turn at {seq}")

    def _start(self, lane: Lane) -> None:
        self._lanes[lane.thread] = lane
        self._store.running = len(self._lanes)
        lane.task = lane.interrupt.task = self._loop.create_task(self._run(lane))

    async def _run(self, lane: Lane) -> None:
        acting.set(THE_PROGRAM)  # not whoever happens to have woken it
        thread = lane.thread
        failure: EverloopError | None = None
        try:
            while True:
                async with self._cap:
                    lane.again = False
                    await self._drive(lane)
                if lane.needs_seat and lane.seated is None:
                    lane.seated = lane.needs_seat if await self._seats.take(thread, lane.needs_seat) else ""
                elif not lane.again:
                    return
                if self._closing:
                    return
        except Fenced:
            _log.debug("thread %s is driven by someone else", thread)
        except ThreadGone:
            failure = gone()
            self._waiters.disappoint(thread, failure)
        except StoreError as error:
            failure = error
            _log.error("thread %s: %s", thread, error)
            self._waiters.disappoint(thread, error)
            self._try_again(thread)
        except Exception:  # the border of a lane: a fault in one thread must not end the others
            _log.exception("thread %s failed", thread)
            self._try_again(thread)
        finally:
            if isinstance(lane, Begun):
                lane.fail(failure or Fenced(f"thread {thread} did not take the letter"))
            if lane.seated:
                self._seats.give_back(lane.seated)
            del self._lanes[thread]
            self._store.running = len(self._lanes)

    def _try_again(self, thread: str) -> None:
        if not self._closing:
            asyncio.get_running_loop().call_later(RETRY, self.wake, thread)

    async def _drive(self, lane: Lane) -> None:
        fold = self._resting.take(lane.thread)
        if isinstance(lane, Begun) and not lane.is_taken:
            book = lane.book = Book.begin(self._store, fold, lane.inbound, lane.session, lane)
        else:
            book = lane.book = await Book.open(self._store, fold, lane)
            if not self.acting.covers(book.owner, book.session):  # whoever drives it finds the letter
                lane.book = None
                return
            if book.spawned_by and lane.seated is None and not book.is_told_to_stop:
                lane.needs_seat, lane.book = book.owner, None
                return
        try:
            await self._driver.drive(book, lane.interrupt, self._leaving)
        except asyncio.CancelledError:
            if self._closing:
                await asyncio.shield(book.give_back())
            raise
        finally:
            lane.book = None
        self._resting.keep(book.thread)
        if book.ripe:
            self._wake_at(lane.thread, book.ripe)

    def _wake_at(self, thread: str, moment: float) -> None:
        """A hint, as every wake; after a crash those who look for mail find it."""
        if early := self._early.pop(thread, None):
            early.cancel()
        self._early[thread] = self._loop.call_later(max(0.0, moment - self._clock.now()), self.wake, thread)

    def _check_stop(self, thread: str) -> None:
        if not self._closing:
            self._group.create_task(self._stop_if_told(thread))

    async def _stop_if_told(self, thread: str) -> None:
        """Break off the running step if the mail says so. The turn may have ended while we looked."""
        lane = self._lanes.get(thread)
        queues = lane is not None and lane.needs_seat and lane.seated is None
        if lane is None or (lane.book is None and not queues):
            self.wake(thread)
            return
        book, turn = lane.book, lane.book.thread.turn.seq if lane.book else 0
        try:
            mail = await self._store.mail(thread)
        except StoreError as error:  # it is looked for again
            _log.warning("looking for a stop: %s", error)
            return
        if book is None:
            if any(isinstance(each.letter, Stop) for each in mail):
                self._seats.let_pass(thread)
            return
        if lane.book is book and book.thread.turn.seq == turn and self._driver.is_stopped(book, mail):
            lane.nudge()
            lane.interrupt.fire()

    async def _poll(self) -> None:
        count, told = 0, ""
        while True:
            try:
                if await self._store.changed() or count % LOOK_EVERY == 0:
                    await self._look()
                told = ""
            except StoreError as error:
                if str(error) != told:  # once for an outage, not five times a second
                    _log.warning("polling: %s", error)
                told = str(error)
            count += 1
            await asyncio.sleep(POLL)

    async def _look(self) -> None:
        for thread in await self._store.waiting(self.acting.whose()):
            if thread not in self._early:
                self.wake(thread)
        for thread in await self._store.stopping(list(self._lanes)):
            await self._stop_if_told(thread)
        for mail, thread in self._waiters.open():
            if thread not in self._lanes and (seq := await self._store.ended(mail)):
                try:
                    self._waiters.tell(await self.recall(thread, seq))
                except ThreadGone:
                    self._waiters.disappoint(thread, gone())

    async def _renew(self) -> None:
        """What could not be renewed is tried again in the next round."""
        while True:
            await asyncio.sleep(self._round)
            held, began = self._held(RENEW_AFTER), time.monotonic()
            if not held:
                continue
            try:
                renewal = await self._store.renew([book.lease for book in held.values()])
            except StoreError as error:
                _log.warning("leases could not be renewed, which is tried again while they hold: %s", error)
                continue
            for thread in renewal.kept & held.keys():
                held[thread].held_from = max(began, held[thread].held_from)
            for thread in renewal.lost:
                if not held[thread].is_committing:  # then it may be given back in this moment, or is told so itself
                    self._lose(thread, held[thread])

    async def _end_the_expired(self) -> None:
        """Whatever the store does, and however long it takes: others may go on with these soon."""
        while True:
            await asyncio.sleep(self._round)
            for thread, book in self._held(END_AFTER).items():
                self._lose(thread, book)

    def _held(self, part: float) -> dict[str, Book]:
        """The threads whose leases were last prolonged so long ago, as a part of a lease."""
        since = time.monotonic() - self._lease_seconds * part
        lanes = {thread: lane.book for thread, lane in self._lanes.items() if lane.book and not lane.is_lost}
        return {thread: book for thread, book in lanes.items() if book.lease.epoch and book.held_from < since}

    def _lose(self, thread: str, book: Book) -> None:
        lane = self._lanes.get(thread)
        if lane is None or lane.task is None or lane.book is not book or not book.lease.epoch:
            return  # it was given back meanwhile
        _log.warning("the lease on thread %s is lost", thread)
        lane.is_lost = True
        lane.task.cancel()
