"""What a conversation knows of one turn; the next begins with a new one."""

from msgspec import Struct

from .exits import Exits
from .log import CallReturned, Compacted, ModelFailed, ModelSaid, Standing, TakenBack, Undoing, UserSaid
from .message import Made
from .overrun import Account, Overrun
from .personas import PersonaWish
from .prompt import Brought, Finish, Terms, Usage
from .tool import ToolCall


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
    cut: str = ""  # what had been said of an answer that was stopped or broke off
    source: str = ""  # what of the house began it


class UndoProgress(Struct, gc=False):
    """A turn that is being undone: what was asked for, the seq of that, and by its place what has been done."""

    entry: Undoing
    seq: int
    done: dict[int, TakenBack] = {}


class Turn:
    """`seq` is the entry that began it, which is its id, and `requester` whose it is. `principal` is whose files and
    workspace it works with: the requester, or the group in which they speak. `payer` is who pays for it: the requester,
    or who wanted somebody's words to be answered again, or whose bot has brought them."""

    __slots__ = (
        "began", "brought", "calling", "calls_left", "cost", "cut", "empties", "exits", "failure", "failures", "files",
        "finish", "futile", "gets_on", "handed", "made", "mails", "model", "overruns", "payer", "preapproved",
        "principal", "requester", "resumes", "rounds", "saying", "seq", "source", "steps", "stopped", "terms",
        "tools_used", "unattended", "unknown", "usage", "wrapping",
    )  # fmt: skip

    def __init__(self, seq: int = 0, requester: str = "", principal: str = "", terms: Terms | None = None) -> None:
        self.seq = seq
        self.requester = requester
        self.principal = principal or requester
        self.payer = requester
        self.overruns: tuple[Account, ...] = ()  # in which somebody lets it go beyond
        self.calls_left = 0  # that it may make so
        self.rounds = 0  # tasks that have reported, in a row
        self.terms = terms
        self.source = ""  # what of the house began it; "": the requester
        self.unattended = False
        self.preapproved = False
        self.mails: list[int] = []  # the letters that it answers
        self.steps = 0
        self.resumes = 0
        self.empties = 0
        self.failures = 0
        self.failure: ModelFailed | None = None
        self.cut: ModelFailed | None = None  # the last of its answers that broke off in the middle
        self.stopped = False
        self.calling = False  # a model is being asked
        self.wrapping = False  # for the last time
        self.began = -1  # where its first message stands in the transcript
        self.brought: Brought | None = None  # what a client has brought along for it
        self.handed: list[ToolCall] = []  # calls that the client is to run
        self.saying = ""  # the text of the answer that the open calls stand in
        self.usage = Usage()
        self.cost: float | None = 0.0
        self.model = ""
        self.finish: Finish = "stop"
        self.tools_used: list[str] = []
        self.files: dict[str, Made] = {}  # that came of it, by name
        self.unknown: list[str] = []  # what is to be told of its calls whose outcome nobody knows
        self.exits = Exits()  # what has left in it of what only strangers gave
        self.made: set[int] = set()  # its calls, and what came of them
        self.futile = 0  # steps in a row that have brought nothing new
        self.gets_on = False  # the open calls have brought something new

    @classmethod
    def begun_by(cls, entry: UserSaid, seq: int, terms: Terms | None = None) -> "Turn":
        """`terms` are those of the turn before."""
        turn = cls(seq, entry.author, entry.principal, entry.terms.within(terms) if entry.terms else terms)
        turn.unattended, turn.preapproved, turn.source = entry.unattended, entry.preapproved, entry.source
        turn.payer, turn.rounds = entry.payer or entry.author, entry.rounds
        turn.exits = entry.task.exits if entry.terms and entry.task else turn.exits
        return turn

    @classmethod
    def resumed_from(cls, entry: Compacted) -> "Turn":
        """As it stood at a compaction, with what that has cost. What was tried before is tried anew."""
        standing = entry.standing
        turn = cls(standing.turn, standing.requester, standing.principal, standing.terms)
        turn.unattended, turn.preapproved, turn.began = standing.unattended, standing.preapproved, standing.began
        turn.source, turn.payer = standing.source, standing.payer or standing.requester
        turn.overruns, turn.calls_left, turn.rounds = standing.overruns, standing.calls_left, standing.rounds
        turn.mails, turn.steps, turn.brought = list(standing.mails), standing.steps, standing.brought
        turn.usage, turn.model = standing.usage + entry.usage, standing.model
        known = standing.cost is not None and (entry.cost is not None or not entry.model)
        turn.cost = (standing.cost or 0.0) + (entry.cost or 0.0) if known else None
        turn.tools_used, turn.unknown, turn.exits = list(standing.tools_used), list(standing.unknown), standing.exits
        turn.files = {made.media.name or made.media.file: made for made in standing.files}
        return turn

    def standing(
        self, *, owes: bool, address: str, choice: str, prefix: str, outside: bool, persona: PersonaWish, server: str
    ) -> Standing:
        """Its stored form, with what the thread knows beside it."""
        return Standing(
            turn=self.seq,
            owes=owes,
            requester=self.requester,
            address=address,
            steps=self.steps,
            mails=tuple(self.mails),
            choice=choice,
            prefix=prefix,
            outside=outside,
            unattended=self.unattended,
            began=self.began,
            usage=self.usage,
            cost=self.cost,
            model=self.model,
            tools_used=tuple(self.tools_used),
            brought=self.brought,
            files=tuple(self.files.values()),
            unknown=tuple(self.unknown),
            exits=self.exits,
            preapproved=self.preapproved,
            principal=self.principal if self.principal != self.requester else "",
            terms=self.terms,
            source=self.source,
            persona=persona.name,
            persona_by=persona.by,
            server=server,
            payer=self.payer if self.payer != self.requester else "",
            overruns=self.overruns,
            calls_left=self.calls_left,
            rounds=self.rounds,
        )

    def let_through(self, overrun: Overrun) -> None:
        """Somebody has allowed it to go beyond a budget. An earlier yes, which may have been another's to say, holds as
        long as it would have, and is asked for again then; the calls of one that is used up bring nothing back."""
        before = self.overruns if self.calls_left else ()
        self.calls_left = min(overrun.calls, self.calls_left) if {*before} - {*overrun.accounts} else overrun.calls
        self.overruns = tuple(dict.fromkeys((*before, *overrun.accounts)))

    def finished(
        self, turn: int, *, seq: int, text: str | None, address: str, reason: str, error: str, cut: str
    ) -> Finished:
        """How it is told when it is over, at the entry `seq`; by the id of another, if this one has undone that."""
        return Finished(
            turn=turn,
            seq=seq,
            text=text,
            address=address,
            mails=tuple(self.mails),
            reason=reason,
            model=self.model,
            steps=self.steps,
            usage=self.usage,
            cost=self.cost,
            tools_used=tuple(self.tools_used),
            error=error,
            finish=self.finish,
            calls=tuple(self.handed),
            files=tuple(self.files.values()),
            unknown=tuple(self.unknown),
            cut=cut,
            source=self.source,
        )

    def count(self, entry: ModelSaid) -> None:
        """A model has answered."""
        self.calling = False
        self.steps += 1
        self.resumes = self.failures = 0
        self.cut = None
        self.usage, self.model, self.finish = self.usage + entry.usage, entry.model, entry.finish
        self.cost = None if self.cost is None or entry.cost is None else self.cost + entry.cost

    def take(self, result: CallReturned, call: ToolCall, seq: int) -> None:
        """A call has returned. A step gets on if one of its calls brings what none has brought in this turn."""
        brought = hash((call.name, call.args, result.text))
        if result.outcome == "done" and brought not in self.made:
            self.gets_on = True
        self.made.update((brought, hash((call.name, call.args))))
        for change in result.changes:  # what was told of it before is not so any more
            self.files.pop(change.path, None)
        for media in (*result.made, *result.media):
            self.files[media.name or media.file] = Made(media, seq)

    def end(self) -> None:
        """What is left of it is who it was for and what it took."""
        self.calling, self.failure, self.began = False, None, -1
        self.handed, self.files = [], {}
