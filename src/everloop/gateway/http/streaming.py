"""A turn told as server-sent events while it runs: one loop for all doors, and a teller for the shape of each.

A turn may ask a model several times: what it says before it calls a tool is shown as it comes and stays shown. The
answer that counts is the last; whatever of it has not been shown by then follows. What a thread does for other letters
is not shown: somebody else's turn may run in it before ours.
"""

from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Protocol

from aiohttp import web
from msgspec import Struct

from ...ports.events import (
    Answer,
    AnswerBegan,
    AnswerGiven,
    AnswerPiece,
    Event,
    LetterTaken,
    ToolCalled,
    ToolReturned,
    TurnEnded,
)
from ..ports import TurnAgent
from .errors import Refused
from .repeats import Attempt
from .sse import BEAT, Sse
from .turn_errors import explain_turn, note_told


class AnswerDelta(Struct, frozen=True):
    """Something more of what is said in one model call, which `call` names."""

    call: int
    text: str = ""
    reasoning: str = ""


SseEvent = tuple[Any, str]  # what is sent, and as an event of which name


class StreamShape(Protocol):
    """How a door tells a turn."""

    def more(self, piece: AnswerDelta) -> Iterable[SseEvent]: ...

    def work(self, event: ToolCalled | ToolReturned) -> Iterable[SseEvent]:
        """One of everloop's own tools runs, or has run."""
        ...

    def end(self, answer: Answer, missing: AnswerDelta | None) -> Awaitable[Iterable[SseEvent]]:
        """`missing` is what of it has not been shown."""
        ...

    def fail(self, refused: Refused) -> Iterable[SseEvent]:
        """After the answer has begun with a 200, what fails is told inside."""
        ...


class LetterDraft:
    """The draft of the answer to one letter. `ours` says whether what happens now is done for that letter."""

    def __init__(self) -> None:
        self._mail = 0
        self.ours = False
        self._call = 0
        self._text = ""

    def follow(self, event: Event) -> AnswerDelta | None:
        """What an event adds, if anything."""
        if isinstance(event, AnswerPiece):
            return self._add(event) if self.ours else None
        if isinstance(event, LetterTaken):
            self._mail = event.mail
        elif isinstance(event, AnswerBegan):
            self.ours = self._mail in event.mails
        elif isinstance(event, TurnEnded):
            self.ours = False
        return None

    def _add(self, piece: AnswerPiece) -> AnswerDelta | None:
        if not piece.text and not piece.reasoning:
            return None
        if piece.seq != self._call:
            self._call, self._text = piece.seq, ""
        self._text += piece.text
        return AnswerDelta(piece.seq, piece.text, piece.reasoning)

    def complete(self, answer: Answer) -> AnswerDelta | None:
        """What is missing of the answer when it is there: usually nothing."""
        told = answer.told
        if told == self._text or not told:
            return None
        if self._text and told.startswith(self._text):
            return AnswerDelta(self._call, told[len(self._text) :])
        return AnswerDelta(-1, told)


async def stream(
    agent: TurnAgent, request: web.Request, attempt: Attempt, teller: StreamShape, headers: Mapping[str, str] = {}
) -> web.StreamResponse:
    """Raises Refused for what fails before anything was sent."""
    sse = Sse(request, headers)
    try:
        await _tell(agent, attempt, teller, sse)
    except ConnectionError:
        pass  # whoever asked has gone; the turn goes on without them
    except Exception as error:
        refused = await explain_turn(agent.store, attempt.inbound, error)
        note_told(agent, request, error)
        if not sse.begun:
            raise refused from error
        await sse.send_all(teller.fail(refused))
    return sse.response


async def _tell(agent: TurnAgent, attempt: Attempt, teller: StreamShape, sse: Sse) -> None:
    draft = LetterDraft()
    async for events in agent.watch(attempt.inbound, attempt.again, BEAT, attempt.admit):
        if not events:
            await sse.beat()
            continue
        told: list[SseEvent] = []
        for event in events:
            if piece := draft.follow(event):
                told += teller.more(piece)
            elif isinstance(event, AnswerGiven):
                await sse.send_last([*told, *await teller.end(event.answer, draft.complete(event.answer))])
                told = []
            elif draft.ours and isinstance(event, ToolCalled | ToolReturned):
                told += teller.work(event)
        if told:
            await sse.send_all(told)
