"""Asking a model at somebody's expense: who pays, for which model, and what is said when that is too much for them."""

import logging
from functools import partial

from ..core.decide import used
from ..core.log import GaveUp
from ..core.people import OWNER, Role
from ..errors import ModelMissing
from ..ports import Bus, People
from ..ports.budgets import Bound, Charge
from ..ports.events import Warned
from .book import Book
from .budgets import BudgetControl, Denied, Payer
from .interrupt import Interrupt
from .model_calls import ModelCalls
from .models import Briefed, Models
from .own_keys import NO_OWN_KEYS, OwnKeys
from .permission import PermissionQuestions

_log = logging.getLogger("everloop.budgets")


class PaidCalls:
    def __init__(
        self,
        calls: ModelCalls,
        budgets: BudgetControl,
        models: Models,
        people: People,
        bus: Bus,
        questions: PermissionQuestions,
        own_keys: OwnKeys = NO_OWN_KEYS,
    ) -> None:
        self._own_keys = own_keys
        self._questions = questions
        self._calls = calls
        self._budgets = budgets
        self._models = models
        self._people = people
        self._bus = bus

    async def make(self, book: Book, briefed: Briefed, wrap: bool, role: Role, interrupt: Interrupt) -> bool:
        """Ask the model, as far as who pays may spend it; else somebody is asked whether it may go beyond that, or the
        turn ends here, and says why. `role` is that of who has asked. Says whether the thread rests until an answer.
        Who is answered with a key of their own spends nothing of what is shared."""
        payer, budgets = await self.payer(book, role), self._budgets
        if self._own_keys.has(payer.id):
            briefed = await self._asked_by(payer, briefed)
        bounds: tuple[Bound, ...] | None = () if briefed.own else budgets.bounds_seen(payer)
        if bounds is None:
            bounds = await book.patiently(partial(budgets.bounds, payer))
        make = self._make_thriftily if bounds and budgets.rules.cheaper_at else self._calls.make
        result = await make(book, briefed, wrap, interrupt, payer, bounds)
        if isinstance(result, Denied):
            nobody = book.thread.turn.unattended or role < Role.USER  # such as a guest whom the payer's bot brings
            overrun = None if nobody else budgets.overrun(payer, result)
            if overrun:
                return await self._questions.ask_beyond(book, overrun, role)
            self.refuse(book, result.text)
        elif result:
            await self._warn(book, payer, result)
        return False

    async def payer(self, book: Book, role: Role) -> Payer:
        """Who pays for a call that is made now: who has asked for an answer or a summary, unless the letter names
        another. `role` is that of who has asked for the turn."""
        thread, turn = book.thread, book.thread.turn
        who = thread.wants_room or turn.payer
        run = f"{thread.id}:{turn.seq}" if turn.source else ""
        beyond = turn.overruns if turn.calls_left else ()
        place, task = thread.id, turn.terms.task if turn.terms else None
        if task:  # what it spends is spent where it was handed on
            place, run = task.root, task.run
        budgets = task.budgets if task else ()
        if who == turn.requester:
            return Payer(who, role, place, run, thread.is_group, who, beyond, budgets)
        role = Role.OWNER if who == OWNER else await book.patiently(partial(self._people.role, who))
        return Payer(who, role, place, run, True, turn.requester, beyond, budgets)  # whose words they are reads along

    def refuse(self, book: Book, text: str) -> None:
        """The turn ends here."""
        self._bus.publish(Warned(book.thread.id, book.lease.head, "budget", text))
        book.keep(GaveUp("budget", text))

    async def _make_thriftily(
        self, book: Book, briefed: Briefed, wrap: bool, interrupt: Interrupt, payer: Payer, bounds: tuple[Bound, ...]
    ) -> Denied | Charge | None:
        """By the usual model, or by a cheaper one where little is left, or the usual one is too dear."""
        budgets = self._budgets
        thrifty = await self._cheaper(book, briefed, payer)
        if thrifty and budgets.is_tight(bounds):
            briefed, thrifty = thrifty, None
            bounds = () if briefed.own else bounds
        result = await self._calls.make(book, briefed, wrap, interrupt, payer, bounds)
        if isinstance(result, Denied) and thrifty:
            bounds = () if thrifty.own else bounds
            result = await self._calls.make(book, thrifty, wrap, interrupt, payer, bounds)
        return result

    async def _warn(self, book: Book, payer: Payer, charge: Charge) -> None:
        """Tell them once when most of their own is gone."""
        scarce = self._budgets.note(charge)
        if not scarce or payer.in_group:
            return
        if text := await book.patiently(partial(self._budgets.warning, payer, scarce)):
            self._bus.publish(Warned(book.thread.id, book.lease.head, "spent", text))

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
