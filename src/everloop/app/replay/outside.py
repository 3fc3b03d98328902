"""Models, tools, permissions and pictures of a replay: each gives what the record says, and touches nothing."""

import re
from collections.abc import Callable, Mapping

from msgspec import structs

from ...core.approval import Policy, Stance
from ...core.briefing import Briefing, Situation
from ...core.decide import Rules
from ...core.log import Answered, Asked, CallReturned, CallStarted, Entry, GaveUp, ModelCalled, ModelFailed, ModelSaid
from ...core.overrun import Account
from ...core.people import Role
from ...core.prompt import Brought, Prompt, Transcript, Usage
from ...core.strangers import Moment
from ...core.thread import Thread
from ...core.tool import Circumstances, Ground, ToolCall, ToolSpec
from ...errors import ProviderError, ToolError
from ...files.folder import Folder
from ...ports.budgets import Bound, Limit, Spending
from ...ports.permission import Grant
from ...ports.provider import Delta, Reply
from ...ports.tools import Assignment, CallContext
from ...readings.definitions import definition_of
from ...readings.recall import RECALLED
from ...runtime.approvers import Approvers, ReachedApprover
from ...runtime.budgets import AllowedCall, BudgetControl, Denied, Payer, Price
from ...runtime.calls import Kit, Toolbox
from ...runtime.context import Context, Gallery, Profile
from ...runtime.models import Fitted, Model
from ...runtime.people import KnownPeople
from ...store.sqlite import SqliteStore
from ...testing.entry_difference import EntryDifference
from ...testing.record import fingerprint, thread_before
from .tape import Tape

UNLIMITED = 1 << 62
TIME = re.compile(r"^Current time: (.*)$", re.MULTILINE)


class PlayedProvider:
    """Gives the recorded answers, and looks whether it is shown what was shown then."""

    name = "recorded"

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    async def reply(self, prompt: Prompt, show: Callable[[Delta], None]) -> Reply:
        tape = self._tape
        shown, recorded = fingerprint(prompt.transcript), next(tape.shown, "")
        if recorded and shown != recorded:
            sentence = f"the model is shown other messages: {_counted(shown)}, and then {_counted(recorded)}"
            tape.different = EntryDifference(tape.seq, tape.record.entry(tape.seq), sentence)
            await tape.break_off("")
        said = tape.coming
        if isinstance(said, ModelFailed):
            error = ProviderError(said.text)
            error.kind = said.error
            raise error
        if not isinstance(said, ModelSaid):
            return await tape.break_off("the model is asked")
        return Reply(
            text=said.text,
            calls=said.calls,
            usage=said.usage,
            finish=said.finish,
            model=said.model,
            reasoning=said.reasoning,
            opaque=said.opaque,
            cost=said.cost,
        )

    async def close(self) -> None:
        pass


def _counted(shown: str) -> str:
    return f"{shown.partition(':')[0]} ({shown.partition(':')[2]})"


class PlayedToolbox(Toolbox):
    """Gives the recorded results; there is nothing in it that could be run."""

    def __init__(self, tape: Tape, files: Folder) -> None:
        super().__init__(lambda principal: Kit({}), files)
        self._tape = tape

    async def run(self, thread: Thread, place: int, context: CallContext) -> CallReturned:
        result = self._tape.result(thread.answer, place)
        return result or await self._tape.break_off(f"{thread.open_calls[place].name} is run")

    async def assignment(self, thread: Thread, place: int, context: CallContext) -> Assignment:
        """What was handed on then; nobody works at it."""
        coming, text = self._tape.coming, thread.open_calls[place].args
        if isinstance(coming, CallStarted):
            return Assignment(text=text, waits=coming.waits)
        if isinstance(coming, CallReturned) and coming.outcome == "failed":
            raise ToolError(coming.text.removeprefix("Error: "))
        return await self._tape.break_off("a task is handed on")

    def spec(self, thread: Thread, place: int) -> ToolSpec:
        return self._tape.tools[thread.open_calls[place].name]

    def ground(self, thread: Thread, place: int) -> tuple[Ground, ...]:
        return ()

    async def verify(self, thread: Thread, place: int, context: CallContext) -> CallReturned | None:
        coming = self._tape.coming
        if isinstance(coming, CallStarted):
            return None
        if isinstance(coming, CallReturned) and coming.outcome == "unknown":
            raise ToolError("nobody could tell")
        return self._tape.result(thread.answer, place) or await self._tape.break_off("a call is verified")


class PlayedContext(Context):
    """As the present code speaks to a model, at the time that it was then."""

    def __init__(self, tape: Tape, tail: bool) -> None:
        super().__init__(Profile("", (), tail=tail), tuple(tape.tools.values()), lambda: _time(tape.coming))
        self._tape = tape
        self._before = thread_before(tape.record).prefix

    def tail(self, thread: Thread, wrap: bool, recalled: str = "") -> str:
        """What is a summary is not in the record, so that nothing can be recalled from it: it is told as it was."""
        return super().tail(thread, wrap, _recalled(self._tape.coming))

    def prefix(self, wrap: bool, brought: Brought | None = None) -> str:
        """What stood before the conversation is not recorded, but for its fingerprint: this is not compared."""
        called = self._tape.record.turn[: self._tape.seq + 2 - self._tape.record.start]
        return next((e.prefix for e in reversed(called) if isinstance(e, ModelCalled) and e.prefix), self._before)


def _recalled(coming: Entry | None) -> str:
    tail = coming.tail if isinstance(coming, ModelCalled) else ""
    return tail[tail.index(RECALLED) :] if RECALLED in tail else ""


def _time(coming: Entry | None) -> str:
    found = TIME.search(coming.tail) if isinstance(coming, ModelCalled) else None
    return found[1] if found else "…"


class PlayedModel(Model):
    """Whoever answered then, told what was told then; the settings that said so are not recorded."""

    def __init__(self, tape: Tape) -> None:
        contexts = {tail: PlayedContext(tape, tail) for tail in (False, True)}
        super().__init__("", "", "", PlayedProvider(tape), UNLIMITED, lambda window, told: (contexts[True], told.rules))
        self._tape = tape
        self._contexts = contexts
        self._time = True  # whether it was told the time

    def fitted_to(self, briefing: Briefing) -> Fitted:
        if isinstance(called := self._tape.coming, ModelCalled):
            self.name, self._time = called.model, TIME.search(called.tail) is not None
        limits = structs.replace(self.limits)  # another each time, so that each call is fitted anew
        return Fitted(briefing, limits, self._contexts[self._time], briefing.rules)


class PlayedBriefer:
    def __init__(self, rules: Rules) -> None:
        self._briefing = Briefing("", rules)

    async def brief(self, situation: Situation) -> Briefing:
        return self._briefing


class PlayedPeople(KnownPeople):
    """Who was blocked then, in the middle of a turn, is so now."""

    def __init__(self, tape: Tape, given: Mapping[str, Role]) -> None:
        super().__init__(given=given)
        self._tape = tape

    async def role(self, person: str) -> Role:
        coming = self._tape.coming
        if isinstance(coming, GaveUp) and coming.reason == "blocked":
            return Role.BLOCKED
        return await super().role(person)


class PlayedApprovers(Approvers):
    """Who was asked elsewhere then is asked now."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    async def reached(self) -> list[ReachedApprover]:
        coming = self._tape.coming
        told = coming.told if isinstance(coming, Asked) else ()
        return [ReachedApprover(each.person, Role.OWNER, each.session) for each in told]


class PlayedPolicy(Policy, frozen=True, kw_only=True):
    """Whoever was asked then is asked now."""

    tape: Tape

    def stance(self, call: ToolCall, spec: ToolSpec, situation: Circumstances) -> Stance:
        assert isinstance(situation, Moment)
        return self.tape.record.stance(situation.thread.answer, situation.place)


class PlayedStore(SqliteStore):
    """What was allowed ahead then is allowed now."""

    tape: Tape

    def play(self, tape: Tape) -> None:
        self.tape = tape

    async def grants(self, user: str = "") -> list[Grant]:
        """The one that was used then; whatever it was for then, it is for that call now."""
        coming = self.tape.coming
        if isinstance(coming, Answered) and coming.by.startswith("grant:"):
            tool = self.tape.calls[coming.place].name
            definition = definition_of(self.tape.tools[tool])
            return [Grant(coming.by.removeprefix("grant:"), user, "owner", tool, definition, any=True)]
        return []

    async def use_grant(self, id: str) -> bool:
        return True


class PlayedBudgets(BudgetControl):
    """Who could not be answered then is not answered now, and told the same."""

    def __init__(self, store: PlayedStore, tape: Tape) -> None:
        super().__init__(store)
        self._tape = tape

    def bounds_seen(self, payer: Payer) -> tuple[Bound, ...]:
        coming, account = self._tape.coming, Account(payer.id, "month")
        if isinstance(coming, GaveUp) and coming.reason == "budget":
            return (Bound(account, Limit(0), Spending(account)),)
        return ()

    def plan(
        self, payer: Payer, bounds: tuple[Bound, ...], key: str, model: str, price: Price, cost: Usage
    ) -> AllowedCall | Denied:
        coming = self._tape.coming
        return Denied(coming.text if isinstance(coming, GaveUp) else "")


class EmptyGallery(Gallery):
    async def load_media(self, transcript: Transcript, user: str) -> None:
        """Nobody looks at the pictures."""
