"""Asking the model: what it is told beside the conversation, the intent before, the answer as it comes, its cost."""

import time
from collections.abc import Mapping

from msgspec import structs

from ..core.budget import Bound, Charge
from ..core.decide import WARNING, Rules, used
from ..core.errors import ProviderError
from ..core.events import AnswerBegan, AnswerEnded, AnswerPiece, CallMeasured, TurnBegan, Warned
from ..core.failpoint import reach
from ..core.log import ModelCalled, ModelFailed, ModelSaid
from ..core.ports import Archive, Bus
from ..core.prompt import Delta, Prompt, Usage
from ..core.speakers import unheaded
from ..core.thread import Thread
from ..core.tool import ToolCall, ToolSpec
from ..readings.contents import tokens_of
from ..readings.recall import ENTRIES, asked_for, room_for, told_again
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

CHARS = 8  # of a token, at most: what is longer is no answer
NEARLY_FULL = "this conversation fills most of what the model can read; earlier parts will soon become a summary"


class ModelCalls:
    def __init__(self, store: Archive, bus: Bus, gallery: Gallery, budgets: BudgetControl) -> None:
        self._store = store
        self._bus = bus
        self._gallery = gallery
        self._budgets = budgets

    async def make(
        self, book: Book, briefed: Briefed, wrap: bool, interrupt: Interrupt, payer: Payer, bounds: tuple[Bound, ...]
    ) -> Denied | Charge | None:
        """What keeps it from being made, if anything of the `bounds` of who pays does; what it has used of them."""
        thread, context, rules = book.thread, briefed.context, briefed.rules
        recalled = await self._recall(book, rules) if thread.condensed else ""
        tail, prefix = context.tail(thread, wrap, recalled), context.prefix(wrap, thread.turn.brought)
        tail = unheaded(tail) if thread.is_group else tail
        before, tokens = thread.prefix, used(thread, rules)
        intent = ModelCalled(briefed.model.name, tail, wrap, prefix if prefix != before else "")
        allowed: AllowedCall | None = None
        charge: Charge | None = None
        if bounds:
            prompt = context.prompt(thread, tail, wrap)
            plan = self._plan(payer, bounds, briefed, thread, prompt, tokens)
            started = isinstance(plan, AllowedCall) and await book.write_if_room(plan.reservation, intent)
            if not started and (book.full or isinstance(plan, Denied)):  # perhaps there is room for less
                plan = self._plan(payer, await self._bounds_anew(book, payer), briefed, thread, prompt, tokens)
                started = isinstance(plan, AllowedCall) and await book.write_if_room(plan.reservation, intent)
            if isinstance(plan, Denied):
                await book.write()  # a turn that ends without a model call must know its letter's number first
                return plan
            if not started:
                return await self._budgets.denied(payer, book.full, plan) if book.full else None
            allowed = plan
        elif not await book.write(intent):
            return None
        reach("model.intended")
        called = thread.seq
        mails = tuple(thread.turn.mails)
        if thread.turn.steps == 0 and not thread.turn.failures and not thread.turn.empties:
            self._bus.publish(TurnBegan(thread.id, book.lease.head, thread.turn.seq, mails))
        draft = _Draft(self._bus, AnswerBegan(thread.id, book.lease.head, called, mails))
        began, book.cut = time.monotonic(), ("", "")
        said: ModelSaid | ModelFailed | None = None
        try:
            with interrupt:
                if thread.transcript.media:
                    await self._gallery.load_media(thread.transcript, thread.turn.principal)
                try:
                    said = await self._ask(briefed, _within(allowed, context.prompt(thread, tail, wrap)), draft)
                except ProviderError as error:
                    said = ModelFailed(error.kind, str(error), *draft.cut(CHARS * context.max_tokens))
            reach("model.answered")
            if said is not None:
                book.keep(said)
            else:
                book.cut = draft.cut(CHARS * context.max_tokens)
        finally:
            if allowed:  # also when the house closes in the middle of it
                charge = _charge(allowed, briefed.model.price, said, draft.cut(CHARS * context.max_tokens))
                book.charge(charge)
            kept = isinstance(said, ModelSaid) or (interrupt.fired and bool(book.cut[0]))
            self._bus.publish(AnswerEnded(thread.id, book.lease.head, called, kept=kept))
        if isinstance(said, ModelSaid) and self._bus.hears(thread.id):
            full = used(thread, rules) / rules.limit
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
            if tokens / rules.limit < WARNING <= full:
                self._bus.publish(Warned(thread.id, book.lease.head, "window", NEARLY_FULL))
        return charge

    async def _bounds_anew(self, book: Book, payer: Payer) -> tuple[Bound, ...]:
        return await book.patiently(lambda: self._budgets.bounds_anew(payer))

    def _plan(
        self, payer: Payer, bounds: tuple[Bound, ...], briefed: Briefed, thread: Thread, prompt: Prompt, tokens: int
    ) -> AllowedCall | Denied:
        """`tokens` are those of the conversation, with what stands before it."""
        model, brought = briefed.model, thread.turn.brought
        reads = tokens + len(prompt.tail) // 3
        if brought is not None:
            reads += tokens_of(brought.instructions, (offered.spec for offered in brought.tools))
        most = Usage(reads, prompt.max_tokens)
        return self._budgets.plan(payer, bounds, thread.id, model.name, model.price, most)

    async def _ask(self, briefed: Briefed, prompt: Prompt, draft: "_Draft") -> ModelSaid:
        reply = await briefed.provider.reply(prompt, draft.show)
        calls = _marked(reply.calls, briefed.rules.tools) if reply.calls else ()
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


class _Draft:
    """Passes the pieces of an answer on as they come, and keeps them until it is whole."""

    __slots__ = ("_began", "_bus", "_shown")

    def __init__(self, bus: Bus, began: AnswerBegan) -> None:
        self._bus = bus
        self._began = began
        self._shown: list[Delta] = []
        bus.publish(began)

    def show(self, delta: Delta) -> None:
        self._shown.append(delta)
        piece = AnswerPiece(
            thread=self._began.thread,
            seq=self._began.message,
            n=len(self._shown),
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


def _within(allowed: AllowedCall | None, prompt: Prompt) -> Prompt:
    """Answered by no more than was reserved for it."""
    if allowed is None or allowed.cost.output >= prompt.max_tokens:
        return prompt
    return structs.replace(prompt, max_tokens=allowed.cost.output)


def _charge(allowed: AllowedCall, price: Price, said: ModelSaid | ModelFailed | None, cut: tuple[str, str]) -> Charge:
    if isinstance(said, ModelSaid):
        return charge_for(allowed, price, said.usage, said.cost, said.text + said.reasoning)
    if isinstance(said, ModelFailed):
        return charge_for_failure(allowed, price, said.error, "".join(cut))
    return charge_for_cut(allowed, price, "".join(cut))


def _marked(calls: tuple[ToolCall, ...], tools: Mapping[str, ToolSpec]) -> tuple[ToolCall, ...]:
    """With how each leads out: whoever reads the log later may not have the tool any more."""
    exits = [tools[call.name].exit if call.name in tools else "" for call in calls]
    if not any(exits):
        return calls
    return tuple(structs.replace(call, exit=exit or call.exit) for call, exit in zip(calls, exits, strict=True))
