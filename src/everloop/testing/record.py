"""A turn as it was recorded, cut out of its log, with what has to be known to run it again.

The log holds what happened, not by which settings: which tools there were, what a second run of them would have done,
whom the owner wanted to be asked. So far as the turn depended on that, its entries show it, and it is read from them.
`everloop.replay` runs a record.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Raw, Struct, structs

from ..core.approval import Stance
from ..core.decide import CHANGED, FORBIDDEN, Rules
from ..core.log import (
    Answered,
    Asked,
    CallReturned,
    CallStarted,
    Compacted,
    Entry,
    GaveUp,
    ModelCalled,
    ModelChosen,
    ModelFailed,
    ModelSaid,
    PersonaChosen,
    Resumed,
    Stopped,
    UserSaid,
)
from ..core.message import Opaque, Part, Text
from ..core.people import Role
from ..core.prompt import Transcript
from ..core.thread import Thread
from ..core.tool import Effect, ToolCall, ToolSpec, problems_of
from ..errors import ReplayRefused

ANYTHING: dict[str, Any] = {"type": "object"}
# What the driver writes by itself, and what letters become. Anything else, as a summary, was made by someone else.
REPEATED = (
    *(UserSaid, ModelChosen, PersonaChosen, Stopped, Answered, Asked, Resumed, GaveUp),
    *(ModelCalled, ModelSaid, ModelFailed, CallStarted, CallReturned),
)
NOT_RUN = "Error: the call was not run: "
NO_TOOL = re.compile(r"Error: there is no tool .*\. The tools are: (.*)\.", re.DOTALL)


class Stub(Struct, frozen=True, omit_defaults=True):
    """What the loop has to know of a tool whose results are recorded. Without a schema all arguments are good."""

    effect: Effect = Effect.UNSAFE
    permission: Role = Role.GUEST
    polls: bool = False
    schema: dict[str, Any] = {}
    spawns: bool = False

    def spec(self, name: str) -> ToolSpec:
        schema = self.schema or ANYTHING
        return ToolSpec(name, "", schema, self.effect, permission=self.permission, polls=self.polls, spawns=self.spawns)


class Record(Struct, frozen=True, omit_defaults=True):
    """`turn` are the entries of the turn, from `start` on; `before` is the conversation as it stood, since the last
    compaction. `shown` is a fingerprint of what the model was shown at each call."""

    start: int
    before: Sequence[Entry]
    turn: Sequence[Entry]
    tools: Mapping[str, Stub] = {}
    shown: Sequence[str] = ()
    max_steps: int = Rules().max_steps
    unfinished: bool = False

    def entry(self, seq: int) -> Entry | None:
        """What was written at this place, as far as the turn goes."""
        return self.turn[seq - self.start] if 0 <= seq - self.start < len(self.turn) else None

    def stance(self, answer: int, place: int) -> Stance:
        """Whether a call was asked about, or refused; the settings that said so are not recorded.

        What did not come to run is held back like that, too: the record tells in time what became of it."""
        found = [entry for entry in self.turn if isinstance(entry, Asked | CallStarted | CallReturned)]
        mine = [entry for entry in found if (entry.answer, entry.place) == (answer, place)]
        if any(isinstance(entry, Asked) for entry in mine):
            return "ask"
        ran = any(isinstance(entry, CallStarted) or _has_run(entry) for entry in mine)
        return "allow" if ran and not any(self.is_given(entry) for entry in mine) else "deny"

    def is_given(self, entry: Entry) -> bool:
        """Whether an entry follows from what is not recorded, so that it can only be believed: what a compaction kept,
        how much the model could read, a schema, a tool that has changed since a person was asked."""
        if isinstance(entry, GaveUp) and entry.reason == "context":
            return True
        if isinstance(entry, CallReturned) and entry.outcome == "denied":
            return entry.text == CHANGED
        if isinstance(entry, CallReturned) and entry.outcome == "failed" and entry.text.startswith(NOT_RUN):
            said = self.entry(entry.answer)
            assert isinstance(said, ModelSaid)
            call = said.calls[entry.place]
            stub = self.tools.get(call.name, Stub())
            return not stub.schema and not problems_of(call, stub.spec(call.name))
        return not isinstance(entry, REPEATED)


def _has_run(entry: Entry) -> bool:
    """Also what is repeated might run, if it were not for the rule against that."""
    if not isinstance(entry, CallReturned) or entry.outcome not in ("done", "failed", "denied", "repeated"):
        return False
    return entry.text != FORBIDDEN


def opaque(dialect: str, block: str) -> Opaque:
    """A block that only its provider can read, from its JSON text."""
    return Opaque(dialect, Raw(block.encode()))


def fingerprint(transcript: Transcript) -> str:
    """Of the messages that a model is shown, with their number, which is what one wants to know first."""
    shown = [structs.replace(message, parts=tuple(map(_as_shown, message.parts))) for message in transcript.messages]
    digest = sha256(msgspec.json.encode(shown)).hexdigest()[:12]
    return f"{len(transcript.messages)}:{digest}"


def _as_shown(part: Part) -> Part:
    """Whose it is no model is told by anything but the text."""
    return Text(part.text) if isinstance(part, Text) else part


def turns_in(entries: Iterable[Entry]) -> list[int]:
    """The seqs by which the turns of a log are named."""
    turns: list[int] = []
    for thread in _folds(entries):
        if thread.turn.seq and thread.turn.seq not in turns[-1:]:
            turns.append(thread.turn.seq)
    return turns


def cut(entries: Sequence[Entry], seq: int, known: Iterable[ToolSpec] = ()) -> Record:
    """The turn that is named by this seq. Where a tool is `known`, what is said of it counts, else what the entries
    show. Raises ReplayRefused when there is no such turn."""
    start, end, unfinished = _bounds(entries, seq)
    first = max((n for n, entry in enumerate(entries[: start - 1]) if isinstance(entry, Compacted)), default=0)
    record = Record(start, entries[first : start - 1], entries[start - 1 : end], unfinished=unfinished)
    return _learned(record, {spec.name: spec for spec in known})


def _folds(entries: Iterable[Entry]) -> Iterable[Thread]:
    thread = Thread()
    for entry in entries:
        try:
            thread.add(entry)
        except KeyError as error:  # a result without its call
            raise ReplayRefused(f"the log of this conversation is damaged at entry {thread.seq}") from error
        yield thread


def _bounds(entries: Sequence[Entry], seq: int) -> tuple[int, int, bool]:
    """The places of the turn's first and last entry, and whether it is unfinished.

    What was said while the turn before came to its end begins its own turn there, a little later in the log."""
    start = 0
    for thread in _folds(entries if seq > 0 else ()):
        if not start and thread.turn.seq == seq and (thread.owes_reply or thread.seq == seq):
            start = seq if thread.seq == seq else thread.seq + 1
        if start and thread.finished and thread.finished.turn == seq:
            return start, thread.finished.seq, False
    if not start:
        turns = turns_in(entries)
        few = ", ".join(map(str, turns[-5:]))
        there = f"its {'last ' if len(turns) > 5 else ''}turns are {few}" if turns else "nothing was said in it yet"
        raise ReplayRefused(f"no turn of this conversation begins at entry {seq}; {there}")
    return start, len(entries), True


def _learned(record: Record, known: Mapping[str, ToolSpec]) -> Record:
    lesson = _Lesson(record, known)
    for seq, entry in enumerate(record.turn, record.start):
        try:
            lesson.take(entry)
        except KeyError as error:  # a call that was never made
            raise ReplayRefused(f"the log of this conversation is damaged at entry {seq}") from error
    return structs.replace(
        record, tools=lesson.stubs(), shown=tuple(lesson.shown), max_steps=lesson.max_steps or record.max_steps
    )


def thread_before(record: Record) -> Thread:
    """The conversation as it stood when the turn began."""
    thread = Thread(seq=record.start - 1 - len(record.before))
    thread.extend(record.before)
    return thread


class _Lesson:
    """Goes through a turn and notes what it shows of the tools and the rules."""

    def __init__(self, record: Record, known: Mapping[str, ToolSpec]) -> None:
        self._thread = thread_before(record)
        self._known = known
        self._rules = Rules()
        self._resumed = False  # since the last start
        self._names: list[str] = []
        self._listed: list[str] | None = None
        self._ran: set[str] = set()  # those of which a call has run
        self._started: set[str] = set()
        self._doubts: dict[str, set[str]] = {}  # what followed on a start whose end nobody saw
        self._denied: set[str] = set()
        self._polls: set[str] = set()
        self._spawns: set[str] = set()
        self._refused: set[str] = set()
        self.shown: list[str] = []
        self.max_steps = 0

    def take(self, entry: Entry) -> None:
        thread = self._thread
        if isinstance(entry, ModelCalled) and entry.wrap:
            self.max_steps = self.max_steps or thread.turn.steps
        elif isinstance(entry, CallStarted):
            name = thread.open_calls[entry.place].name
            self._started.add(name)
            if entry.waits:
                self._spawns.add(name)
            self._resumed = False
            if entry.place in thread.started:
                self._doubts.setdefault(name, set()).add("again")
        elif isinstance(entry, CallReturned):
            if entry.answer != thread.answer:
                raise KeyError(entry.answer)
            self._take_result(entry, thread.open_calls[entry.place])
        elif isinstance(entry, Resumed):
            self._resumed = True
        elif isinstance(entry, ModelSaid):
            self._names += [call.name for call in entry.calls if call.name not in self._names]
        thread.add(entry)
        if isinstance(entry, ModelCalled):
            self.shown.append(fingerprint(thread.transcript))

    def _take_result(self, entry: CallReturned, call: ToolCall) -> None:
        name, thread = call.name, self._thread
        if listed := NO_TOOL.fullmatch(entry.text):
            self._listed = [] if listed[1] == "none" else listed[1].split(", ")
        elif entry.outcome == "failed" and entry.text.startswith(NOT_RUN):
            self._refused.add(name)
        elif entry.outcome in ("done", "failed"):
            self._ran.add(name)
            if thread.turn.futile >= self._rules.repeats and thread.was_made(call):
                self._polls.add(name)
            if entry.place in thread.started and self._resumed:
                self._doubts.setdefault(name, set()).add("seen")
        elif entry.outcome == "unknown":
            self._doubts.setdefault(name, set()).add("unknown")
        elif entry.outcome == "denied" and entry.text.startswith(f"{name} is not for "):
            self._denied.add(name)

    def stubs(self) -> dict[str, Stub]:
        names = self._names if self._listed is None else self._listed
        return {name: self._stub(name) for name in names}

    def _stub(self, name: str) -> Stub:
        if spec := self._known.get(name):
            schema = spec.schema if name in self._refused else {}
            return Stub(spec.effect, spec.permission, spec.polls, schema, spec.spawns)
        least = Role.OWNER if name in self._denied else Role.GUEST
        return Stub(self._effect(name), least, name in self._polls, spawns=name in self._spawns)

    def _effect(self, name: str) -> Effect:
        if name not in self._started:
            return Effect.READ if name in self._ran else Effect.UNSAFE
        doubts = self._doubts.get(name, set())
        if doubts <= {"unknown"}:
            return Effect.UNSAFE
        return Effect.IDEMPOTENT if doubts == {"again"} else Effect.VERIFIABLE
