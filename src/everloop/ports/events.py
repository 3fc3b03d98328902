"""What happens, as clients are shown it: a closed union, so that whoever shows it has a branch for each.

`seq` is the durable position in the log: whoever loses the connection goes on from there without a gap.
"""

from functools import cache
from typing import Any, ClassVar

from msgspec import Struct, json

from ..core.message import Made
from ..core.prompt import Finish, Usage
from ..core.tool import ToolCall
from ..core.turn import Finished
from ..core.wording import with_unknown
from ..errors import TurnFailed
from .permission import Approval

STOPPED = "stopped; what was said and done so far stays"  # by a person, which is no failure
_PLACE = {"thread", "seq", "n"}
_JSON = json.Encoder(enc_hook=str)


class _Event(Struct, frozen=True, gc=False):
    name: ClassVar[str]

    thread: str
    seq: int

    @property
    def data(self) -> dict[str, Any]:
        """What it tells, by the names that docs/reference.md lists."""
        return {name: getattr(self, field) for name, field in _told_by(type(self))}

    def json(self) -> str:
        """All of it as one line of JSON, for a program that passes events on."""
        n = getattr(self, "n", 0)
        told = {"name": self.name, "thread": self.thread, "seq": self.seq, "n": n, "data": self.data}
        return _JSON.encode(told).decode()


@cache
def _told_by(kind: type[_Event]) -> list[tuple[str, str]]:
    """The names of what events of this kind tell, and the fields that have it."""
    fields = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    return [(name, field) for name, field in fields if field not in _PLACE]


class LetterTaken(_Event, frozen=True, gc=False):
    """A message is committed; `mail` is its number."""

    name = "taken"
    mail: int


class TurnBegan(_Event, frozen=True, gc=False):
    name = "thinking_started"
    turn: int
    mails: tuple[int, ...]


class AnswerBegan(_Event, frozen=True, gc=False):
    """A model is asked; `message` names the call."""

    name = "stream_start"
    message: int
    mails: tuple[int, ...] = ()


class AnswerPiece(_Event, frozen=True, gc=False):
    """More of a draft; or what is going on (`progress`), or what a person should know (`notice`). `seq` names the call,
    and `n` counts its pieces."""

    name = "stream_chunk"
    n: int
    text: str = ""
    reasoning: str = ""
    progress: str = ""
    notice: str = ""


class AnswerEnded(_Event, frozen=True, gc=False):
    """The answer is whole; or, not `kept`, the draft is withdrawn."""

    name = "stream_end"
    message: int
    kept: bool


class CallMeasured(_Event, frozen=True, gc=False):
    """What a model call took. `cached` and `full` are shares: of its input, and of what the model can read."""

    name = "metrics"
    model: str
    usage: Usage
    cost: float | None
    seconds: float
    cached: float
    prefix_changed: tuple[str, ...]
    full: float


class SummaryBegan(_Event, frozen=True, gc=False):
    name = "compacting"
    tokens: int


class SummaryWritten(_Event, frozen=True, gc=False):
    """A summary stands for what was said before; tokens of the prompt before and after."""

    name = "compacted"
    before: int
    after: int
    model: str


class ToolCalled(_Event, frozen=True, gc=False, rename={"tool": "name"}):
    name = "tool_call"
    tool: str
    args: str
    place: int


class ToolOutput(_Event, frozen=True, gc=False):
    """What a running command says; `asks`: it is a question to a person."""

    name = "tool_output"
    call: str
    text: str
    asks: bool = False


class ToolReturned(_Event, frozen=True, gc=False, rename={"tool": "name"}):
    name = "tool_result"
    tool: str
    outcome: str
    text: str


class PermissionAsked(_Event, frozen=True, gc=False):
    name = "approval_asked"
    approvals: tuple[Approval, ...]

    @property
    def is_of_files(self) -> bool:
        """It is about what a turn has left behind, and another may be answered meanwhile."""
        return all(each.kind == "file" for each in self.approvals)


class CommandDone(_Event, frozen=True, gc=False, rename={"command": "name"}):
    name = "command"
    command: str
    address: str = ""


class Warned(_Event, frozen=True, gc=False):
    """The turn is given up; or, with the reason `window`, the conversation fills most of what the model can read,
    or, with `spent`, most of what somebody may spend is gone."""

    name = "warning"
    reason: str
    text: str
    error: str = ""


class OutcomeUnknown(_Event, frozen=True, gc=False):
    """A sentence for each call of a turn of which nobody knows whether it took effect."""

    name = "outcome_unknown"
    turn: int
    mails: tuple[int, ...]
    calls: tuple[str, ...]


class TitleGiven(_Event, frozen=True, gc=False):
    """A conversation has been given a title by a model; it is no entry of the log, and its `seq` is 0."""

    name = "titled"
    title: str


class SubagentSpawned(_Event, frozen=True, gc=False):
    """A task was handed on, by the call `task` (thread:answer:place); `agent` is the profile that works at it."""

    name = "spawned"
    task: str
    title: str
    agent: str


class SubagentProgress(_Event, frozen=True, gc=False):
    """Somebody works at a task of this conversation: `doing` is the tool that it calls. Its `seq` is 0."""

    name = "progress"
    task: str
    steps: int
    doing: str


class SubagentCompleted(_Event, frozen=True, gc=False):
    """A task of this conversation is over; `reason` says why, where it was not done. Its `seq` is 0."""

    name = "completed"
    task: str
    reason: str
    steps: int
    cost: float | None


class ScheduleFired(_Event, frozen=True, gc=False):
    """A schedule has done what it does in this conversation: begun a turn, told something, run a command. It is no
    entry of the log, and its `seq` is 0."""

    name = "executed"
    schedule: str
    title: str
    state: str
    result: str = ""


class HeartbeatTicked(_Event, frozen=True, gc=False):
    """The heartbeat of whose conversation this is was looked at: what was decided, and why. It is told where it would
    answer, is no entry of the log, and its `seq` is 0."""

    name = "tick"
    decided: str
    why: str


class TurnEnded(_Event, frozen=True, gc=False):
    """It is over, and committed."""

    name = "thinking_finished"
    finished: Finished

    @property
    def data(self) -> dict[str, Any]:
        turn = self.finished
        return {
            "turn": turn.turn,
            "content": turn.text or "",
            "reason": turn.reason,
            "error": turn.error,
            "mails": turn.mails,
            "address": turn.address,
            "files": turn.files,
            "unknown": turn.unknown,
        }


class Answer(Struct, frozen=True):
    """What `ask` returns. `turn` is `thread:seq`, or empty when a command was answered at once; `cost` is in US
    dollars, None when a price is not known."""

    content: str
    session: str
    turn: str
    model: str = ""
    steps: int = 0
    tools_used: tuple[str, ...] = ()
    usage: Usage = Usage()
    cost: float | None = None
    finish: Finish = "stop"  # `length`: the answer was cut off at max_tokens
    calls: tuple[ToolCall, ...] = ()  # of tools that the client brought and runs itself
    files: tuple[Made, ...] = ()  # that its tools have made or shown
    unknown: tuple[str, ...] = ()  # a sentence for each call of which nobody knows whether it took effect

    @property
    def told(self) -> str:
        """The content, and what nobody knows, for whoever has room for one text alone."""
        return with_unknown(self.content, self.unknown)


def answer_of(finished: Finished, thread: str, session: str) -> Answer:
    """Raises TurnFailed when the turn has ended without an answer."""
    if finished.reason:
        told = with_unknown(finished.text or STOPPED, finished.unknown)
        raise TurnFailed(told, finished.reason, finished.error, finished.unknown, finished.cut)
    return Answer(
        content=finished.text or "",
        session=session,
        turn=f"{thread}:{finished.turn}",
        model=finished.model,
        steps=finished.steps,
        tools_used=finished.tools_used,
        usage=finished.usage,
        cost=finished.cost,
        finish=finished.finish,
        calls=finished.calls,
        files=finished.files,
        unknown=finished.unknown,
    )


class TurnMoved(_Event, frozen=True, gc=False):
    """The conversation has gone to the background of its chat, as the task `number`, or is back from there (0): the
    session is at `front` now. `mails` are the letters whose turns are not over. It is `owner`'s."""

    name = "turn_moved"
    number: int
    front: str
    session: str
    owner: str
    mails: tuple[int, ...] = ()


class ConversationDeleted(_Event, frozen=True, gc=False):
    """It is gone for good. It was `owner`'s, in this session, which nobody can look up any more."""

    name = "deleted"
    session: str
    owner: str


class AnswerGiven(_Event, frozen=True, gc=False):
    """The last event of a stream: what `ask` would return."""

    name = "answer"
    answer: Answer


Event = (
    LetterTaken
    | TurnBegan
    | AnswerBegan
    | AnswerPiece
    | AnswerEnded
    | CallMeasured
    | SummaryBegan
    | SummaryWritten
    | ToolCalled
    | ToolOutput
    | ToolReturned
    | PermissionAsked
    | CommandDone
    | Warned
    | OutcomeUnknown
    | TitleGiven
    | SubagentSpawned
    | SubagentProgress
    | SubagentCompleted
    | ScheduleFired
    | HeartbeatTicked
    | TurnEnded
    | TurnMoved
    | ConversationDeleted
    | AnswerGiven
)


class Draft:
    """Of the call that `called` names, for the letters `mails`. `kept` says what became of it, once it has ended."""

    __slots__ = ("_reasoning", "_text", "called", "kept", "last", "mails")

    def __init__(self, began: AnswerBegan) -> None:
        self.called = began.message
        self.mails = began.mails
        self.kept: bool | None = None
        self.last: AnswerPiece | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []

    def add(self, piece: AnswerPiece) -> None:
        self.last = piece
        self._text.append(piece.text)
        self._reasoning.append(piece.reasoning)

    @property
    def whole(self) -> AnswerPiece | None:
        """All pieces as one, for whoever comes in the middle; None when nothing has been said."""
        last = self.last
        if last is None:
            return None
        return AnswerPiece(
            thread=last.thread,
            seq=last.seq,
            n=last.n,
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            progress=last.progress,
            notice=last.notice,
        )
