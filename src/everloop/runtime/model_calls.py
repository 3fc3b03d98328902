"""Asking the model: what it is told beside the conversation, the intent before, the answer as it comes, its cost."""

import time
from collections.abc import Mapping
from functools import partial

from msgspec import Struct, structs

from ..core.decide import WARNING, Rules, used
from ..core.log import ModelCalled, ModelFailed, ModelSaid
from ..core.prompt import Prompt, Usage
from ..core.speakers import unheaded
from ..core.thread import Thread
from ..core.tool import ToolCall, ToolSpec
from ..errors import ProviderError
from ..ports import Archive, Bus
from ..ports.budgets import Bound, Charge
from ..ports.events import AnswerBegan, AnswerEnded, AnswerPiece, CallMeasured, TurnBegan, Warned
from ..ports.failpoint import reach
from ..ports.memory import FactTeller
from ..ports.provider import Delta, Reply
from ..readings.contents import tokens_of
from ..readings.found_tools import opened
from ..readings.heartbeat import is_heartbeat, may_become_silence
from ..readings.sections import changed_parts
from .book import Book
from .budgets import (
    AllowedCall,
    BudgetControl,
    Denied,
    Payer,
    Price,
    charge_for,
    charge_for_cut,
    charge_for_failure,
)
from .context import Gallery
from .interrupt import Interrupt
from .models import Briefed
from .recalling import recalled_for

CHARS = 8  # of a token, at most: what is longer is no answer
NEARLY_FULL = "this conversation fills most of what the model can read; earlier parts will soon become a summary"


class ModelCalls:
    def __init__(
        self, store: Archive, bus: Bus, gallery: Gallery, budgets: BudgetControl, facts: FactTeller | None = None
    ) -> None:
        """`facts` are those that are remembered."""
        self._facts = facts
        self._store = store
        self._bus = bus
        self._gallery = gallery
        self._budgets = budgets

    async def make(
        self, book: Book, briefed: Briefed, wrap: bool, interrupt: Interrupt, payer: Payer, bounds: tuple[Bound, ...]
    ) -> Denied | Charge | None:
        """What keeps it from being made, if anything of the `bounds` of who pays does; what it has used of them."""
        thread = book.thread
        facts = self._facts
        may_recall = thread.condensed or (facts is not None and not facts.lacks(thread.turn.principal))
        recalled = await self._recall(book, briefed) if may_recall else ""
        asking = _asking(thread, briefed, wrap, recalled)
        allowed: AllowedCall | None = None
        if bounds:
            plan = await self._reserve(book, briefed, asking, payer, bounds)
            if not isinstance(plan, AllowedCall):
                return plan
            allowed = plan
        elif not await book.write(asking.intent):
            return None
        reach("model.intended")
        draft, began = self._begin(book), time.monotonic()
        said, charge = await self._answered(book, briefed, asking, allowed, draft, interrupt)
        if isinstance(said, ModelSaid) and self._bus.hears(thread.id):
            self._tell_measures(book, briefed.rules, asking, said, time.monotonic() - began)
        return charge

    async def _reserve(
        self, book: Book, briefed: Briefed, asking: "_Asking", payer: Payer, bounds: tuple[Bound, ...]
    ) -> AllowedCall | Denied | None:
        """Commit the intent with what the call may use; None: a stop has come."""
        most, intent = _most(book.thread, briefed, asking), asking.intent
        plan = self._plan(book, payer, bounds, briefed, most)
        started = isinstance(plan, AllowedCall) and await book.write_if_room(plan.reservation, intent)
        if not started and (book.full or isinstance(plan, Denied)):  # perhaps there is room for less
            bounds = await book.patiently(partial(self._budgets.bounds_anew, payer))
            plan = self._plan(book, payer, bounds, briefed, most)
            started = isinstance(plan, AllowedCall) and await book.write_if_room(plan.reservation, intent)
        if isinstance(plan, Denied):
            await book.write()  # a turn that ends without a model call must know its letter's number first
            return plan
        if started:
            return plan
        return await self._budgets.denied(payer, book.full, plan) if book.full else None

    def _plan(
        self, book: Book, payer: Payer, bounds: tuple[Bound, ...], briefed: Briefed, most: Usage
    ) -> AllowedCall | Denied:
        model = briefed.model
        return self._budgets.plan(payer, bounds, book.thread.id, model.name, model.price, most)

    def _begin(self, book: Book) -> "_Draft":
        """Tell that an answer comes, and with the first of a turn that this has begun."""
        thread, head = book.thread, book.lease.head
        turn, mails = thread.turn, tuple(thread.turn.mails)
        if turn.steps == 0 and not turn.failures and not turn.empties:
            self._bus.publish(TurnBegan(thread.id, head, turn.seq, mails))
        book.cut = "", ""
        make = _HushedDraft if turn.source and is_heartbeat(turn.source) else _Draft
        return make(self._bus, AnswerBegan(thread.id, head, thread.seq, mails))

    async def _answered(
        self,
        book: Book,
        briefed: Briefed,
        asking: "_Asking",
        allowed: AllowedCall | None,
        draft: "_Draft",
        interrupt: Interrupt,
    ) -> tuple[ModelSaid | ModelFailed | None, Charge | None]:
        """What the model has said, which is kept, and what that used; None: it was interrupted."""
        thread, most = book.thread, CHARS * briefed.context.max_tokens
        said: ModelSaid | ModelFailed | None = None
        charge: Charge | None = None
        try:
            with interrupt:
                if thread.transcript.media:
                    await self._gallery.load_media(thread.transcript, thread.turn.principal)
                prompt = briefed.context.prompt(thread, asking.intent.tail, asking.intent.wrap)
                try:
                    prompt = _within(allowed, prompt) if allowed else prompt
                    said = _said(await briefed.provider.reply(prompt, draft.show), briefed)
                except ProviderError as error:
                    said = ModelFailed(error.kind, str(error), *draft.cut(most))
            reach("model.answered")
            if said is not None:
                book.keep(said)
            else:
                book.cut = draft.cut(most)
        finally:
            if allowed:  # also when the house closes in the middle of it
                charge = _charge(allowed, briefed.model.price, said, draft, most)
                book.charge(charge)
            kept = isinstance(said, ModelSaid) or (interrupt.fired and bool(book.cut[0]))
            self._bus.publish(AnswerEnded(thread.id, book.lease.head, draft.message, kept=kept))
        return said, charge

    def _tell_measures(self, book: Book, rules: Rules, asking: "_Asking", said: ModelSaid, seconds: float) -> None:
        thread, head = book.thread, book.lease.head
        full = used(thread, rules) / rules.limit
        changed = changed_parts(asking.before, asking.prefix) if asking.prefix != asking.before else ()
        measured = CallMeasured(
            thread=thread.id,
            seq=head,
            model=said.model,
            usage=said.usage,
            cost=said.cost,
            seconds=seconds,
            cached=said.usage.cache_read / max(1, said.usage.input),
            prefix_changed=tuple(changed),
            full=full,
        )
        self._bus.publish(measured)
        if asking.tokens / rules.limit < WARNING <= full:
            self._bus.publish(Warned(thread.id, head, "window", NEARLY_FULL))

    async def _remembers(self, book: Book) -> bool:
        facts = self._facts
        return facts is not None and await book.patiently(partial(facts.knows, book.thread.turn.principal))

    async def _recall(self, book: Book, briefed: Briefed) -> str:
        """Of what is remembered, and of what is a summary now, what is meant by what people have just said; the same
        for all steps until they say something else."""
        thread = book.thread
        if not thread.condensed and not await self._remembers(book):
            return ""
        said = thread.said_now()
        if book.recalled[0] != (thread.covered, said):
            find = partial(
                recalled_for,
                thread,
                said,
                principal=thread.turn.principal,
                shown=lambda: f"{briefed.context.system}\n{thread.transcript.text}",
                limit=briefed.rules.limit,
                teller=self._facts,
                store=self._store,
            )
            book.recalled = (thread.covered, said), await book.patiently(find)
        return book.recalled[1]


class _Asking(Struct, frozen=True):
    """A call that is about to be made: its intent, the fingerprint of what stands before the conversation, what that
    was at the call before, and the tokens of the conversation with what stands before it."""

    intent: ModelCalled
    prefix: str
    before: str
    tokens: int


def _asking(thread: Thread, briefed: Briefed, wrap: bool, recalled: str) -> _Asking:
    context, before = briefed.context, thread.prefix
    tail, prefix = context.tail(thread, wrap, recalled), context.prefix(wrap, thread.turn.brought)
    tail = unheaded(tail) if thread.is_group else tail
    intent = ModelCalled(briefed.model.name, tail, wrap, prefix if prefix != before else "")
    return _Asking(intent, prefix, before, used(thread, briefed.rules))


def _most(thread: Thread, briefed: Briefed, asking: _Asking) -> Usage:
    """What the call reads, as far as is known, and how long its answer may be."""
    brought, longest = thread.turn.brought, briefed.context.max_tokens
    reads = asking.tokens + len(asking.intent.tail) // 3
    if brought is not None:
        reads += tokens_of(brought.instructions, (offered.spec for offered in brought.tools))
        longest = min(brought.max_tokens or longest, longest)
    return Usage(reads, longest)


class _Draft:
    """Passes the pieces of an answer on as they come, and keeps them until it is whole."""

    __slots__ = ("_bus", "_shown", "_thread", "message")

    def __init__(self, bus: Bus, began: AnswerBegan) -> None:
        self._bus = bus
        self._thread = began.thread
        self.message = began.message  # the seq of the call that it answers
        self._shown: list[Delta] = []
        bus.publish(began)

    def show(self, delta: Delta) -> None:
        self._shown.append(delta)
        self._publish(len(self._shown), delta)

    def _publish(self, n: int, delta: Delta) -> None:
        piece = AnswerPiece(
            thread=self._thread,
            seq=self.message,
            n=n,
            text=delta.text,
            reasoning=delta.reasoning,
            progress=delta.progress,
            notice=delta.notice,
        )
        self._bus.publish(piece)

    def cut(self, most: int) -> tuple[str, str]:
        """What has been said, and thought, of each at most so many characters: an answer that never ends is longer."""
        said = "".join(delta.text for delta in self._shown)
        thought = "".join(delta.reasoning for delta in self._shown)
        return said[:most], thought[:most]


class _HushedDraft(_Draft):
    """Of the heartbeat: nothing is shown while it may turn out that there is nothing to tell."""

    __slots__ = ("_told",)

    def __init__(self, bus: Bus, began: AnswerBegan) -> None:
        super().__init__(bus, began)
        self._told = 0

    def show(self, delta: Delta) -> None:
        self._shown.append(delta)
        if self._told or not may_become_silence("".join(each.text for each in self._shown)):
            for n in range(self._told, len(self._shown)):
                self._publish(n + 1, self._shown[n])
            self._told = len(self._shown)


def _said(reply: Reply, briefed: Briefed) -> ModelSaid:
    tools = briefed.rules.tools
    calls = _marked(opened(reply.calls, tools), tools) if reply.calls else ()
    return ModelSaid(
        text=reply.text,
        calls=calls,
        usage=reply.usage,
        finish=reply.finish,
        model=reply.model,
        reasoning=reply.reasoning,
        opaque=reply.opaque,
        cost=reply.cost,
        own=briefed.own,
    )


def _within(allowed: AllowedCall, prompt: Prompt) -> Prompt:
    """Answered by no more than was reserved for it."""
    if allowed.cost.output >= prompt.max_tokens:
        return prompt
    return structs.replace(prompt, max_tokens=allowed.cost.output)


def _charge(
    allowed: AllowedCall, price: Price, said: ModelSaid | ModelFailed | None, draft: _Draft, most: int
) -> Charge:
    """`most` are the characters that count of an answer that broke off."""
    if isinstance(said, ModelSaid):
        return charge_for(allowed, price, said.usage, said.cost, said.text + said.reasoning)
    cut = "".join(draft.cut(most))
    if isinstance(said, ModelFailed):
        return charge_for_failure(allowed, price, said.error, cut)
    return charge_for_cut(allowed, price, cut)


def _marked(calls: tuple[ToolCall, ...], tools: Mapping[str, ToolSpec]) -> tuple[ToolCall, ...]:
    """With how each leads out: whoever reads the log later may not have the tool any more."""
    exits = [tools[call.name].exit if call.name in tools else "" for call in calls]
    if not any(exits):
        return calls
    return tuple(structs.replace(call, exit=exit or call.exit) for call, exit in zip(calls, exits, strict=True))
