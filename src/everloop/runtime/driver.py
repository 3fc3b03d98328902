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
from ..core.budget import Bound, Charge
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
    used,
)
from ..core.errors import ModelMissing, OwnKeyRefused, ToolError
from ..core.events import (
    OutcomeUnknown,
    ToolCalled,
    ToolReturned,
    TurnEnded,
    Warned,
)
from ..core.failpoint import reach
from ..core.log import (
    CallReturned,
    CallStarted,
    GaveUp,
    ModelFailed,
    Stopped,
    TakenBack,
)
from ..core.log_context import LogContext, log_context
from ..core.mail import Mail
from ..core.people import OWNER, Role, is_chat
from ..core.ports import Archive, Briefer, Budgets, Bus, Clock, People, PromptFiles
from ..core.thread import Thread
from ..core.tool import CallContext, Effect
from ..core.turn import Finished
from .approvals import Approvals, ApprovalStore
from .approvers import Approvers
from .auditing import started
from .book import Book
from .budgets import BudgetControl, Denied, Payer
from .calls import Toolbox
from .clock import MACHINE
from .compactor import Compactor
from .context import Gallery
from .interrupt import Interrupt
from .model_calls import ModelCalls
from .models import Briefed, Model, Models
from .own_keys import NO_OWN_KEYS, OwnKeys
from .people import KnownPeople
from .permission import PermissionQuestions
from .tainting import Tainting, key_of

_log = logging.getLogger("everloop.driver")

GONE_SECONDS = 60.0
_ASKING = (CallModel, Compact)  # steps that ask a model

EXCUSES = {
    "resumed": "I was interrupted three times in a row while working on this, so I stopped. "
    "Nothing of it runs any more; say it again if you want me to go on.",
    "empty": "The model gave no answer, twice in a row. Please try again, or put it in other words.",
    "futile": "I have done the same things over and over without getting any further, so I stopped. What I found is in "
    "this conversation; tell me what to try instead.",
    "context": "This conversation is too long for the model. Start a new one with /new; this one stays readable.",
    "blocked": "This was not done: whoever asked for it may not speak with me any more.",
}
FOR_GUESTS = "I could not answer. Whoever runs this can look up why."  # a host's own words may name models and keys
TOO_LONG = (
    "This conversation is too long: it needs about {tokens:,} tokens, and {model} reads at most {limit:,} as far as is "
    "known. Say less at once, start anew with /new, or choose a model that reads more with /model. If this one does, "
    "say so in agents.defaults.context_window."
)


class DriverStore(ApprovalStore, Archive, Budgets, Protocol):
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
        ended: Callable[[str, Finished], None] | None = None,
        files: PromptFiles | None = None,
        clock: Clock = MACHINE,
        approvers: Approvers | None = None,
        budgets: BudgetControl | None = None,
        own_keys: OwnKeys = NO_OWN_KEYS,
    ) -> None:
        """`files` are those that stand in prompts, where tools can write them, and `approvers` who else is asked."""
        self._own_keys = own_keys
        self._budgets = budgets or BudgetControl(store)
        self._store = store
        self._bus = bus
        self._files = files
        self._tainting = Tainting(files, lambda person: toolbox.kit(person).place) if files else None
        self._ended = ended  # is told of the turns that end here, with their thread
        self._models = models
        self._briefer = briefer
        self._toolbox = toolbox
        self._model_calls = ModelCalls(store, bus, gallery, self._budgets)
        self._compactor = Compactor(models, bus, self._budgets, own_keys)
        self._steering: Steering = steering
        self._people = people or KnownPeople()
        self._clock = clock
        approvals = Approvals(store, self._people, files, clock)
        self.questions = PermissionQuestions(store, bus, toolbox, approvals, clock, approvers)
        self._gone: dict[str, float] = {}  # models that cannot be had, and until when they are not looked for

    @property
    def interrupts(self) -> bool:
        """Whether a message breaks off the step that is running."""
        return self._steering == "interrupt"

    def is_stopped(self, book: Book, mail: Sequence[Mail]) -> bool:
        """Whether one of these letters ends the running turn."""
        admitted = (admit(book.thread, letter, self._steering) for letter in mail)
        return any(isinstance(entry, Stopped) for each in admitted for entry in each.entries)

    def announce(self, thread: str, turn: Finished) -> None:
        """Say that a turn is over, now that this is committed."""
        reach("turn.ended")
        if self._ended is not None:
            self._ended(thread, turn)
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
            await book.absorb(self._steering, self._people)
            if thread.rests:
                if await book.rest():
                    reach("thread.rested")
                    if self._files and self._files.unasked:
                        await self.questions.ask_about_files(thread.id)
                    return
                continue
            role = await self._role(book)
            briefed = await self._briefed(book, role)
            step = decide(thread, _rules(briefed, thread, role))
            if isinstance(step, _ASKING) and _may_be_too_long(thread, briefed, step):
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
                    await self._call_model(book, briefed, wrap, role, interrupt)
                case RunCalls(places=places):
                    if changed := self._toolbox.changed(thread, places, briefed.rules.tools):
                        await self._settle(book, changed)
                    else:
                        await self._run_calls(book, places, role, interrupt)
                case Verify(place=place):
                    await self._verify(book, place, role, interrupt)
                case Settle(results=results):
                    await self._settle(book, results)
                case Ask(places=places):
                    if await self.questions.ask(book, places, role):
                        return
                case GiveUp(reason="context", failure=None):
                    self._give_up(book, _overflow(thread, briefed), role)
                case TakeBack(place=place):
                    await self._take_back(book, place)
                case GiveUp():
                    self._give_up(book, step, role)
                case Compact():
                    if _is_told_by_the_call(thread, briefed):
                        wrap = thread.turn.steps >= briefed.rules.max_steps
                        await self._call_model(book, briefed, wrap, role, interrupt)
                    elif not await self._compactor.make_room(book, briefed, interrupt, await self._payer(book, role)):
                        self._give_up(book, _overflow(thread, briefed), role)
                case _:
                    assert_never(step)

    async def _role(self, book: Book) -> Role:
        """That of whoever has asked, at the moment of execution."""
        person = book.thread.turn.requester
        return Role.OWNER if person == OWNER else await book.patiently(partial(self._people.role, person))

    async def _measure_window(self, book: Book, briefed: Briefed, role: Role, interrupt: Interrupt) -> Step:
        """What comes next, now that the model's host has said how much it can read."""
        await book.write()  # a turn that ends without a model call must know its letter's number first
        with interrupt:
            await briefed.model.measure_window()
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
            return before
        book.turn, book.briefed = turn.seq, Briefed(model, briefing)
        return book.briefed

    async def _call_model(self, book: Book, briefed: Briefed, wrap: bool, role: Role, interrupt: Interrupt) -> None:
        """Ask the model, as far as whoever has asked may spend it; else the turn ends here, and says why. Who is
        answered with a key of their own spends nothing of what is shared."""
        payer, budgets = await self._payer(book, role), self._budgets
        if self._own_keys.has(payer.id):
            briefed = await self._asked_by(payer, briefed)
        bounds: tuple[Bound, ...] | None = () if briefed.own else budgets.bounds_seen(payer)
        if bounds is None:
            bounds = await book.patiently(partial(budgets.bounds, payer))
        thrifty = await self._cheaper(book, briefed, payer) if bounds and budgets.rules.cheaper_at else None
        if thrifty and budgets.is_tight(bounds):
            briefed, thrifty = thrifty, None
            bounds = () if briefed.own else bounds
        result = await self._model_calls.make(book, briefed, wrap, interrupt, payer, bounds)
        if isinstance(result, Denied) and thrifty:
            bounds = () if thrifty.own else bounds
            result = await self._model_calls.make(book, thrifty, wrap, interrupt, payer, bounds)
        if isinstance(result, Charge):
            budgets.note(result)
        if isinstance(result, Denied):
            self._bus.publish(Warned(book.thread.id, book.lease.head, "budget", result.text))
            book.keep(GaveUp("budget", result.text))
        elif result and not payer.in_group and budgets.is_most_gone(payer, bounds, result):
            text = await book.patiently(partial(budgets.warning, payer, bounds, result))
            if text:
                self._bus.publish(Warned(book.thread.id, book.lease.head, "spent", text))

    async def _payer(self, book: Book, role: Role) -> Payer:
        """Who has asked, for an answer or for a summary; but in a conversation that belongs to somebody else, which is
        one that a bot of theirs brings, it is they: their bot names whom it likes."""
        thread, turn = book.thread, book.thread.turn
        who = thread.wants_room or turn.requester
        if book.owner not in ("", OWNER, who) and not is_chat(book.owner):
            who = book.owner
        if who != turn.requester:
            role = Role.OWNER if who == OWNER else await book.patiently(partial(self._people.role, who))
        run = f"{thread.id}:{turn.seq}" if turn.source else ""
        return Payer(who, role, thread.id, run, in_group=thread.is_group)

    async def _asked_by(self, payer: Payer, briefed: Briefed) -> Briefed:
        """The same, asked as whoever pays for it has it asked."""
        model = briefed.model
        return Briefed(model, briefed.briefing, await self._own_keys.asked(payer.id, model.key, model.provider))

    async def _cheaper(self, book: Book, briefed: Briefed, payer: Payer) -> Briefed | None:
        """Told the same: the model for when little is left, where there is one that can read all of it."""
        rules = self._budgets.rules
        try:
            model = await (self._models.look(rules.cheaper_model) if rules.cheaper_model else self._models.small())
        except ModelMissing as error:
            _log.warning("the cheaper model cannot be asked, %s answers: %s", briefed.model.name, error)
            return None
        if model is None or model.key == briefed.model.key:
            return None
        cheaper = await self._asked_by(payer, Briefed(model, briefed.briefing))
        return cheaper if used(book.thread, cheaper.rules) <= cheaper.rules.limit else None

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

    async def _run_calls(self, book: Book, places: tuple[int, ...], role: Role, interrupt: Interrupt) -> None:
        """Reads run side by side. What is quick and local may run before the answer is committed: if that is lost,
        nothing has happened. Anything else is committed first, and what is no read is committed as started."""
        thread, toolbox = book.thread, self._toolbox
        specs = [toolbox.spec(thread, place) for place in places]
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

    async def _verify(self, book: Book, place: int, role: Role, interrupt: Interrupt) -> None:
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
            await self._run_calls(book, (place,), role, interrupt)

    async def _settle(self, book: Book, results: Sequence[CallReturned | TakenBack]) -> None:
        """What was not allowed is told: nobody has seen it begin, and a script may wonder what became of it."""
        returned = [each for each in results if isinstance(each, CallReturned)]
        await self._untaint(book, returned)
        for each in returned:
            if each.outcome == "denied":
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
    )


def _may_be_too_long(thread: Thread, briefed: Briefed, step: Step) -> bool:
    """So that the model's host is to be asked how much it can read, before anything else."""
    refused = thread.turn.failure is not None and thread.turn.failure.error == "overflow"
    rules = briefed.rules
    return briefed.should_measure(used(thread, rules) - rules.overhead, refused, isinstance(step, Compact))


def _is_told_by_the_call(thread: Thread, briefed: Briefed) -> bool:
    """Whether to ask rather than to make room: nobody knows how much the model can read, and its host will say so."""
    return briefed.model.unsure and thread.turn.failure is None and not thread.wants_room


def _overflow(thread: Thread, briefed: Briefed) -> GiveUp:
    return GiveUp("context", ModelFailed("overflow", _too_long(thread, briefed)))


def _too_long(thread: Thread, briefed: Briefed) -> str:
    if thread.turn.failure:  # the host itself has said so
        return EXCUSES["context"]
    return TOO_LONG.format(tokens=used(thread, briefed.rules), model=briefed.model.name, limit=briefed.rules.limit)


async def _together(runs: list[Coroutine[Any, Any, CallReturned]]) -> list[CallReturned]:
    if len(runs) == 1:
        return [await runs[0]]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run) for run in runs]
    return [task.result() for task in tasks]
