"""Make it happen: absorb, decide, perform, until the thread rests. The only loop in the house.

All thinking is in core; this file knows in which order to write and to do. The order is the promise: what cannot be
repeated is committed before it is done (`book.write(start)`), what has happened is kept at once (`book.keep`).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol, assert_never

from msgspec import structs

from ..core.briefing import Situation
from ..core.decide import (
    UNKNOWN,
    Ask,
    CallModel,
    Compact,
    GiveUp,
    Rest,
    Rules,
    RunCalls,
    Settle,
    Steering,
    Step,
    TakeBack,
    Verify,
    admit,
    decide,
)
from ..core.log import (
    CallReturned,
    CallStarted,
    GaveUp,
    Stopped,
    TakenBack,
)
from ..core.mail import Mail
from ..core.people import OWNER, Role
from ..core.thread import Thread
from ..core.tool import Effect
from ..core.turn import Finished
from ..errors import ModelMissing, OwnKeyRefused, ToolError
from ..ports import Archive, Briefer, Budgets, Bus, Clock, People, PromptFiles
from ..ports.events import OutcomeUnknown, ToolCalled, ToolReturned, TurnEnded, Warned
from ..ports.failpoint import reach
from ..ports.log_context import LogContext, log_context
from ..ports.memory import FactTeller
from ..ports.tasks import Tasks
from ..ports.tools import CallContext
from ..readings.amendments import applied
from .approvals import Approvals, ApprovalStore
from .approvers import Approvers
from .auditing import started
from .book import Book
from .budgets import BudgetControl
from .calls import Toolbox
from .children import Children
from .clock import MACHINE
from .compactor import Compactor
from .context import Gallery
from .excuses import EXCUSES, FOR_GUESTS
from .interrupt import Interrupt
from .length import is_told_by_the_call, may_be_too_long, overflow
from .model_calls import ModelCalls
from .models import Briefed, Model, Models
from .own_keys import NO_OWN_KEYS, OwnKeys
from .paid_calls import PaidCalls
from .people import KnownPeople
from .permission import PermissionQuestions
from .tainting import Tainting, key_of

_log = logging.getLogger("everloop.driver")

GONE_SECONDS = 60.0
_ASKING = (CallModel, Compact)  # steps that ask a model
NOT_RUN = ("denied", "failed", "repeated")  # as what comes of a call that was refused


class DriverStore(ApprovalStore, Archive, Budgets, Tasks, Protocol):
    """What a turn asks of the store beside its book."""


class Driver:
    """Drives threads, one call of `drive` each; what they share is here."""

    def __init__(
        self,
        store: DriverStore,
        bus: Bus,
        models: Models,
        briefer: Briefer,
        toolbox: Toolbox,
        gallery: Gallery,
        steering: Steering = "steer",
        people: People | None = None,
        ended: Sequence[Callable[[str, Finished], None]] = (),
        ended_by_itself: Sequence[Callable[[str, Finished], None]] = (),
        files: PromptFiles | None = None,
        clock: Clock = MACHINE,
        approvers: Approvers | None = None,
        budgets: BudgetControl | None = None,
        own_keys: OwnKeys = NO_OWN_KEYS,
        facts: FactTeller | None = None,
        children: Children | None = None,
    ) -> None:
        """`files` are those that stand in prompts, where tools can write them, and `approvers` who else is asked.
        `ended` are told of all turns that end here, `ended_by_itself` of those that no person has begun."""
        budgets = budgets or BudgetControl(store)
        self._bus = bus
        self._files = files
        self._tainting = Tainting(files, lambda person: toolbox.kit(person).place) if files else None
        self._children = children or Children(toolbox, bus, store)
        self._ended = ended
        self._ended_by_itself = ended_by_itself
        self._models = models
        self._briefer = briefer
        self._toolbox = toolbox
        self._compactor = Compactor(models, bus, budgets, own_keys)
        self._steering: Steering = steering
        self._people = people or KnownPeople()
        self._clock = clock
        approvals = Approvals(store, self._people, files, clock)
        self.questions = PermissionQuestions(store, bus, toolbox, approvals, clock, approvers)
        calls = ModelCalls(store, bus, gallery, budgets, facts)
        self._paid_calls = PaidCalls(calls, budgets, models, self._people, bus, self.questions, own_keys)
        self._gone: dict[str, float] = {}  # models that cannot be had, and until when they are not looked for

    @property
    def interrupts(self) -> bool:
        """Whether a message breaks off the step that is running."""
        return self._steering == "interrupt"

    def is_stopped(self, book: Book, mail: Sequence[Mail]) -> bool:
        """Whether one of these letters ends the running turn."""
        read = [(letter, applied(book.thread, letter)) for letter in mail]
        steering = self._steering
        admitted = (admit(book.thread, each, steering if each is raw else "steer") for raw, each in read)
        return any(isinstance(entry, Stopped) for each in admitted for entry in each.entries)

    def announce(self, thread: str, turn: Finished) -> None:
        """Say that a turn is over, now that this is committed."""
        reach("turn.ended")
        for tell in (*self._ended, *self._ended_by_itself) if turn.source else self._ended:
            tell(thread, turn)
        if turn.unknown:
            self._bus.publish(OutcomeUnknown(thread, turn.seq, turn.turn, turn.mails, turn.unknown))
        self._bus.publish(TurnEnded(thread, turn.seq, turn))

    def wake(self, thread: str) -> None:
        """Say that a thread has mail, now that this is committed."""
        self._bus.wake(thread)

    async def drive(self, book: Book, interrupt: Interrupt, leaving: Callable[[], bool]) -> None:
        """Go on with a thread until it rests, or until `leaving` says that the house closes."""
        if book.in_the_middle:
            await book.take_over()
        thread = book.thread
        while True:
            await book.absorb(self._steering, self._people, self._clock.now())
            if thread.rests:
                worked = book.is_at_work
                if await book.rest():
                    reach("thread.rested")
                    if book.spawned_by and worked:
                        await self._children.rest(book)
                    if self._files and self._files.unasked:
                        await self.questions.ask_about_files(thread.id)
                    return
                continue
            role = Role.OWNER if thread.turn.requester == OWNER else await self._role(book)
            briefed = await self._briefed(book, role)
            step = decide(thread, _rules(briefed, thread, role))
            if isinstance(step, _ASKING) and may_be_too_long(thread, briefed, step):
                step = await self._measure_window(book, briefed, role, interrupt)
            if not isinstance(step, CallModel) and book.is_unposted:
                await book.write()  # a turn that ends without a model call must know its letter's number first
                continue
            if leaving() and not isinstance(step, Rest):
                await book.give_back()
                return
            if isinstance(step, _ASKING) and thread.owes_reply and role < Role.GUEST:
                if book.is_unposted:
                    await book.write()  # as above: it may end here
                    continue
                step = GiveUp("blocked")
            match step:
                case Rest():  # until someone answers what was asked
                    if await book.rest():
                        return
                case CallModel(wrap=wrap):
                    if await self._paid_calls.make(book, briefed, wrap, role, interrupt):
                        return
                case RunCalls(places=places):
                    if changed := self._toolbox.changed(thread, places, briefed.rules.tools):
                        await self._settle(book, changed)
                    else:
                        await self._run_calls(book, places, briefed, role, interrupt)
                case Verify(place=place):
                    await self._verify(book, place, briefed, role, interrupt)
                case Settle(results=results):
                    await self._settle(book, results)
                case Ask(places=places):
                    if await self.questions.ask(book, places, role):
                        return
                case GiveUp(reason="context", failure=None):
                    self._give_up(book, overflow(thread, briefed), role)
                case TakeBack(place=place):
                    await self._take_back(book, place)
                case GiveUp(reason="budget", failure=failure) if failure:
                    self._paid_calls.refuse(book, failure.text)
                case GiveUp():
                    self._give_up(book, step, role)
                case Compact():
                    if is_told_by_the_call(thread, briefed):
                        wrap = thread.turn.steps >= briefed.rules.max_steps
                        if await self._paid_calls.make(book, briefed, wrap, role, interrupt):
                            return
                        continue
                    payer = await self._paid_calls.payer(book, role)
                    if not await self._compactor.make_room(book, briefed, interrupt, payer):
                        self._give_up(book, overflow(thread, briefed), role)
                case _:
                    assert_never(step)

    async def _role(self, book: Book) -> Role:
        """That of whoever has asked, unless it is the owner, at the moment of execution."""
        return await book.patiently(partial(self._people.role, book.thread.turn.requester))

    async def _measure_window(self, book: Book, briefed: Briefed, role: Role, interrupt: Interrupt) -> Step:
        """What comes next, now that the model's host has said how much it can read."""
        await book.write()  # a turn that ends without a model call must know its letter's number first
        with interrupt:
            await briefed.model.measure_window()
        briefed.fit_again()
        return decide(book.thread, _rules(briefed, book.thread, role))

    async def _briefed(self, book: Book, role: Role) -> Briefed:
        """Who answers, told what was there to be told when the turn began: it stays so to its end."""
        thread, turn = book.thread, book.thread.turn
        before = book.briefed if book.turn == turn.seq else None
        if before is None:
            self._toolbox.kit(turn.principal)  # what is offered from here on can be run, also when it has gone by then
            situation = Situation(
                person=turn.requester,
                role=role,
                principal=turn.principal,
                address=thread.address,
                thread=thread.id,
                terms=turn.terms,
                wish=thread.persona,
                server=thread.server,
                covered=thread.covered,
            )
            briefing = await book.patiently(partial(self._briefer.brief, situation))
            log_context.set(LogContext(thread.address, thread.id, turn.seq))
        else:
            briefing = before.briefing
        name = thread.model_name or briefing.model
        try:
            model = self._models.find(name)
        except ModelMissing:
            model = await self._look_for(name)
        if before is not None and before.model.key == model.key:
            before.fit_again()
            return before
        book.turn, book.briefed = turn.seq, Briefed(model, briefing)
        return book.briefed

    async def _look_for(self, name: str) -> Model:
        """A model that was there when it was chosen. When it is gone, better another than none."""
        if time.monotonic() < self._gone.get(name, 0.0):
            return self._models.find("")
        try:
            return await self._models.look(name)
        except ModelMissing as error:
            self._gone[name] = time.monotonic() + GONE_SECONDS
            _log.warning("%s cannot be asked any more, %s answers: %s", name, self._models.default, error)
            return self._models.find("")

    async def _run_calls(
        self, book: Book, places: tuple[int, ...], briefed: Briefed, role: Role, interrupt: Interrupt
    ) -> None:
        """Reads run side by side. What is quick and local may run before the answer is committed: if that is lost,
        nothing has happened. Anything else is committed first, and what is no read is committed as started."""
        thread, toolbox = book.thread, self._toolbox
        specs = [toolbox.spec(thread, place) for place in places]
        if specs[0].spawns:
            context = _context(book, places[0], role)
            await self._children.hand_on(book, places[0], context, briefed.rules.tools, role)
            return
        if any(spec.effect is not Effect.READ for spec in specs):
            if self._tainting:
                await self._tainting.begin(book, places, specs)
            book.note_starts(*started(thread, places, specs, role))
            if not await book.write(*(CallStarted(thread.answer, place) for place in places)):
                return
            reach("call.started")
        elif not all(spec.local for spec in specs):
            await book.write()
            reach("answer.committed")
        for place in places:
            call = thread.open_calls[place]
            self._bus.publish(ToolCalled(thread.id, book.lease.head, call.name, call.args, place))
            if book.spawned_by:
                self._children.tell_progress(book, call.name)
        results: list[CallReturned] = []
        began = time.time()
        with interrupt:
            calls = [(place, _context(book, place, role)) for place in places]
            results = await _together([toolbox.run(thread, place, context) for place, context in calls])
        reach("call.done")
        await self._untaint(book, results, began)
        for result in results:
            name = thread.open_calls[result.place].name
            book.keep(result)
            self._bus.publish(ToolReturned(thread.id, book.lease.head, name, result.outcome, result.text))

    async def _verify(self, book: Book, place: int, briefed: Briefed, role: Role, interrupt: Interrupt) -> None:
        thread = book.thread
        if not book.lease.epoch:
            await book.write()  # first the lease: whoever had it may still have been at work when we looked
        result: CallReturned | None = CallReturned(thread.answer, place, UNKNOWN, "unknown")
        try:
            with interrupt:
                result = await self._toolbox.verify(thread, place, _context(book, place, role))
        except ToolError as error:
            _log.info("cannot tell whether %s happened: %s", thread.open_calls[place].name, error)
        if interrupt.fired:
            return
        if result is not None:
            await self._untaint(book, [result])
            book.keep(result)
        else:
            await self._run_calls(book, (place,), briefed, role, interrupt)

    async def _settle(self, book: Book, results: Sequence[CallReturned | TakenBack]) -> None:
        """What was not run is told: nobody has seen it begin, and a script may wonder what became of it."""
        returned = [each for each in results if isinstance(each, CallReturned)]
        await self._untaint(book, returned)
        for each in returned:
            if each.outcome in NOT_RUN:
                name = book.thread.open_calls[each.place].name
                self._bus.publish(ToolReturned(book.thread.id, book.lease.head, name, each.outcome, each.text))
        book.keep(*results)

    async def _untaint(self, book: Book, results: Sequence[CallReturned], began: float = 0.0) -> None:
        if self._tainting:
            await self._tainting.end(book, results, began)

    async def _take_back(self, book: Book, place: int) -> None:
        """One file at a time, each kept before the next: after a crash this one is as it was, or is done already."""
        thread = book.thread
        assert thread.undoing is not None
        key = f"{thread.id}:{thread.undoing.seq}:{place}"
        if self._tainting:
            await self._tainting.begin_undo(book, key)
        await book.write()
        left = await self._toolbox.take_back(thread.undoing.entry.changes[place], key, thread.undoing.entry.whose)
        reach("call.done")
        if self._tainting:
            await self._tainting.end_one(book, key)
        book.keep(TakenBack(place, left))

    def _give_up(self, book: Book, step: GiveUp, role: Role) -> None:
        error = f"{book.thread.id[:6]}-{book.thread.seq}"
        text = step.failure.text if step.failure else EXCUSES[step.reason]
        _log.warning("turn given up (%s, error %s): %s", step.reason, error, text, extra={"error_id": error})
        if step.failure and role < Role.USER and step.failure.error != OwnKeyRefused.kind:
            text = EXCUSES.get(step.reason, FOR_GUESTS)
        self._bus.publish(Warned(book.thread.id, book.lease.head, step.reason, text, error))
        cut = book.thread.turn.cut
        said = (cut.cut, cut.reasoning) if cut else ("", "")
        book.keep(GaveUp(step.reason, f"{text} (error {error})", error, *said))


def _rules(briefed: Briefed, thread: Thread, role: Role) -> Rules:
    """As they are for whoever has asked."""
    if role is Role.OWNER:
        return briefed.rules
    return structs.replace(briefed.rules, roles={thread.turn.requester: role})


def _context(book: Book, place: int, role: Role) -> CallContext:
    thread = book.thread
    asked = thread.asked.get(place)
    return CallContext(
        key=key_of(thread, place),
        thread=thread.id,
        session=thread.address,
        user=thread.turn.requester,
        outside=thread.outside,
        results=thread.results,
        ground=asked.grounds[-1].identity if asked and asked.grounds else "",
        role=role,
        whose=thread.turn.principal,
        turn=thread.turn.seq,
        owner=book.owner,
        unasked=_is_unasked(thread),
        attended=not thread.turn.unattended,
    )


def _is_unasked(thread: Thread) -> bool:
    """Whether no person has led to this turn: also that of a task which was handed on in such a one."""
    turn = thread.turn
    task = turn.terms.task if turn.terms else None
    return turn.unattended and bool(turn.source or (task and task.run))


async def _together(runs: list[Coroutine[Any, Any, CallReturned]]) -> list[CallReturned]:
    if len(runs) == 1:
        return [await runs[0]]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run) for run in runs]
    return [task.result() for task in tasks]
