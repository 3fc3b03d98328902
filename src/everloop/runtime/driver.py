"""Make it happen: absorb, decide, perform, until the thread rests. The only loop in the house.

All thinking is in core; this file knows in which order to write and to do. The order is the promise: what cannot be
repeated is committed before it is done (`book.write(start)`), what has happened is kept at once (`book.keep`).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, assert_never

from msgspec import structs

from ..core.briefing import Situation
from ..core.decide import (
    UNKNOWN,
    WARNING,
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
from ..core.errors import ModelMissing, ProviderError, ToolError
from ..core.events import (
    AnswerBegan,
    AnswerEnded,
    AnswerPiece,
    CallMeasured,
    OutcomeUnknown,
    PermissionAsked,
    SummaryBegan,
    SummaryWritten,
    ToolCalled,
    ToolReturned,
    TurnBegan,
    TurnEnded,
    Warned,
)
from ..core.failpoint import reach
from ..core.log import (
    Answered,
    CallReturned,
    CallStarted,
    GaveUp,
    ModelCalled,
    ModelFailed,
    ModelSaid,
    Stopped,
    TakenBack,
)
from ..core.mail import Mail
from ..core.people import CALLS_OF_A_GUEST, CALLS_OF_ALL_GUESTS, OWNER, Role
from ..core.ports import Briefer, Bus, People, PromptFiles, Store
from ..core.prompt import Delta, Reply
from ..core.rows import MANY
from ..core.scene import Scene, scene
from ..core.thread import Finished, Thread
from ..core.tool import CallContext, Effect
from ..readings.compaction import Plan
from ..readings.recall import ENTRIES, asked_for, room_for, told_again
from ..readings.sections import changed_parts
from .approvals import Approvals, asking, pending_in, question, wanted
from .book import Book
from .calls import Toolbox
from .context import Gallery
from .interrupt import Interrupt
from .people import KnownPeople
from .summaries import Summary, bounds, compacted, plan_for, summarise, summary_tokens
from .tainting import Tainting, key_of
from .voices import Briefed, Voice, Voices

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
    "guests": "I may not answer guests any more today. Please come back tomorrow.",
}
FOR_GUESTS = "I could not answer. Whoever runs this can look up why."  # a host's own words may name models and keys
DAY = 86_400
NEARLY_FULL = "this conversation fills most of what the model can read; earlier parts will soon become a summary"
TOO_LONG = (
    "This conversation is too long: it needs about {tokens:,} tokens, and {model} reads at most {limit:,} as far as is "
    "known. Say less at once, start anew with /new, or choose a model that reads more with /model. If this one does, "
    "say so in agents.defaults.context_window."
)


class Driver:
    """Drives threads, one call of `drive` each; what they share is here."""

    def __init__(
        self,
        store: Store,
        bus: Bus,
        voices: Voices,
        briefer: Briefer,
        toolbox: Toolbox,
        gallery: Gallery,
        steering: Steering = "steer",
        people: People | None = None,
        ended: Callable[[str, Finished], None] | None = None,
        files: PromptFiles | None = None,
    ) -> None:
        """`files` are those that stand in prompts, where tools can write them."""
        self._store = store
        self._bus = bus
        self._files = files
        self._tainting = Tainting(files, lambda person: toolbox.kit(person).place) if files else None
        self._ended = ended  # is told of the turns that end here, with their thread
        self._voices = voices
        self._briefer = briefer
        self._toolbox = toolbox
        self._gallery = gallery
        self._steering: Steering = steering
        self._people = people or KnownPeople()
        self._approvals = Approvals(store, self._people, files)
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
                        await self.ask_about_files(thread.id)
                    return
                continue
            role = await self._role(book)
            model = await self._briefed(book, role)
            step = decide(thread, _rules(model, thread, role))
            if isinstance(step, _ASKING) and _may_be_too_long(thread, model, step):
                step = await self._learn(book, model, role, interrupt)
            if not isinstance(step, CallModel) and book.is_unposted:
                await book.write()  # a turn that ends without a model call must know its letter's number first
                continue
            if leaving() and not isinstance(step, Rest):
                await book.give_back()
                return
            if isinstance(step, _ASKING) and thread.owes_reply and role < Role.USER:
                if book.is_unposted:
                    await book.write()  # as above: it may end here
                    continue
                step = step if await self._may_ask(book) else GiveUp("guests")
            match step:
                case Rest():  # until someone answers what was asked
                    if await book.rest():
                        return
                case CallModel(wrap=wrap):
                    await self._call_model(book, model, wrap, interrupt)
                case RunCalls(places=places):
                    await self._run_calls(book, places, role, interrupt)
                case Verify(place=place):
                    await self._verify(book, place, role, interrupt)
                case Settle(results=results):
                    await self._untaint(book, [each for each in results if isinstance(each, CallReturned)])
                    book.keep(*results)
                case Ask(places=places):
                    if await self._ask(book, places):
                        return
                case GiveUp(reason="context", failure=None):
                    self._give_up(book, GiveUp("context", ModelFailed("overflow", _too_long(thread, model))), role)
                case TakeBack(place=place):
                    await self._take_back(book, place)
                case GiveUp():
                    self._give_up(book, step, role)
                case Compact():
                    await self._make_room(book, model, role, interrupt)
                case _:
                    assert_never(step)

    async def _role(self, book: Book) -> Role:
        """That of whoever has asked, at the moment of execution."""
        person = book.thread.turn.requester
        return Role.OWNER if person == OWNER else await book.patiently(partial(self._people.role, person))

    async def _learn(self, book: Book, model: Briefed, role: Role, interrupt: Interrupt) -> Step:
        """What comes next, now that the model's host has said how much it can read."""
        await book.write()  # a turn that ends without a model call must know its letter's number first
        with interrupt:
            await model.voice.learn()
        return decide(book.thread, _rules(model, book.thread, role))

    async def _make_room(self, book: Book, model: Briefed, role: Role, interrupt: Interrupt) -> None:
        """Let a summary stand for what was said before; give up if even that is too long."""
        thread = book.thread
        if model.voice.unsure and thread.turn.failure is None and not thread.wants_room:  # the call itself will tell
            await self._call_model(book, model, thread.turn.steps >= model.rules.max_steps, interrupt)
            return
        rules, before = bounds(thread, model.rules), used(thread, model.rules)
        planned = plan_for(thread, rules)
        if planned is None and not thread.wants_room:
            self._give_up(book, GiveUp("context", ModelFailed("overflow", _too_long(thread, model))), role)
            return
        if thread.owes_reply:
            await book.write()  # a turn that ends without a model call must know its letter's number first
        written = await self._summarise(book, model, planned, rules, interrupt) if planned else Summary("")
        if written is None:
            return  # stopped
        reach("compaction.summarised")
        book.keep(compacted(thread, planned, written))
        await book.write()  # nobody is told before
        reach("compaction.written")
        if planned:
            after = used(thread, model.rules)
            self._bus.publish(SummaryWritten(thread.id, book.lease.head, before, after, written.model))

    async def _summarise(
        self, book: Book, model: Briefed, planned: Plan, rules: Rules, interrupt: Interrupt
    ) -> Summary | None:
        """None if it was stopped."""
        tokens = used(book.thread, model.rules)
        self._bus.publish(SummaryBegan(book.thread.id, book.lease.head, tokens))
        with interrupt:
            return await summarise(
                self._voices, model.voice, planned.covered, book.thread.summary, summary_tokens(rules)
            )
        return None

    async def _briefed(self, book: Book, role: Role) -> Briefed:
        """Who answers, told what was there to be told when the turn began: it stays so to its end."""
        thread, turn = book.thread, book.thread.turn
        before = book.briefed if book.turn == turn.seq else None
        if before is None:
            situation = Situation(turn.requester, role, turn.principal, thread.address, thread.id, turn.terms)
            briefing = await book.patiently(partial(self._briefer.brief, situation))
            scene.set(Scene(thread.address, thread.id, turn.seq))
        else:
            briefing = before.briefing
        try:
            voice = self._voices.find(thread.voice)
        except ModelMissing:
            voice = await self._look_for(thread.voice)
        if before is not None and before.voice.key == voice.key:
            return before
        book.turn, book.briefed = turn.seq, Briefed(voice, briefing)
        return book.briefed

    async def _may_ask(self, book: Book) -> bool:
        """Whether a guest may have a model asked once more today; counted before it is asked, whatever comes of it."""
        guest, day = book.thread.turn.requester, int(time.time() // DAY)
        return await book.patiently(lambda: self._store.count_call(guest, day, CALLS_OF_A_GUEST, CALLS_OF_ALL_GUESTS))

    async def _look_for(self, name: str) -> Voice:
        """A voice that was there when it was chosen. When it is gone, better another than none."""
        if time.monotonic() < self._gone.get(name, 0.0):
            return self._voices.find("")
        try:
            return await self._voices.look(name)
        except ModelMissing as error:
            self._gone[name] = time.monotonic() + GONE_SECONDS
            _log.warning("%s cannot be asked any more, %s answers: %s", name, self._voices.default, error)
            return self._voices.find("")

    async def _call_model(self, book: Book, model: Briefed, wrap: bool, interrupt: Interrupt) -> None:
        thread, context = book.thread, model.context
        recalled = await self._recall(book, model.rules) if thread.condensed else ""
        tail, prefix = context.tail(thread, wrap, recalled), context.prefix(wrap, thread.turn.brought)
        before, tokens = thread.prefix, used(thread, model.rules)
        if not await book.write(ModelCalled(model.voice.name, tail, wrap, prefix if prefix != before else "")):
            return
        reach("model.intended")
        called = thread.seq
        mails = tuple(thread.turn.mails)
        if thread.turn.steps == 0 and not thread.turn.failures and not thread.turn.empties:
            self._bus.publish(TurnBegan(thread.id, book.lease.head, thread.turn.seq, mails))
        self._bus.publish(AnswerBegan(thread.id, book.lease.head, called, mails))
        draft = _Draft(self._bus, thread.id, called)
        began = time.monotonic()
        said: ModelSaid | ModelFailed | None = None
        try:
            with interrupt:
                if thread.transcript.media:
                    await self._gallery.hang(thread.transcript, thread.turn.principal)
                try:
                    said = _said(await model.voice.provider.reply(context.prompt(thread, tail, wrap), draft.show))
                except ProviderError as error:
                    said = ModelFailed(error.kind, str(error))
            reach("model.answered")
            if said is not None:
                book.keep(said)
        finally:
            self._bus.publish(AnswerEnded(thread.id, book.lease.head, called, kept=isinstance(said, ModelSaid)))
        if isinstance(said, ModelSaid) and self._bus.hears(thread.id):
            full = used(thread, model.rules) / model.rules.limit
            measured = CallMeasured(
                thread=thread.id,
                seq=book.lease.head,
                model=said.model,
                usage=said.usage,
                cost=said.cost,
                seconds=time.monotonic() - began,
                cached=said.usage.cache_read / max(1, said.usage.input),
                prefix_changed=tuple(changed_parts(before, prefix)),
                full=full,
            )
            self._bus.publish(measured)
            if tokens / model.rules.limit < WARNING <= full:
                self._bus.publish(Warned(thread.id, book.lease.head, "window", NEARLY_FULL))

    async def _recall(self, book: Book, rules: Rules) -> str:
        """Of what is a summary now, what is meant by what people have just said; the same for all steps until they say
        something else."""
        thread = book.thread
        said = thread.said_now()
        if book.recalled[0] != (thread.covered, said):
            words = asked_for(said)
            found = await book.patiently(lambda: self._store.recall(thread.id, words, thread.covered, ENTRIES))
            shown = thread.transcript.text if found.entries else ""
            book.recalled = (thread.covered, said), told_again(found, shown, room_for(rules.limit))
        return book.recalled[1]

    async def _run_calls(self, book: Book, places: tuple[int, ...], role: Role, interrupt: Interrupt) -> None:
        """Reads run side by side. What is quick and local may run before the answer is committed: if that is lost,
        nothing has happened. Anything else is committed first, and what is no read is committed as started."""
        thread, toolbox = book.thread, self._toolbox
        specs = [toolbox.spec(thread, place) for place in places]
        if any(spec.effect is not Effect.READ for spec in specs):
            if self._tainting:
                await self._tainting.begin(book, places, specs)
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

    async def _ask(self, book: Book, places: tuple[int, ...]) -> bool:
        """The question and the rest that follows it are one commit; says whether the thread rests.

        What was allowed ahead is not asked, and where nobody is there nobody is."""
        thread = book.thread
        unanswered = False
        for place in places:
            toolbox = self._toolbox
            asked = asking(thread, place, toolbox.spec(thread, place), toolbox.ground(thread, place))
            book.keep(asked)
            call = wanted(thread, asked)
            grant = await book.patiently(partial(self._approvals.granted, call))
            if grant:
                book.keep(Answered(asked.answer, place, "allowed", f"grant:{grant}"))
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
                head = (await self._store.open(where, MANY)).row.head
                self._bus.publish(PermissionAsked(where, head, (approval,)))

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
        if step.failure and role < Role.USER:
            text = EXCUSES.get(step.reason, FOR_GUESTS)
        self._bus.publish(Warned(book.thread.id, book.lease.head, step.reason, text, error))
        book.keep(GaveUp(step.reason, f"{text} (error {error})", error))


def _rules(model: Briefed, thread: Thread, role: Role) -> Rules:
    """As they are for whoever has asked."""
    if role is Role.OWNER:
        return model.rules
    return structs.replace(model.rules, roles={thread.turn.requester: role})


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
    )


def _may_be_too_long(thread: Thread, model: Briefed, step: Step) -> bool:
    """So that the model's host is to be asked how much it can read, before anything else."""
    refused = thread.turn.failure is not None and thread.turn.failure.error == "overflow"
    return model.wonders(used(thread, model.rules) - model.rules.overhead, refused, isinstance(step, Compact))


def _too_long(thread: Thread, model: Briefed) -> str:
    if thread.turn.failure:  # the host itself has said so
        return EXCUSES["context"]
    return TOO_LONG.format(tokens=used(thread, model.rules), model=model.voice.name, limit=model.rules.limit)


class _Draft:
    """Passes the pieces of an answer on as they come."""

    __slots__ = ("_bus", "_called", "_shown", "_thread")

    def __init__(self, bus: Bus, thread: str, called: int) -> None:
        self._bus = bus
        self._thread = thread
        self._called = called
        self._shown = 0

    def show(self, delta: Delta) -> None:
        self._shown += 1
        self._bus.publish(
            AnswerPiece(
                *(self._thread, self._called, self._shown),
                text=delta.text,
                reasoning=delta.reasoning,
                progress=delta.progress,
                notice=delta.notice,
            )
        )


def _said(reply: Reply) -> ModelSaid:
    return ModelSaid(
        reply.text, reply.calls, reply.usage, reply.finish, reply.model, reply.reasoning, reply.opaque, reply.cost
    )


async def _together(runs: list[Coroutine[Any, Any, CallReturned]]) -> list[CallReturned]:
    if len(runs) == 1:
        return [await runs[0]]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run) for run in runs]
    return [task.result() for task in tasks]
