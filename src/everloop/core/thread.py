"""Where a conversation stands: a fold over its entries, worked out from them and from nothing else."""

from collections.abc import Iterable
from typing import assert_never

from msgspec import Struct

from .compact import rendered, said_in_turn
from .exits import Exits, Sources, Way
from .gauge import Gauge
from .log import (
    IMPORTED,
    AgentTold,
    Answered,
    Asked,
    CallReturned,
    CallStarted,
    Compacted,
    CompactionAsked,
    Entry,
    GaveUp,
    ModelCalled,
    ModelChosen,
    ModelFailed,
    ModelSaid,
    Removed,
    Resumed,
    Standing,
    Stopped,
    TakenBack,
    Undoing,
    UserSaid,
    Verdict,
)
from .message import Made, Message, Text, is_strange, said
from .moment import Moment, way_out
from .prompt import Brought, Finish, Transcript, Usage
from .tool import ToolCall
from .undo import describe
from .unknown import not_known

STOPPED = "operation cancelled by user"
_NOT_RUN = ("denied", "repeated", "handed")


class Finished(Struct, frozen=True, gc=False):
    """A turn that is over, and how. `text` is None when there is nothing to deliver: it was stopped."""

    turn: int
    seq: int
    text: str | None
    address: str
    mails: tuple[int, ...]
    reason: str = ""  # why there is no answer; empty when there is one
    model: str = ""
    steps: int = 0
    usage: Usage = Usage()
    cost: float | None = None  # None: at least one price is not known
    tools_used: tuple[str, ...] = ()
    error: str = ""  # finds the detail of a failure in the log
    finish: Finish = "stop"
    calls: tuple[ToolCall, ...] = ()  # that were handed to the client, who goes on with their results
    files: tuple[Made, ...] = ()  # that its tools have made or shown, each as it was last
    unknown: tuple[str, ...] = ()  # what a person is told of calls of which nobody knows whether they took effect


class Thread:
    """A fold: `add` each entry in order. `seq` is the position of the last entry taken in."""

    __slots__ = (
        "_brought",
        "_ways",
        "address",
        "answer",
        "asked",
        "began",
        "brought",
        "calling",
        "choice",
        "condensed",
        "cost",
        "covered",
        "empties",
        "estimated",
        "exits",
        "facts",
        "failure",
        "failures",
        "files",
        "finish",
        "finished",
        "futile",
        "gauge",
        "handed",
        "id",
        "just_compacted",
        "made",
        "mails",
        "measured",
        "model",
        "open_calls",
        "outside",
        "owes_reply",
        "preapproved",
        "prefix",
        "requester",
        "results",
        "resumes",
        "saying",
        "seq",
        "sources",
        "started",
        "steps",
        "stopped",
        "summary",
        "tokens",
        "tools_used",
        "transcript",
        "turn",
        "unattended",
        "undo",
        "undoing",
        "undone",
        "unheard",
        "unknown",
        "usage",
        "verdicts",
        "wants_room",
        "wrapping",
    )

    def __init__(self, id: str = "", seq: int = 0) -> None:
        self.id = id
        self.seq = seq
        self.transcript = Transcript()
        self.turn = 0  # the seq of the entry that began the turn
        self.owes_reply = False
        self.requester = ""
        self.unattended = False
        self.preapproved = False
        self.address = ""
        self.mails: list[int] = []
        self.steps = 0
        self.resumes = 0
        self.empties = 0
        self.failures = 0
        self.failure: ModelFailed | None = None
        self.stopped = False
        self.calling = False
        self.wrapping = False
        self.just_compacted = False
        self.wants_room = False  # someone has asked for a summary
        self.began = -1  # where the running turn's first message stands in the transcript
        self.summary = ""
        self.facts: tuple[str, ...] = ()
        self.condensed = False  # whether the transcript begins with a summary
        self.covered = 0  # the last entry that it stands for
        self.brought: Brought | None = None  # what a client has brought along for this turn
        self.handed: list[ToolCall] = []  # calls that the client is to run
        self.saying = ""  # the text of the answer that the open calls stand in
        self.answer = 0  # the seq of the answer that the open calls stand in
        self.open_calls: dict[int, ToolCall] = {}
        self.started: set[int] = set()
        self.asked: dict[int, Asked] = {}
        self.verdicts: dict[int, Verdict] = {}
        self.unheard: list[tuple[int, UserSaid]] = []
        self.tokens = 0
        self.measured = False  # whether the host has counted them, with all that stands before the conversation
        self.estimated = 0  # what we think the conversation alone has
        self.finish: Finish = "stop"
        self.usage = Usage()  # of this turn
        self.cost: float | None = 0.0
        self.choice = ""  # the model that someone has chosen for this conversation
        self.prefix = ""  # the fingerprint of what stood before the conversation at the last call
        self.gauge = Gauge()
        self.model = ""
        self.tools_used: list[str] = []
        self.files: dict[str, Made] = {}  # that came of this turn, by name
        self.unknown: list[str] = []  # what is to be told of calls of this turn whose outcome nobody knows
        self.outside = False  # whether what strangers wrote has been read in it
        self.sources = Sources()  # what others have said: people, and strangers
        self.exits = Exits()  # what has left in this turn of what only strangers gave
        self._ways: tuple[int, dict[int, Way]] = 0, {}  # of the calls of which answer
        self.results: set[str] = set()  # whole results of tools that hold no stranger's words
        self.made: set[int] = set()  # the calls of this turn, and what came of them
        self.futile = 0  # steps in a row that have brought nothing new
        self._brought = False
        self.undoing: Undoing | None = None
        self.undone: dict[int, TakenBack] = {}  # by its place among the changes
        self.undo = 0  # the seq of the entry that began it
        self.finished: Finished | None = None

    @classmethod
    def of(cls, *entries: Entry) -> "Thread":
        thread = cls()
        thread.extend(entries)
        return thread

    def extend(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        self.seq += 1
        match entry:
            case UserSaid():
                self._hear(self.seq, entry)
            case ModelCalled():
                self._take_in_unheard()
                self.calling, self.wrapping, self.failure = True, entry.wrap, None
                self.prefix = entry.prefix or self.prefix
            case ModelSaid():
                self._take_answer(entry)
            case ModelFailed():
                self.calling, self.failure = False, entry
                self.failures += 1
            case CallStarted():
                self.started.add(entry.place)
            case CallReturned():
                self._take_result(entry)
            case Asked():
                self.asked[entry.place] = entry
            case Answered():
                self.verdicts[entry.place] = entry.verdict
                self._note_consent(entry)
            case ModelChosen():
                self.choice = entry.model
            case Stopped():
                self.wants_room = False
                if self.owes_reply:
                    self.stopped, self.calling = True, False
                    self._end_if_stopped()
            case Resumed():
                self.calling = False
                self.resumes += 1
            case GaveUp():
                self._say(Message("assistant", said(entry.text)))
                self._end(entry.text, entry.reason, entry.error)
            case Compacted():
                self._start_from(entry)
            case CompactionAsked():
                self.wants_room = True
            case Undoing():
                self._begin_to_undo(entry)
            case TakenBack():
                self.undone[entry.place], self.resumes = entry, 0
                self._end_if_undone()
            case AgentTold():
                self._tell(entry)
            case Removed():
                pass
            case _:
                assert_never(entry)

    @property
    def rests(self) -> bool:
        """Whether there is nothing to do until someone speaks."""
        return not (self.owes_reply or self.open_calls or self.wants_room)

    @property
    def pending(self) -> list[int]:
        """The places of calls that wait for a person's answer."""
        return [place for place in self.open_calls if place in self.asked and place not in self.verdicts]

    @property
    def standing(self) -> Standing:
        return Standing(
            *(self.turn, self.owes_reply, self.requester, self.address, self.steps, tuple(self.mails)),
            *(self.choice, self.prefix, self.outside, self.unattended, self.began),
            *(self.usage, self.cost, self.model, tuple(self.tools_used), self.brought),
            files=tuple(self.files.values()),
            unknown=tuple(self.unknown),
            exits=self.exits,
            preapproved=self.preapproved,
        )

    @property
    def voice(self) -> str:
        """The name of the model that is to answer; "" is the one of the settings."""
        return (self.brought and self.brought.model) or self.choice

    @property
    def is_bare(self) -> bool:
        """Whether the model that answers is shown nothing of ours, and so has nothing of ours to call."""
        return self.brought is not None and self.brought.bare

    def offers(self, name: str) -> bool:
        """Whether the client has brought a tool of this name, and runs it itself."""
        return self.brought is not None and self.brought.offers(name)

    def said_now(self) -> list[str]:
        """What people have said in the turn that runs."""
        messages = self.transcript.messages
        return [messages[at].text for at in said_in_turn(messages, self.began)]

    def mentions(self, text: str) -> bool:
        """Whether someone else has given this address. What the model says, or has a tool repeat, does not count: with
        that it could give itself whatever it wants."""
        return bool(self.sources.giver_of(text))

    def before(self, place: int) -> Moment:
        """As the call at this place finds it."""
        return Moment(self, place)

    @property
    def ways(self) -> dict[int, Way]:
        """How the open calls lead out, by their places; worked out once for each answer."""
        if self._ways[0] != self.answer:
            found = {place: way for place, call in self.open_calls.items() if (way := way_out(call))}
            self._ways = self.answer, found
        return self._ways[1]

    def was_made(self, call: ToolCall) -> bool:
        """Whether this very call has been made in this turn."""
        return hash((call.name, call.args)) in self.made

    def _hear(self, seq: int, entry: UserSaid) -> None:
        if not self.owes_reply:
            self._begin(seq, entry)
        elif self.calling or self.open_calls or self.failure or self.unheard:
            self.unheard.append((seq, entry))
        else:
            self._take_in(entry)

    def _begin(self, seq: int, entry: UserSaid) -> None:
        # To each of two who speak in one conversation the other is a stranger.
        self.outside = self.outside or self.requester not in ("", entry.author)
        self.turn, self.owes_reply, self.requester = seq, True, entry.author
        self.unattended, self.preapproved = entry.unattended, entry.preapproved
        self.steps = self.resumes = self.empties = self.failures = 0
        self.stopped = self.wrapping = False
        self.mails, self.brought, self.handed = [], None, []
        self.usage, self.cost, self.tools_used, self.files = Usage(), 0.0, [], {}
        self.unknown, self.exits = [], Exits()
        self._take_in(entry)
        messages = self.transcript.messages
        self.began = len(messages) - 1
        while self.began >= 0 and messages[self.began].role != "user":
            self.began -= 1

    def _take_in(self, entry: UserSaid) -> None:
        self.address = entry.address
        self.futile = 0
        self.just_compacted = False  # there may be something to cover again
        if self.made:
            self.made = set()
        if entry.mail:
            self.mails.append(entry.mail)
        self.brought = entry.brought or self.brought
        for message in entry.messages:
            self._note_givers(message)
            self._say(message)

    def _note_givers(self, message: Message) -> None:
        for part in message.parts if message.role != "assistant" else ():
            strange = is_strange(part)
            self.outside = self.outside or strange
            if isinstance(part, Text) and (part.public or (message.role == "user" and not strange)):
                self.sources.add(part.text, public=part.public)

    def _take_in_unheard(self) -> None:
        unheard, self.unheard = self.unheard, []
        for _, entry in unheard:
            self._take_in(entry)

    def _say(self, message: Message) -> None:
        self.transcript.add(message)
        size = self.gauge.estimate(message)
        self.tokens += size
        self.estimated += size

    def _take_answer(self, entry: ModelSaid) -> None:
        self.calling = self.just_compacted = False
        self.steps += 1
        self.resumes = self.failures = 0
        self.outside = self.outside or entry.model == IMPORTED  # whoever made that file may have been a stranger
        self.usage, self.model, self.finish = self.usage + entry.usage, entry.model, entry.finish
        self.cost = None if self.cost is None or entry.cost is None else self.cost + entry.cost
        if entry.usage.input:
            self.gauge.correct(entry.model, entry.usage)
        calls = () if self.wrapping else entry.calls
        if calls:
            self.answer = self.seq
            self.saying, self.handed = entry.text, []
            self.open_calls = dict(enumerate(calls))
            self.tools_used += [call.name for call in calls]
        elif not entry.text.strip():
            self.empties += 1
            return
        self.empties = 0
        self._say(Message("assistant", said(entry.text), calls, "", entry.reasoning, entry.opaque))
        if entry.usage.input:
            self.tokens, self.measured = entry.usage.input + entry.usage.output, True
        if not calls:
            self._end(entry.text)

    def _take_result(self, entry: CallReturned) -> None:
        call = self.open_calls.pop(entry.place)
        if entry.outcome != "abandoned":
            self.resumes = 0
        self._note_exit(call, entry)
        if entry.file and not entry.origin:
            self.results.add(entry.file)
        if entry.outcome == "handed":
            self.handed.append(call)
        if entry.outcome in ("unknown", "abandoned") and entry.place in self.started:
            self.unknown.append(not_known(call))
        self._note_progress(call, entry)
        self._note_files(entry)
        message = Message("tool", (*said(entry.text, entry.origin, entry.public), *entry.media), answers=call.id)
        if entry.origin:
            self._note_givers(message)
        self._say(message)
        if self.open_calls:
            return
        self.started, self.asked, self.verdicts = set(), {}, {}
        self.futile = 0 if self._brought else self.futile + 1
        self._brought = False
        self._end_if_stopped()
        if self.owes_reply and self.handed:
            self._end(self.saying or None)
        elif self.owes_reply:
            self._take_in_unheard()

    def _note_consent(self, entry: Answered) -> None:
        """What a person was shown and has allowed they may as well have said."""
        way = way_out(self.open_calls[entry.place]) if entry.place in self.open_calls else None
        if self.outside and way and entry.verdict == "allowed" and not entry.by.startswith("grant:"):
            self.exits = self.exits.renewed(way, self.sources)
            self.sources.add(way.url or way.query)

    def _note_exit(self, call: ToolCall, entry: CallReturned) -> None:
        """What a person was asked about, and what was not run, is not among what has left unasked."""
        ran = entry.place not in self.asked and entry.outcome not in _NOT_RUN
        if self.outside and ran and (way := way_out(call)):
            self.exits = self.exits.after(way, self.sources)

    def _note_progress(self, call: ToolCall, entry: CallReturned) -> None:
        """A step gets on if one of its calls brings what none has brought in this turn."""
        brought = hash((call.name, call.args, entry.text))
        if entry.outcome == "done" and brought not in self.made:
            self._brought = True
        self.made.update((brought, hash((call.name, call.args))))

    def _note_files(self, entry: CallReturned) -> None:
        for change in entry.changes:  # what was told of it before is not so any more
            self.files.pop(change.path, None)
        for media in (*entry.made, *entry.media):
            self.files[media.name or media.file] = Made(media, self.seq)

    def _end_if_stopped(self) -> None:
        if self.stopped and not self.open_calls:
            self._take_in_unheard()  # what was said before a stop is stopped with it
            self._say(Message("assistant", said(STOPPED)))  # some hosts insist that the two sides take turns
            self._end(None, "stopped")

    def _end(self, text: str | None, reason: str = "", error: str = "") -> None:
        self.finished = Finished(
            *(self.turn, self.seq, text, self.address, tuple(self.mails), reason),
            *(self.model, self.steps, self.usage, self.cost, tuple(self.tools_used), error),
            *(self.finish, tuple(self.handed), tuple(self.files.values()), tuple(self.unknown)),
        )
        self.owes_reply, self.calling, self.failure = False, False, None
        self.undoing, self.began, self.handed, self.files = None, -1, [], {}
        unheard, self.unheard = self.unheard, []
        for seq, entry in unheard:
            self._hear(seq, entry)

    def _begin_to_undo(self, entry: Undoing) -> None:
        """It is no turn: nobody has said anything, and the last turn stays the one that can be undone next."""
        self.undoing, self.undone, self.undo = entry, {}, self.seq
        self.owes_reply, self.requester, self.address = True, entry.by, entry.address
        self.mails = [entry.mail] if entry.mail else []
        self.steps = self.resumes = 0
        self.stopped = False
        self.usage, self.cost, self.tools_used, self.model, self.finish = Usage(), 0.0, [], "", "stop"
        self.files, self.unknown = {}, []
        self._end_if_undone()

    def _tell(self, entry: AgentTold) -> None:
        """It is no turn: nobody has asked. It is the agent's word nevertheless, and delivered like an answer."""
        self.outside = self.outside or entry.outside
        names = "".join(f"\n[{media.name}, kept as {media.file}]" for media in entry.files)
        # Some hosts insist that the two sides take turns.
        self._say(Message("user", said(f"[You were not asked this here: you told it from {entry.sender}.]")))
        self._say(Message("assistant", said(f"{entry.text}{names}")))
        mails = (entry.mail,) if entry.mail else ()
        files = tuple(Made(media, self.seq) for media in entry.files)
        self.finished = Finished(self.seq, self.seq, entry.text, entry.address, mails, files=files)

    def _end_if_undone(self) -> None:
        if self.undoing and len(self.undone) == len(self.undoing.changes):
            turn, self.turn = self.turn, self.undo
            self._end(describe(self.undoing, self.undone))
            self.turn = turn

    def _start_from(self, entry: Compacted) -> None:
        self.summary, self.facts = entry.summary, entry.facts
        self.condensed = bool(entry.summary or entry.facts)
        self.covered = entry.covers[1]
        told = (Message("user", said(rendered(entry.summary, entry.facts))),) if self.condensed else ()
        self.transcript = Transcript((*told, *entry.kept))
        self.gauge.start_again()
        self.tokens = self.estimated = sum(map(self.gauge.estimate, self.transcript.messages))
        self.measured, self.wants_room, self.unheard = False, False, []
        self.just_compacted, self.failure = True, None
        self.resumes = self.empties = self.failures = self.futile = 0  # as if reading had begun here, which it may
        self.stopped = self.calling = self.wrapping = self._brought = False
        self.made = set()
        standing = entry.standing
        self.turn, self.owes_reply, self.steps = standing.turn, standing.owes, standing.steps
        self.requester, self.address, self.mails = standing.requester, standing.address, list(standing.mails)
        self.choice, self.prefix = standing.choice, standing.prefix
        self.outside, self.unattended, self.began = standing.outside, standing.unattended, standing.began
        self.preapproved = standing.preapproved
        self.usage, self.model = standing.usage + entry.usage, standing.model
        known = standing.cost is not None and (entry.cost is not None or not entry.model)
        self.cost = (standing.cost or 0.0) + (entry.cost or 0.0) if known else None
        self.tools_used, self.brought = list(standing.tools_used), standing.brought
        self.files = {made.media.name or made.media.file: made for made in standing.files}
        self.unknown = list(standing.unknown)
        self.exits = standing.exits
        self.sources, self.results = Sources(), set()
        for message in entry.kept:
            if message.role == "user" or any(isinstance(part, Text) and part.origin for part in message.parts):
                self._note_givers(message)
