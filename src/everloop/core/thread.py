"""Where a conversation stands: a fold over its entries, worked out from them and from nothing else."""

from collections.abc import Iterable
from typing import assert_never

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
    PersonaChosen,
    Removed,
    Resumed,
    Standing,
    Stopped,
    TakenBack,
    Undoing,
    UserSaid,
    Verdict,
)
from .message import Made, Message, Text, last_said, said, said_in_turn
from .overrun import OVERRUN
from .people import OWNER, is_chat
from .personas import PersonaWish
from .prompt import Transcript
from .speakers import in_group, unheaded
from .strangers import Moment, Strangers
from .tool import ToolCall
from .turn import Finished, Turn, UndoProgress
from .wording import cut_short, describe, not_known, rendered

STOPPED = "operation cancelled by user"
_NOT_RUN = ("denied", "repeated", "handed")


class Thread:
    """A fold: `add` each entry in order. `seq` is the position of the last entry taken in."""

    __slots__ = (
        "address", "answer", "asked", "choice", "condensed", "covered", "estimated", "facts", "finished", "gauge",
        "id", "just_compacted", "measured", "open_calls", "owes_reply", "persona", "prefix", "results", "seq",
        "server", "started", "strangers", "summary", "tokens", "transcript", "turn", "undoing", "unheard", "verdicts",
        "wants_room",
    )  # fmt: skip

    def __init__(self, id: str = "", seq: int = 0) -> None:
        self.id = id
        self.seq = seq
        self.transcript = Transcript()
        self.turn = Turn()  # that runs, or that was the last
        self.owes_reply = False
        self.address = ""
        self.just_compacted = False
        self.wants_room = ""  # who has asked for a summary, and pays for it
        self.summary = ""
        self.facts: tuple[str, ...] = ()
        self.condensed = False  # whether the transcript begins with a summary
        self.covered = 0  # the last entry that it stands for
        self.answer = 0  # the seq of the answer that the open calls stand in
        self.open_calls: dict[int, ToolCall] = {}
        self.started: dict[int, bool] = {}  # the places of calls, and whether a task works at them
        self.asked: dict[int, Asked] = {}
        self.verdicts: dict[int, Verdict] = {}
        self.unheard: list[tuple[int, UserSaid]] = []
        self.tokens = 0
        self.measured = False  # whether the host has counted them, with all that stands before the conversation
        self.estimated = 0  # what we think the conversation alone has
        self.choice = ""  # the model that someone has chosen for this conversation
        self.persona = PersonaWish()  # what someone has chosen for this conversation
        self.server = ""  # what the chat belongs to
        self.prefix = ""  # the fingerprint of what stood before the conversation at the last call
        self.gauge = Gauge()
        self.strangers = Strangers()  # what they, and people, have given
        self.results: set[str] = set()  # whole results of tools that hold no stranger's words
        self.undoing: UndoProgress | None = None
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
                self.turn.calling, self.turn.wrapping, self.turn.failure = True, entry.wrap, None
                if self.turn.calls_left:
                    self.turn.calls_left -= 1
                self.prefix = entry.prefix or self.prefix
            case ModelSaid():
                self._take_answer(entry)
            case ModelFailed():
                self.turn.calling, self.turn.failure = False, entry
                self.turn.failures += 1
                self.turn.cut = entry if entry.cut else self.turn.cut
            case CallStarted():
                self.started[entry.place] = entry.waits
            case CallReturned():
                self._take_result(entry)
            case Asked():
                self.asked[entry.place] = entry
            case Answered(place=place) if place == OVERRUN:
                self._take_overrun(entry)
            case Answered():
                self.verdicts[entry.place] = entry.verdict
                call = self.open_calls.get(entry.place)
                self.turn.exits = self.strangers.after_answer(self.turn.exits, call, entry)
            case ModelChosen():
                self.choice = entry.model
            case PersonaChosen():
                self.persona = PersonaWish(entry.persona, entry.by)
            case Stopped():
                self.wants_room = ""
                if self.owes_reply:
                    self.turn.stopped, self.turn.calling = True, False
                    self._end_if_stopped(entry.text)
            case Resumed():
                self.turn.calling = False
                self.turn.resumes += 1
            case GaveUp():
                self._say(Message("assistant", said(cut_short(entry.cut, entry.text))))
                self._end(entry.text, entry.reason, entry.error, cut=entry.cut)
            case Compacted():
                self._start_from(entry)
            case CompactionAsked():
                self.wants_room = entry.payer or entry.by or OWNER
            case Undoing():
                self._begin_to_undo(entry)
            case TakenBack():
                self._take_back(entry)
            case AgentTold():
                self._tell(entry)
            case Removed():
                pass
            case _:
                assert_never(entry)

    @property
    def rests(self) -> bool:
        """Whether there is nothing to do until someone speaks."""
        return not (self.owes_reply or self.open_calls or bool(self.wants_room))

    @property
    def is_group(self) -> bool:
        """Whether several people may speak here."""
        return is_chat(self.turn.principal)

    @property
    def pending(self) -> list[int]:
        """The places of calls that wait for a person's answer, or that of asking a model beyond a budget."""
        asked = (*self.open_calls, OVERRUN)
        return [place for place in asked if place in self.asked and place not in self.verdicts]

    @property
    def awaited(self) -> list[int]:
        """The places of calls at which tasks work."""
        return [place for place, waits in self.started.items() if waits and place in self.open_calls]

    @property
    def outside(self) -> bool:
        """Whether what strangers wrote has been read in it."""
        return self.strangers.outside

    @property
    def standing(self) -> Standing:
        return self.turn.standing(
            owes=self.owes_reply,
            address=self.address,
            choice=self.choice,
            prefix=self.prefix,
            outside=self.outside,
            persona=self.persona,
            server=self.server,
        )

    @property
    def model_name(self) -> str:
        """The name of the model that is to answer; "" is the one of the settings."""
        return (self.turn.brought and self.turn.brought.model) or self.choice

    @property
    def is_bare(self) -> bool:
        """Whether the model that answers is shown nothing of ours, and so has nothing of ours to call."""
        return self.turn.brought is not None and self.turn.brought.bare

    def offers(self, name: str) -> bool:
        """Whether the client has brought a tool of this name, and runs it itself."""
        return self.turn.brought is not None and self.turn.brought.offers(name)

    def said_now(self) -> list[str]:
        """What people have said in the turn that runs."""
        messages = self.transcript.messages
        return [messages[at].text for at in said_in_turn(messages, self.turn.began)]

    def before(self, place: int) -> Moment:
        """As the call at this place finds it."""
        return Moment(self, place)

    def was_made(self, call: ToolCall) -> bool:
        """Whether this very call has been made in this turn."""
        return hash((call.name, call.args)) in self.turn.made

    def _hear(self, seq: int, entry: UserSaid) -> None:
        if not self.owes_reply:
            self._begin(seq, entry)
        elif self.turn.calling or self.open_calls or self.turn.failure or self.unheard:
            self.unheard.append((seq, entry))
        else:
            self._take_in(entry)

    def _begin(self, seq: int, entry: UserSaid) -> None:
        # To each of two who speak here the other is a stranger, as are those who have filled the memory of a group.
        others = is_chat(entry.principal) or self.turn.requester not in ("", entry.author)
        self.strangers.outside = self.outside or others or bool(entry.terms and entry.task and entry.task.outside)
        self.turn, self.owes_reply = Turn.begun_by(entry, seq, self.turn.terms), True
        self._take_in(entry)
        self.turn.began = last_said(self.transcript.messages)

    def _take_in(self, entry: UserSaid) -> None:
        self.address, self.server = entry.address, entry.server or self.server
        self.turn.futile = 0
        self.just_compacted = False  # there may be something to cover again
        if self.turn.made:
            self.turn.made = set()
        if entry.mail:
            self.turn.mails.append(entry.mail)
        self.turn.brought = entry.brought or self.turn.brought
        for message in entry.messages:
            self.strangers.hear(message, gives=not (entry.source or (entry.task and entry.task.outside)))
            self._say(message)

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
        turn = self.turn
        turn.count(entry)
        self.just_compacted = False
        if entry.model == IMPORTED:
            self.strangers.outside = True  # whoever made that file may have been a stranger
        if entry.usage.input:
            self.gauge.correct(entry.model, entry.usage)
        calls = () if turn.wrapping else entry.calls
        if calls:
            self.answer = self.seq
            turn.saying, turn.handed = entry.text, []
            self.open_calls = dict(enumerate(calls))
            turn.tools_used += [call.name for call in calls]
        elif not entry.text.strip():
            turn.empties += 1
            return
        turn.empties = 0
        self._say(Message("assistant", said(entry.text), calls, "", entry.reasoning, entry.opaque))
        if entry.usage.input:
            self.tokens, self.measured = entry.usage.input + entry.usage.output, True
        if not calls:
            self._end(entry.text)

    def _take_result(self, entry: CallReturned) -> None:
        call = self.open_calls.pop(entry.place)
        if entry.outcome != "abandoned":
            self.turn.resumes = 0
        if entry.place not in self.asked and entry.outcome not in _NOT_RUN:
            self.turn.exits = self.strangers.after_call(self.turn.exits, call)
        if entry.file and not entry.origin:
            self.results.add(entry.file)
        if entry.outcome == "handed":
            self.turn.handed.append(call)
        if entry.outcome in ("unknown", "abandoned") and entry.place in self.started:
            self.turn.unknown.append(not_known(call))
        self.turn.take(entry, call, self.seq)
        message = Message("tool", (*said(entry.text, entry.origin, entry.public), *entry.media), answers=call.id)
        if entry.origin:
            self.strangers.hear(message)
        self._say(in_group(message) if self.is_group else message)
        if self.open_calls:
            return
        self.started, self.asked, self.verdicts = {}, {}, {}
        self.turn.futile = 0 if self.turn.gets_on else self.turn.futile + 1
        self.turn.gets_on = False
        self._end_if_stopped()
        if self.owes_reply and self.turn.handed:
            self._end(self.turn.saying or None)
        elif self.owes_reply:
            self._take_in_unheard()

    def _take_overrun(self, entry: Answered) -> None:
        """A yes is for this turn, and what was asked is answered with it; a no ends the turn."""
        asked = self.asked.get(OVERRUN)
        if asked is None or asked.overrun is None or entry.verdict != "allowed":
            self.verdicts[OVERRUN] = entry.verdict
            return
        del self.asked[OVERRUN]
        self.turn.let_through(asked.overrun)

    def _end_if_stopped(self, cut: str = "") -> None:
        """`cut` is what had been said of the answer."""
        if self.turn.stopped and not self.open_calls:
            self._take_in_unheard()  # what was said before a stop is stopped with it
            # Some hosts insist that the two sides take turns.
            self._say(Message("assistant", said(cut_short(cut, STOPPED))))
            self._end(None, "stopped", cut=cut)

    def _end(self, text: str | None, reason: str = "", error: str = "", turn: int = 0, cut: str = "") -> None:
        self.finished = self.turn.finished(
            turn or self.turn.seq, seq=self.seq, text=text, address=self.address, reason=reason, error=error, cut=cut
        )
        self.owes_reply, self.undoing = False, None
        if OVERRUN in self.asked:
            self.asked, self.verdicts = {}, {}
        self.turn.end()
        unheard, self.unheard = self.unheard, []
        for seq, entry in unheard:
            self._hear(seq, entry)

    def _begin_to_undo(self, entry: Undoing) -> None:
        """It is no turn: nobody has said anything, and the last turn stays the one that can be undone next."""
        self.undoing = UndoProgress(entry, self.seq)
        terms = entry.terms.within(self.turn.terms) if entry.terms else self.turn.terms
        self.turn = Turn(self.turn.seq, entry.by, entry.whose, terms)
        self.owes_reply, self.address = True, entry.address
        self.turn.mails = [entry.mail] if entry.mail else []
        self._end_if_undone()

    def _take_back(self, entry: TakenBack) -> None:
        assert self.undoing is not None
        self.undoing.done[entry.place] = entry
        self.turn.resumes = 0
        self._end_if_undone()

    def _tell(self, entry: AgentTold) -> None:
        """It is no turn: nobody has asked. It is the agent's word nevertheless, and delivered like an answer."""
        self.strangers.outside = self.outside or entry.outside
        names = "".join(f"\n[{media.name}, kept as {media.file}]" for media in entry.files)
        # Some hosts insist that the two sides take turns.
        self._say(Message("user", said(f"[You were not asked this here: you told it from {unheaded(entry.sender)}.]")))
        self._say(Message("assistant", said(f"{entry.text}{names}")))
        mails = (entry.mail,) if entry.mail else ()
        files = tuple(Made(media, self.seq) for media in entry.files)
        self.finished = Finished(self.seq, self.seq, entry.text, entry.address, mails, files=files)

    def _end_if_undone(self) -> None:
        undo = self.undoing
        if undo and len(undo.done) == len(undo.entry.changes):
            self._end(describe(undo.entry, undo.done), turn=undo.seq)

    def _start_from(self, entry: Compacted) -> None:
        """As if reading had begun here, which it may."""
        self.summary, self.facts = entry.summary, entry.facts
        self.condensed = bool(entry.summary or entry.facts)
        self.covered = entry.covers[1]
        told = [Message("user", said(rendered(entry.summary, entry.facts)))] if self.condensed else []
        if is_chat(entry.standing.principal):
            told = [*map(in_group, told)]
        self.transcript = Transcript((*told, *entry.kept))
        self.gauge.start_again()
        self.tokens = self.estimated = sum(map(self.gauge.estimate, self.transcript.messages))
        self.measured, self.wants_room, self.unheard = False, "", []
        self.just_compacted = True
        standing = entry.standing
        self.turn, self.owes_reply, self.address = Turn.resumed_from(entry), standing.owes, standing.address
        self.choice, self.prefix, self.server = standing.choice, standing.prefix, standing.server
        self.persona = PersonaWish(standing.persona, standing.persona_by)
        self.strangers, self.results = Strangers(standing.outside), set()
        for message in entry.kept:
            if message.role == "user" or any(isinstance(part, Text) and part.origin for part in message.parts):
                self.strangers.hear(message)
