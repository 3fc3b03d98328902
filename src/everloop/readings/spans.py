"""A turn as spans, read from the log, after OpenTelemetry's conventions for generative AI.

Nothing is measured for them. Every entry has its time, a letter when it came in, an answer when someone had it; what
lies between two of them is a span. So the same log gives the same spans under the same ids, whenever and wherever it is
read, and whoever is told of a turn twice can see that it is one.
"""

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, Literal

from msgspec import Struct, field

from ..core.log import (
    Answered,
    Asked,
    CallReturned,
    CallStarted,
    Compacted,
    Entry,
    GaveUp,
    ModelCalled,
    ModelFailed,
    ModelSaid,
    Resumed,
    Stopped,
    UserSaid,
)
from ..core.mail import reply_key
from ..core.message import text_of
from ..core.prompt import Usage
from ..core.tool import ToolCall
from ..ports.conversation import Written
from ..ports.outbox import Delivery

Kind = Literal["queue", "model", "tool", "approval", "summary", "delivery"]
Ending = Literal["answered", "failed", "stopped", "open"]
Value = str | int | float | tuple[str, ...]
Place = tuple[int, int]  # of a call: its answer, and its place therein

# What the conventions call hosts that we call otherwise, and reasons why a model ended.
PROVIDERS = {"gemini": "gcp.gemini", "mistral": "mistral_ai", "moonshot": "moonshot_ai", "xai": "x_ai"}
FINISHES = {"calls": "tool_call", "refused": "content_filter"}
FINE = ("done", "handed")
SHORT = 200


class Span(Struct):
    """`end` is None while it lasts. `seq` is the entry that ended it, or began it. `name` is what a person knows it by,
    `operation` what a collector does."""

    kind: Kind
    name: str
    start: float
    end: float | None = None
    seq: int = 0
    outcome: str = ""
    input: int = 0
    output: int = 0
    cost: float | None = None
    id: str = ""
    operation: str = ""
    attributes: dict[str, Value] = field(default_factory=dict)


class TurnSpans(Struct):
    """The span that holds the others. `trace` and `id` are its names at a collector, `ended` is its last entry."""

    turn: int
    said: str
    start: float
    end: float | None = None
    ending: Ending = "open"
    spans: list[Span] = field(default_factory=list)
    input: int = 0
    output: int = 0
    cost: float | None = 0.0  # None: at least one price is not known
    trace: str = ""
    id: str = ""
    operation: str = "invoke_agent everloop"
    attributes: dict[str, Value] = field(default_factory=dict)
    mail: int = 0
    ended: int = 0


def turns_of(thread: str, history: Iterable[Written]) -> list[TurnSpans]:
    """The turns that begin in a stretch of a thread's log; what it tells of earlier ones is passed over."""
    reading = _Reading(thread)
    for written in history:
        reading.add(written)
    return reading.turns


def keys_of(thread: str, turns: Iterable[TurnSpans]) -> list[str]:
    """Under which keys the answers of these turns were put into the outbox, if they were."""
    return [reply_key(thread, turn.ended) for turn in turns if turn.ended]


def deliver(
    thread: str, turns: Iterable[TurnSpans], arrivals: Mapping[int, float], deliveries: Mapping[str, Delivery]
) -> None:
    """Let the turns begin when their letters came in, and end with what became of their answers.

    An answer that was handed to whoever waited for it was never in the outbox, and has no delivery."""
    for turn in turns:
        _begin_earlier(turn, arrivals.get(turn.mail, turn.start))
        if turn.ended and (delivery := deliveries.get(reply_key(thread, turn.ended))):
            turn.spans.append(_delivery_span(thread, turn, delivery))


def trace_id(thread: str, turn: int) -> str:
    return sha256(f"{thread}:{turn}".encode()).hexdigest()[:32]


def span_id(thread: str, kind: str, *place: int) -> str:
    """By what it is and the entry that begins it."""
    return sha256(":".join((thread, kind, *map(str, place))).encode()).hexdigest()[:16]


def provider_of(model: str) -> str:
    host = model.partition("/")[0]
    return PROVIDERS.get(host, host)


def model_of(name: str) -> str:
    """The model's own name, without its host's."""
    return name.partition("/")[2] or name


def _begin_earlier(turn: TurnSpans, arrived: float) -> None:
    if arrived >= turn.start:
        return
    turn.start = arrived
    if turn.spans and turn.spans[0].kind == "queue":
        turn.spans[0].start = arrived


def _delivery_span(thread: str, turn: TurnSpans, found: Delivery) -> Span:
    span = Span("delivery", found.channel, found.queued, found.settled, turn.ended, found.state)
    span.id, span.operation = span_id(thread, "delivery", turn.ended), f"deliver {found.channel}"
    span.attributes = {
        "gen_ai.conversation.id": thread,
        "everloop.channel": found.channel,
        "everloop.delivery.state": found.state,
    }
    if found.attempts:
        span.attributes["everloop.delivery.attempts"] = found.attempts
    if found.state == "failed":
        span.attributes["error.type"] = "undelivered"
    return span


class _Reading:
    """Follows a log as `Thread` does, but only as far as times are concerned, and from anywhere."""

    def __init__(self, thread: str) -> None:
        self.turns: list[TurnSpans] = []
        self._thread = thread
        self._turn: TurnSpans | None = None
        self._last = 0.0
        self._calling: Span | None = None
        self._wrapping = self._failed = self._stopped = self._handed = False
        self._unheard: list[tuple[int, float, UserSaid]] = []
        self._calls: dict[Place, tuple[ToolCall, float]] = {}  # with the time at which it could begin
        self._running: dict[Place, Span] = {}
        self._asking: dict[Place, Span] = {}

    def add(self, written: Written) -> None:
        seq, at, entry = written.seq, written.at, written.entry
        if isinstance(entry, UserSaid):
            self._hear(seq, at, entry)
        elif self._turn is not None and (follow := _FOLLOWED.get(type(entry))):
            follow(self, seq, at, entry)
        self._last = at

    def _hear(self, seq: int, at: float, said: UserSaid) -> None:
        if self._turn is None:
            self._begin_turn(seq, at, said)
        elif self._calling or self._calls or self._failed or self._unheard:
            self._unheard.append((seq, at, said))

    def _begin_turn(self, seq: int, at: float, said: UserSaid) -> None:
        thread = self._thread
        turn = TurnSpans(seq, text_of(said.parts)[:SHORT], at, mail=said.mail)
        turn.trace, turn.id = trace_id(thread, seq), span_id(thread, "turn", seq)
        turn.attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "everloop",
            "gen_ai.conversation.id": thread,
            "everloop.session": said.address,
            "everloop.turn": f"{thread}:{seq}",
        }
        self._turn, self._stopped, self._handed = turn, False, False
        self.turns.append(turn)

    def _span(self, kind: Kind, operation: str, name: str, start: float, seq: int, *place: int) -> Span:
        attributes: dict[str, Value] = {"gen_ai.conversation.id": self._thread}
        id = span_id(self._thread, kind, *(place or (seq,)))
        span = Span(kind, name, start, seq=seq, id=id, operation=operation, attributes=attributes)
        if self._turn is not None:
            self._turn.spans.append(span)
        return span

    def _begin_model(self, seq: int, at: float, called: ModelCalled) -> None:
        if self._turn is not None and not self._turn.spans:
            self._span("queue", "queue", "waited", self._turn.start, seq, self._turn.turn).end = at
        self._close_model(seq, at, "interrupted")  # by what someone said meanwhile
        self._unheard, self._wrapping, self._failed = [], called.wrap, False
        self._calling = self._span("model", f"chat {model_of(called.model)}", called.model, at, seq)
        self._calling.attributes |= _asked_of(called.model)

    def _close_model(self, seq: int, at: float, outcome: str, error: str = "") -> None:
        if self._calling is not None:
            self._calling.end, self._calling.seq, self._calling.outcome = at, seq, outcome
            if error:
                self._calling.attributes["error.type"] = error
        self._calling = None

    def _fail_model(self, seq: int, at: float, failed: ModelFailed) -> None:
        self._close_model(seq, at, failed.error, failed.error)
        self._failed = True

    def _lose_model(self, seq: int, at: float, resumed: Resumed) -> None:
        self._close_model(seq, at, "lost", "lost")

    def _stop(self, seq: int, at: float, stopped: Stopped) -> None:
        self._close_model(seq, at, "stopped")
        self._stopped = True
        self._end_if_stopped(seq, at)

    def _give_up(self, seq: int, at: float, gave_up: GaveUp) -> None:
        self._close_model(seq, at, gave_up.reason, gave_up.reason)
        self._end_turn(seq, at, "failed", gave_up.reason, gave_up.error)

    def _end_model(self, seq: int, at: float, said: ModelSaid) -> None:
        span = self._calling
        self._close_model(seq, at, said.finish)
        if span is not None:
            span.name = said.model or span.name
            span.attributes["gen_ai.response.model"] = model_of(said.model or span.name)
            span.attributes["gen_ai.response.finish_reasons"] = (FINISHES.get(said.finish, said.finish),)
            _spend(span, said.usage, said.cost)
        self._spend(said.usage, said.cost, said.model)
        calls = () if self._wrapping else said.calls
        self._calls = {(seq, place): (call, at) for place, call in enumerate(calls)}
        if not calls and said.text.strip():
            self._end_turn(seq, at, "answered")

    def _spend(self, usage: Usage, cost: float | None, model: str) -> None:
        turn = self._turn
        if turn is None:
            return
        turn.input += usage.input
        turn.output += usage.output
        turn.cost = None if turn.cost is None or cost is None else turn.cost + cost
        if model:
            turn.attributes["gen_ai.provider.name"] = provider_of(model)
            turn.attributes["gen_ai.response.model"] = model_of(model)

    def _summarise(self, seq: int, at: float, compacted: Compacted) -> None:
        model = compacted.model
        span = self._span("summary", f"compact {model_of(model)}".rstrip(), model or "plain", self._last, seq)
        span.end = at
        if model:
            span.attributes |= _asked_of(model)
            _spend(span, compacted.usage, compacted.cost)
            self._spend(compacted.usage, compacted.cost, "")
        self._calling, self._unheard, self._calls, self._failed = None, [], {}, False

    def _begin_call(self, seq: int, at: float, started: CallStarted) -> None:
        """One that is started again after a crash goes on from its first start."""
        place = (started.answer, started.place)
        if (found := self._calls.get(place)) and place not in self._running:
            self._calls[place] = (found[0], at)
            self._running[place] = self._tool_span(found[0], at, seq, place)

    def _tool_span(self, call: ToolCall, at: float, seq: int, place: Place) -> Span:
        span = self._span("tool", f"execute_tool {call.name}", call.name, at, seq, *place)
        span.attributes |= {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.id,
        }
        return span

    def _ask(self, seq: int, at: float, asked: Asked) -> None:
        if found := self._calls.get((asked.answer, asked.place)):
            call = found[0]
            span = self._span("approval", f"approval {call.name}", call.name, at, seq, asked.answer, asked.place)
            span.attributes |= {
                "gen_ai.tool.name": call.name,
                "gen_ai.tool.call.id": call.id,
                "everloop.approval.risk": asked.risk.level,
            }
            self._asking[asked.answer, asked.place] = span

    def _hear_verdict(self, seq: int, at: float, answered: Answered) -> None:
        self._end_asking((answered.answer, answered.place), seq, at, answered.verdict)

    def _end_asking(self, place: Place, seq: int, at: float, verdict: str) -> None:
        if span := self._asking.pop(place, None):
            span.end, span.seq, span.outcome = at, seq, verdict
            span.attributes["everloop.approval.verdict"] = verdict
        if found := self._calls.get(place):
            self._calls[place] = (found[0], at)  # it could not begin before

    def _end_call(self, seq: int, at: float, returned: CallReturned) -> None:
        place = (returned.answer, returned.place)
        if place in self._asking:  # nobody has answered: the turn was stopped
            self._end_asking(place, seq, at, "withdrawn")
        found = self._calls.pop(place, None)
        if found is None:
            return
        running = self._running.pop(place, None)
        span = running or self._tool_span(*found, seq, place)
        span.end, span.seq, span.outcome = at, seq, returned.outcome
        if returned.outcome not in FINE:
            span.attributes["error.type"] = returned.outcome
        if running:  # what has an effect runs alone, and the others after it
            self._calls = {each: (call, max(at, start)) for each, (call, start) in self._calls.items()}
        self._handed = self._handed or returned.outcome == "handed"
        if not self._calls:
            self._end_calls(seq, at)

    def _end_calls(self, seq: int, at: float) -> None:
        self._running = {}
        self._end_if_stopped(seq, at)
        if self._turn is not None and self._handed:
            self._end_turn(seq, at, "answered")
        elif self._turn is not None:
            self._unheard = []

    def _end_if_stopped(self, seq: int, at: float) -> None:
        if self._stopped and not self._calls:
            self._unheard = []  # what was said before a stop is stopped with it
            self._end_turn(seq, at, "stopped")

    def _end_turn(self, seq: int, at: float, ending: Ending, error: str = "", error_id: str = "") -> None:
        turn = self._turn
        if turn is None:
            return
        turn.end, turn.ended, turn.ending = at, seq, ending
        turn.attributes["gen_ai.usage.input_tokens"] = turn.input
        turn.attributes["gen_ai.usage.output_tokens"] = turn.output
        turn.attributes["everloop.ending"] = ending
        if turn.cost is not None:
            turn.attributes["everloop.cost.usd"] = turn.cost
        if error:
            turn.attributes["error.type"] = error
        if error_id:
            turn.attributes["everloop.error.id"] = error_id
        self._turn, self._asking, self._calls, self._running = None, {}, {}, {}
        self._failed, unheard, self._unheard = False, self._unheard, []
        for said in unheard:
            self._hear(*said)


# What else takes time in a turn, or ends something that does. Entries of other kinds do neither.
_FOLLOWED: Mapping[type[Entry], Callable[[_Reading, int, float, Any], None]] = {
    ModelCalled: _Reading._begin_model,
    ModelSaid: _Reading._end_model,
    ModelFailed: _Reading._fail_model,
    Resumed: _Reading._lose_model,
    CallStarted: _Reading._begin_call,
    CallReturned: _Reading._end_call,
    Asked: _Reading._ask,
    Answered: _Reading._hear_verdict,
    Compacted: _Reading._summarise,
    GaveUp: _Reading._give_up,
    Stopped: _Reading._stop,
}


def _asked_of(model: str) -> dict[str, Value]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider_of(model),
        "gen_ai.request.model": model_of(model),
    }


def _spend(span: Span, usage: Usage, cost: float | None) -> None:
    span.input, span.output, span.cost = usage.input, usage.output, cost
    span.attributes["gen_ai.usage.input_tokens"] = usage.input
    span.attributes["gen_ai.usage.output_tokens"] = usage.output
    more = {
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }
    span.attributes |= {name: tokens for name, tokens in more.items() if tokens}
    if cost is not None:
        span.attributes["everloop.cost.usd"] = cost
