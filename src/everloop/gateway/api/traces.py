"""A turn as a waterfall, read from the log: how long it waited, thought, worked and asked, and what it cost.

Nothing is measured for it. Every entry has its time, and what lies between two of them is a span.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from ...core.conversation import Written
from ...core.log import (
    Answered,
    Asked,
    CallReturned,
    CallStarted,
    Compacted,
    GaveUp,
    ModelCalled,
    ModelFailed,
    ModelSaid,
    Stopped,
    UserSaid,
)
from ...core.message import text_of
from ...core.tool import ToolCall

Kind = Literal["queue", "model", "tool", "approval", "summary"]
Ending = Literal["answered", "failed", "stopped", "open"]


class Span(Struct):
    """`end` is None while it lasts. `seq` is the entry that ended it, or began it."""

    kind: Kind
    name: str
    start: float
    end: float | None = None
    seq: int = 0
    outcome: str = ""
    input: int = 0
    output: int = 0
    cost: float | None = None


class Turn(Struct):
    turn: int
    said: str
    start: float
    end: float | None = None
    ending: Ending = "open"
    spans: list[Span] = []
    input: int = 0
    output: int = 0
    cost: float | None = 0.0  # None: at least one price is not known


class Traces(Struct):
    turns: list[Turn]


def traces_of(history: Iterable[Written]) -> list[Turn]:
    reading = _Reading()
    for written in history:
        reading.add(written)
    return reading.turns


class _Reading:
    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._turn: Turn | None = None
        self._calling: Span | None = None
        self._calls: dict[tuple[int, int], tuple[ToolCall, float]] = {}
        self._asking: dict[tuple[int, int], Span] = {}

    def add(self, written: Written) -> None:
        seq, at = written.seq, written.at
        match written.entry:
            case UserSaid(parts=parts) if self._turn is None:
                self._turn = Turn(seq, text_of(parts)[:200], at)
                self.turns.append(self._turn)
            case ModelCalled(model=model):
                self._begin_model(seq, at, model)
            case ModelSaid() as said:
                self._end_model(seq, at, said)
            case ModelFailed(error=error):
                self._close_model(seq, at, error)
            case CallStarted(answer=answer, place=place) if found := self._calls.get((answer, place)):
                self._calls[answer, place] = (found[0], at)
            case Asked(answer=answer, place=place):
                name = self._calls[answer, place][0].name if (answer, place) in self._calls else ""
                self._asking[answer, place] = self._span("approval", name, at, seq)
            case Answered(answer=answer, place=place, verdict=verdict):
                self._end_asking((answer, place), seq, at, verdict)
            case CallReturned() as returned:
                self._end_call(seq, at, returned)
            case Compacted(model=model, usage=usage, cost=cost):
                span = self._span("summary", model or "plain", at, seq)
                span.end, span.input, span.output, span.cost = at, usage.input, usage.output, cost
            case GaveUp(reason=reason):
                self._close_model(seq, at, reason)
                self._end_turn(at, "failed")
            case Stopped():
                self._close_model(seq, at, "stopped")
                self._end_turn(at, "stopped")
            case _:
                pass

    def _span(self, kind: Kind, name: str, start: float, seq: int) -> Span:
        span = Span(kind, name, start, seq=seq)
        if self._turn is not None:
            self._turn.spans.append(span)
        return span

    def _begin_model(self, seq: int, at: float, model: str) -> None:
        if self._turn is not None and not self._turn.spans:
            self._span("queue", "waited", self._turn.start, seq).end = at
        self._calling = self._span("model", model, at, seq)

    def _close_model(self, seq: int, at: float, outcome: str) -> None:
        if self._calling is not None:
            self._calling.end, self._calling.seq, self._calling.outcome = at, seq, outcome
        self._calling = None

    def _end_model(self, seq: int, at: float, said: ModelSaid) -> None:
        span = self._calling
        self._close_model(seq, at, said.finish)
        if span is not None:
            span.name = said.model or span.name
            span.input, span.output, span.cost = said.usage.input, said.usage.output, said.cost
        if (turn := self._turn) is not None:
            turn.input += said.usage.input
            turn.output += said.usage.output
            turn.cost = None if turn.cost is None or said.cost is None else turn.cost + said.cost
        self._calls = {(seq, place): (call, at) for place, call in enumerate(said.calls)}
        if not said.calls and said.text.strip():
            self._end_turn(at, "answered")

    def _end_asking(self, call: tuple[int, int], seq: int, at: float, verdict: str) -> None:
        if span := self._asking.pop(call, None):
            span.end, span.seq, span.outcome = at, seq, verdict
        if found := self._calls.get(call):
            self._calls[call] = (found[0], at)  # it could not begin before

    def _end_call(self, seq: int, at: float, returned: CallReturned) -> None:
        found = self._calls.pop((returned.answer, returned.place), None)
        if found:
            span = self._span("tool", found[0].name, found[1], seq)
            span.end, span.outcome = at, returned.outcome

    def _end_turn(self, at: float, ending: Ending) -> None:
        if self._turn is not None:
            self._turn.end, self._turn.ending = at, ending
        self._turn, self._asking = None, {}
