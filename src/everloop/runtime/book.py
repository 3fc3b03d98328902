"""The thread in hand: what has been folded but not yet committed, and the lease to commit it with.

Entries are kept until the next commit carries them: an answer waits for the start of its first call, results wait
for the next model call. That is why a turn needs so few commits. Nothing is performed or told before its commit.
"""

import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from msgspec import structs

from ..core.decide import Steering, admit, heard
from ..core.log import MANY, Answered, Compacted, Entry, ModelSaid, Resumed, Stopped, UserSaid
from ..core.mail import Decision, Inbound, Mail, Notice, Outbound, Said, Stop
from ..core.overrun import Account
from ..core.people import Role
from ..core.thread import Thread
from ..core.turn import Finished
from ..core.wording import GO_ON, cut_short, with_unknown
from ..errors import Fenced, StoreBroken, StoreError
from ..ports import Archive, Log, Mailroom, People
from ..ports.audit import AuditLine
from ..ports.budgets import Charge, Reservation
from ..ports.rows import Commit, Committed, Lease, Posting, Spent, Taint, ThreadState, Timer, Untaint
from ..ports.tasks import background_number
from ..readings.amendments import Amended, amend, applied
from ..readings.gathering import NOTHING, Gathering, gather
from ..readings.heartbeat import hushed
from .approvals import settled
from .auditing import decided
from .models import Briefed
from .patience import AWAY, commit_again, patiently
from .people import roles_of
from .reports import Ending, report_of

_log = logging.getLogger("everloop.book")

NEVER = -1  # in place of the entry at which its turn ended: a letter of which no turn comes
Result = TypeVar("Result")


class ThreadStore(Log, Mailroom, Archive, Protocol):
    """Logs, and the inboxes beside them."""


class Listener(Protocol):
    """Who is told what a commit has brought about."""

    def take(self, mail: int, head: int) -> None:
        """The letter that the book began with has been taken in, has this number, and the log is as long as this."""
        ...

    def finish(self, turn: Finished) -> None: ...

    def is_waited_for(self) -> bool:
        """Whether someone waits for the answer to the letter that it began with, and needs no other copy."""
        ...

    def wake(self, thread: str) -> None:
        """Another thread has mail, which was posted with the commit."""
        ...


class Book:
    """Use `await Book.open(store, thread, listener)`; it brings the thread up to date first."""

    __slots__ = (
        "_endings",
        "_finished",
        "_letter",
        "_listener",
        "_mail",
        "_more",
        "_next",
        "_seen",
        "_store",
        "_tainted",
        "_tried",
        "briefed",
        "cut",
        "full",
        "held_from",
        "in_the_middle",
        "is_committing",
        "lease",
        "owner",
        "recalled",
        "ripe",
        "session",
        "spawned_by",
        "thread",
        "turn",
    )

    def __init__(
        self, store: ThreadStore, thread: Thread, lease: Lease, mail: Sequence[Mail], listener: Listener
    ) -> None:
        self._store = store
        self._listener = listener
        self.lease = lease
        self.held_from = 0.0  # by the monotonic clock: before the lease was last prolonged, as far as is known
        self.is_committing = False
        self._mail = mail  # what may not enter the log yet
        self._seen = max(letter.id for letter in mail) if mail else 0
        self._more = False  # mail may have come that is not in `_mail`
        self._next = Commit()
        self._finished: tuple[Finished, ...] = ()
        self._endings: tuple[Ending, ...] = ()  # of these, what is to be told
        self._tainted: set[str] = set()  # the calls whose taints have begun here
        self.owner = self.session = ""  # whose it is, and where, as it was when it was opened
        self.spawned_by = ""  # the call that it works for
        self.in_the_middle = False  # of a turn, when it was opened
        self._tried = False  # to take the lease
        self.ripe = 0.0  # when letters are due for which it is too early; 0: none are
        self._letter = 0  # the one that came in with the first commit
        self.thread = thread
        self.turn = -1  # for which `briefed` was chosen
        self.recalled: tuple[object, str] = None, ""  # for what, and what was found
        self.briefed: Briefed | None = None
        self.cut = "", ""  # what was said, and thought, of the answer that was last broken off
        self.full: Account | None = None  # there was no room in it for what was last to be reserved

    @classmethod
    async def open(cls, store: ThreadStore, thread: Thread, listener: Listener) -> "Book":
        opened = await store.open(thread.id, thread.seq)
        if opened.first > thread.seq + 1:  # someone compacted it meanwhile: begin again from there
            thread = Thread(thread.id, opened.first - 1)
        thread.extend(opened.entries)
        book = cls(store, thread, Lease(thread.id, 0, opened.row.head), opened.mail, listener)
        book.owner, book.session, book.spawned_by = opened.row.owner, opened.row.session, opened.row.spawned_by
        book.in_the_middle = opened.row.state == "running" and thread.owes_reply
        if book.in_the_middle and opened.row.holder:
            book.keep(Resumed(opened.row.holder))
        return book

    @classmethod
    def begin(cls, store: ThreadStore, thread: Thread, inbound: Inbound, session: str, listener: Listener) -> "Book":
        """Let a letter straight into a resting thread: the first commit posts it, takes it and starts the turn. It
        raises Fenced when the letter has to go through the inbox."""
        assert isinstance(inbound.letter, Said)
        book = cls(store, thread, Lease(thread.id, 0, thread.seq), (), listener)
        book._next.letter = inbound
        book.owner, book.session = inbound.owner, session
        book.keep(heard(inbound.letter))
        return book

    @property
    def is_unposted(self) -> bool:
        """Whether the letter that it began with has no number yet."""
        return self._next.letter is not None

    @property
    def is_at_work(self) -> bool:
        """Whether it has written something since it was opened, or is about to."""
        return bool(self.lease.epoch) or self._holds_something

    @property
    def is_told_to_stop(self) -> bool:
        """Whether a stop has come that has not entered the log yet."""
        return any(isinstance(letter.letter, Stop) for letter in self._mail)

    def expect_mail(self) -> None:
        self._more = True

    async def absorb(self, steering: Steering, people: People, now: float = math.inf) -> None:
        """Let mail into the log, as far as it may enter now."""
        self.ripe = 0.0
        if self._more:
            self._more = False
            held = set(self._next.absorbed)
            mail = await self.patiently(lambda: self._store.mail(self.thread.id))
            self._mail = [letter for letter in mail if letter.id not in held]
            self._seen = max([self._seen, *(letter.id for letter in self._mail)])
        if self._mail:
            deciders = await self.patiently(partial(deciders_in, self._mail, people))
            amended = amend(self._mail)
            self._withdraw(amended)
            self._admit([*amended.mail], steering, deciders, gather(amended.mail, now))
            taken = amended.with_them.keys() & set(self._next.absorbed)
            self._take_in(*(change for letter in sorted(taken) for change in amended.with_them[letter]))

    def _withdraw(self, amended: Amended) -> None:
        """What was taken back before a turn has taken it was never said."""
        gone = set(amended.gone)
        self._take_in(*gone)
        self._next.ended = (*self._next.ended, *((id, NEVER) for id in amended.gone))
        amended.mail[:] = [each for each in amended.mail if each.id not in gone]

    def _take_in(self, *letters: int) -> None:
        if letters:
            self._next.absorbed = (*self._next.absorbed, *letters)
            self._mail = [each for each in self._mail if each.id not in letters]

    def _admit(
        self, left: list[Mail], steering: Steering, roles: Mapping[str, Role], gathering: Gathering = NOTHING
    ) -> None:
        waiting: list[Mail] = []
        while left:
            letter, *left = left
            if letter.id in gathering.early and not self.thread.owes_reply:
                self.ripe = gathering.ripe
                continue  # it waits in the inbox
            read = applied(self.thread, letter)
            admitted = admit(self.thread, read, steering if read is letter else "steer", roles)
            if isinstance(letter.letter, Decision):
                self.note(*decided(self.thread, letter.letter, admitted.entries))
            self.keep(*map(self._with_cut, admitted.entries))
            if admitted.taken:
                self._take_in(letter.id)
                if isinstance(letter.letter, Notice) and not any(map(_is_said, admitted.entries)):
                    self._next.ended = (*self._next.ended, (letter.id, NEVER))  # it has answered a call, or nobody
            else:
                waiting.append(letter)
            if not self.thread.owes_reply:  # a turn has ended: whoever has waited longest is next
                left, waiting = waiting + left, []

    def _with_cut(self, entry: Entry) -> Entry:
        """A stop with what had been said by then."""
        if not isinstance(entry, Stopped) or not self.thread.turn.calling:
            return entry
        return structs.replace(entry, text=self.cut[0], reasoning=self.cut[1])

    def keep(self, *entries: Entry) -> None:
        """Fold entries and hold them for the next commit, with what they entail."""
        thread, commit = self.thread, self._next
        for entry in entries:
            before, payer, began = thread.finished, thread.wants_room or thread.turn.payer, thread.turn.began
            thread.add(entry)
            commit.entries = (*commit.entries, entry)
            if isinstance(entry, ModelSaid) or (isinstance(entry, Compacted) and entry.model):
                commit.usage = (
                    *commit.usage,
                    Spent(thread.seq, entry.model, entry.usage, entry.cost, payer, entry.own),
                )
            elif isinstance(entry, Answered):
                self.send(*settled(thread, entry))
            if thread.finished is not None and thread.finished is not before:
                self._finish(thread.finished, began)

    def send(self, *outbound: Outbound, timers: Sequence[Timer] = ()) -> None:
        """Queue something for delivery, and timers, with the next commit."""
        self._next.outbox = (*self._next.outbox, *outbound)
        self._next.timers = (*self._next.timers, *timers)

    def post(self, *posts: Posting) -> None:
        """Put letters into other threads' inboxes with the next commit, which then are woken."""
        self._next.posts = (*self._next.posts, *posts)

    def taint(self, *taints: Taint) -> None:
        """Say with the next commit, and if nothing keeps its starts from starting, that these begin."""
        self._next.taints = (*self._next.taints, *taints)
        self._tainted |= {taint.key for taint in taints if not taint.happened}
        self._tainted -= {taint.key for taint in taints if taint.happened}

    def note(self, *lines: AuditLine) -> None:
        """Write lines of the audit with the next commit."""
        self._next.audit = (*self._next.audit, *lines)

    def note_starts(self, *lines: AuditLine) -> None:
        """As `note`, if nothing keeps the starts of that commit from starting."""
        self._next.audit_starts = (*self._next.audit_starts, *lines)

    def untaint(self, over: Untaint) -> None:
        """Say with the next commit that one is over."""
        self._tainted.discard(over.key)
        self._next.untaints = (*self._next.untaints, over)

    def is_tainted(self, key: str) -> bool:
        """Whether the taint of a call may have begun, here or before a restart."""
        return key in self._tainted or self.in_the_middle

    def charge(self, charge: Charge) -> None:
        """Say with the next commit what a call has used."""
        self._next.charges = (*self._next.charges, charge)

    async def write_if_room(self, reservation: Reservation, *starts: Entry) -> bool:
        """As `write`, if this can be reserved; else `full` says where there is no room for it."""
        self._next.reserve = reservation
        return await self.write(*starts)

    async def write(self, *starts: Entry) -> bool:
        """Commit what is held, then `starts` unless a stop has come. Says whether the starts may be performed."""
        self._next.starts = starts
        committed = await self._commit("running")
        if committed.started:
            self.thread.extend(starts)
        return committed.started or not starts

    async def rest(self) -> bool:
        """Commit what is held and give the lease back. False if mail has come: then there is more to do."""
        if not self.lease.epoch and not self._holds_something:
            return True
        self._next.release, self._next.seen = True, self._seen
        committed = await self._commit("waiting" if self.thread.owes_reply else "resting")
        if committed.released:
            self.lease.epoch = 0
        return committed.released

    async def take_over(self) -> None:
        """Take the lease of an open turn before anything is done: whoever had it may still have been at work when we
        looked, and a fault that comes at once has to be counted. What a call that was lost may have used is charged."""
        self.charge(Charge(self.thread.id))
        await self._commit("running")

    async def give_back(self) -> None:
        """Put the work down in the middle of a turn, for whoever comes next. The house closes, so nobody waits here."""
        if self.thread.wants_room and not self.thread.owes_reply:
            self._next = Commit(charges=self._next.charges)  # the letter that asks for a summary waits in the inbox
        if self._holds_something:
            await self._commit("running", patient=False)
        if self._tried:
            await self._store.give_back(self.lease)

    def patiently(self, ask: Callable[[], Awaitable[Result]]) -> Awaitable[Result]:
        """What the store says, also when it is away for a while: as long as the lease holds nothing of a turn is lost.
        Without one nothing is at stake yet, and whoever waits is told at once."""
        return patiently(ask) if self.lease.epoch else ask()

    @property
    def _holds_something(self) -> bool:
        return bool(self._next.entries or self._next.absorbed or self._next.posts or self._next.charges)

    def _finish(self, finished: Finished, began: int) -> None:
        """`began` is where its first message stands."""
        finished = hushed(finished) if finished.source else finished
        self._finished = (*self._finished, finished)
        self._next.ended = (*self._next.ended, *[(mail, finished.seq) for mail in finished.mails])
        waited_for = finished.mails == (self._letter,) and self._listener.is_waited_for()
        text = finished.text
        if finished.cut:
            text = cut_short(finished.cut, text or GO_ON)
        if finished.unknown:  # whatever the model made of it, and also of a turn that was stopped
            text = with_unknown(text or "", finished.unknown)
        if self.spawned_by and (
            report := report_of(self.thread, finished, text=text, session=self.session, owner=self.owner)
        ):
            self.post(report)
        elif text is not None and finished.address:
            thread = self.thread
            asked = thread.transcript.messages[began:] if began >= 0 else ()
            by, outside = thread.turn.requester, thread.outside
            self._endings = (*self._endings, Ending(thread.id, finished, text, asked, waited_for, by, outside))

    async def _commit(self, state: ThreadState, patient: bool = True) -> Committed:
        (commit, self._next), (endings, self._endings) = (self._next, Commit()), (self._endings, ())
        commit.state = state
        self._tried = self.is_committing = True
        began = time.monotonic()
        try:
            while True:
                told = self._told(commit, endings) if endings else commit
                try:
                    committed = await self._try_to_commit(told, patient)
                    break
                except Fenced:
                    if not endings or not await self._has_moved():
                        raise
        finally:
            self.is_committing = False
        self.held_from = max(self.held_from, began)
        self.lease.epoch, self.lease.head, self.full = committed.epoch, committed.head, committed.full
        self._more = self._more or committed.newest > self._seen
        if commit.letter is not None:
            self._letter = committed.mail
            self.thread.turn.mails.append(committed.mail)
            self._seen = max(self._seen, committed.mail)
            self._listener.take(committed.mail, committed.head)
        finished, self._finished = self._finished, ()
        for turn in finished:
            self._listener.finish(turn)
        if told.posts:
            await self._wake_others(told.posts)
        return committed

    async def _try_to_commit(self, commit: Commit, patient: bool) -> Committed:
        try:
            return await self._store.commit(self.lease, commit)
        except AWAY as error:
            if not self.lease.epoch or not patient or isinstance(error, StoreBroken):
                raise
            return await commit_again(self._store, self.lease, commit)

    def _told(self, commit: Commit, endings: "Sequence[Ending]") -> Commit:
        """With what is told of turns that end: where they were asked, or of one in the background in the conversation
        that is in front of it. Which of the two it is, somebody may just be changing: see Commit.works_for."""
        if self.spawned_by and (number := background_number(self.spawned_by)):
            posts = [each.telling(number, self.session, self.owner) for each in endings]
            return structs.replace(commit, posts=(*commit.posts, *filter(None, posts)), works_for=self.spawned_by)
        replies = [each.reply for each in endings if not each.waited_for]
        return structs.replace(commit, outbox=(*commit.outbox, *replies), works_for=self.spawned_by)

    async def front(self) -> str:
        """The thread in front of this one, where it is in the background of its chat; else its own."""
        moved = (self.spawned_by and background_number(self.spawned_by)) or await self._has_moved()
        row = await self._store.session(self.session) if moved else None
        return row.id if row else self.thread.id

    async def _has_moved(self) -> bool:
        """Whether somebody has sent this conversation to the background meanwhile, or taken it back from there."""
        before, row = self.spawned_by, (await self._store.open(self.thread.id, MANY)).row
        self.spawned_by = row.spawned_by
        return before != row.spawned_by

    async def _wake_others(self, posts: Sequence[Posting]) -> None:
        """A hint, as every wake: without it the mail is found by those who look for mail."""
        for post in posts:
            try:
                thread = post.thread or await self._thread_of(post.inbound)
            except StoreError as error:
                where = post.inbound.address
                _log.warning("the thread of %s is not woken, and looks for its mail later: %s", where, error)
                continue
            if thread:
                self._listener.wake(thread)

    async def _thread_of(self, inbound: Inbound) -> str:
        if isinstance(inbound.letter, Decision):
            return inbound.letter.thread
        row = await self._store.session(str(inbound.address))
        return row.id if row and row.owner == inbound.owner else ""


def _is_said(entry: Entry) -> bool:
    return isinstance(entry, UserSaid)


async def deciders_in(mail: Sequence[Mail], people: People) -> Mapping[str, Role]:
    """What those may do who have decided on something in these letters."""
    return await roles_of(people, (each.letter.by for each in mail if isinstance(each.letter, Decision)))
