"""What came of a letter, as whoever wrote it is given it."""

from msgspec import Struct

from .errors import TurnFailed
from .message import Made
from .prompt import Finish, Usage
from .thread import STOPPED, Finished
from .tool import ToolCall
from .unknown import with_unknown


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
        raise TurnFailed(told, finished.reason, finished.error, finished.unknown)
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
