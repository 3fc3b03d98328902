"""What one client is told of the sessions that it watches: each thing once, in its place, and with the client's own id.

Events come from the house as they happen, and the client has read the log up to some entry. What is in both is told
once; what happens while a log is read is held back until that was told.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, assert_never

from ...core.mail import reply_key
from ...core.turn import Finished
from ...core.wording import with_unknown
from ...ports.channel import traits_of
from ...ports.events import (
    AnswerBegan,
    AnswerEnded,
    AnswerGiven,
    AnswerPiece,
    CallMeasured,
    CommandDone,
    ConversationDeleted,
    Event,
    HeartbeatTicked,
    LetterTaken,
    OutcomeUnknown,
    PermissionAsked,
    ScheduleFired,
    SubagentCompleted,
    SubagentProgress,
    SubagentSpawned,
    SummaryBegan,
    SummaryWritten,
    TitleGiven,
    ToolCalled,
    ToolOutput,
    ToolReturned,
    TurnBegan,
    TurnEnded,
    TurnMoved,
    Warned,
)
from ..file_links import links_of
from ..ports import GatewayAgent
from .frames import Where, approval_frame, chunk, draft_frames, event_frame, frame, msg_of
from .history import ReadSoFar
from .hub import Hub

OPEN = 100  # messages of one connection whose turns are not over
HELD = 10_000  # events that wait while a session is read


class PendingReplies:
    """What a client has sent: what it calls the letters whose turns are not over, and which are answered."""

    def __init__(self) -> None:
        self._ids: dict[int, str] = {}
        self._told: dict[int, asyncio.Event] = {}  # set when an event has said how it ended, for whoever waits for that
        self._answered: deque[int] = deque(maxlen=OPEN)  # letters whose turns are over, and whose client knows

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, mail: int) -> bool:
        return mail in self._ids

    def follow(self, mail: int, id: str) -> None:
        """A letter whose answer is awaited."""
        self._ids[mail] = id

    def told(self, mail: int) -> asyncio.Event:
        """Is set when one that is not answered yet was answered by an event."""
        return self._told.setdefault(mail, asyncio.Event())

    def done(self, mail: int) -> str | None:
        """What the client calls a letter that was not answered yet, and is now."""
        if told := self._told.pop(mail, None):
            told.set()
        id = self._ids.pop(mail, None)
        if id is not None:
            self._answered.append(mail)
        return id

    def forget(self) -> None:
        """The client has gone."""
        self._ids.clear()

    def id_of(self, mails: Sequence[int]) -> str | None:
        return next((self._ids[mail] for mail in mails if mail in self._ids), None)

    def were_answered(self, mails: Sequence[int]) -> bool:
        return any(mail in self._answered for mail in mails)


class _Watched:
    """What a client knows of one thread."""

    __slots__ = ("answering", "at", "read")

    def __init__(self) -> None:
        self.read: ReadSoFar | None = None  # of its log
        self.answering: str | None = None  # whose call runs
        self.at: int | None = None  # the position of what was told last


class ClientFeed:
    """`put` takes frames in their order; `lose` parts with a client that would have missed something."""

    def __init__(
        self, agent: GatewayAgent, hub: Hub, pending: PendingReplies, put: Callable[..., None], lose: Callable[[], None]
    ) -> None:
        self._agent = agent
        self._hub = hub
        self._pending = pending
        self._put = put
        self._lose = lose
        self._held: dict[str, list[Event]] = {}  # by session, while its log is read
        self._told: defaultdict[str, _Watched] = defaultdict(_Watched)  # by thread

    def hear(self, session: str, event: Event) -> None:
        if session not in self._held:
            self._show(session, event)
        elif len(self._held[session]) < HELD:
            self._held[session].append(event)
        else:
            self._lose()

    def hold(self, session: str) -> None:
        """Keep what happens there for later, until it is released."""
        self._held[session] = []

    def release(self, session: str, drafted: str = "") -> None:
        """Show what was held; of what is said in a thread whose draft was shown, that has told all of it."""
        for event in self._held.pop(session, ()):
            if event.thread != drafted or not isinstance(event, AnswerBegan | AnswerPiece | AnswerEnded):
                self._show(session, event)

    def forget_held(self, session: str) -> None:
        self._held.pop(session, None)

    def has_missed(self, session: str, thread: str, answered: int) -> bool:
        """Whether an answer has ended while the log was read up to that one: its draft may be gone, and its entry came
        too late."""
        held = self._held.get(session, ())
        ended = [each for each in held if isinstance(each, AnswerEnded) and each.kept and each.thread == thread]
        return any(each.message >= answered for each in ended)

    def has_read(self, thread: str, reading: ReadSoFar) -> None:
        self._told[thread].read = reading

    def has_come_to(self, thread: str, seq: int) -> None:
        self._told[thread].at = seq

    def place(self, session: str, thread: str, head: int) -> Where:
        """The position that this client has been told of, if it watches: the log may already be further, and what
        stands there would be missed by whoever resumed from its end."""
        at = self._told[thread].at
        return Where(session, thread, head if at is None else min(at, head))

    def show_draft(self, session: str, thread: str, answered: int = 0) -> None:
        draft = self._hub.drafts.get(thread)
        if draft is not None and draft.called >= answered:
            self._told[thread].answering = id = self._pending.id_of(draft.mails)
            self._put(*draft_frames(Where(session, thread, draft.called), id, draft))

    def _show(self, session: str, event: Event) -> None:
        """Unless the client knows it already: from the log, or because it was answered before this was heard."""
        thread, seq = event.thread, event.seq
        where, told = Where(session, thread, seq), self._told[thread]
        if told.read is not None and told.read.tells(event):
            if isinstance(event, TurnEnded) and any(mail in self._pending for mail in event.finished.mails):
                self._finish(where, event)
            return
        at = told.at
        if isinstance(event, ScheduleFired | HeartbeatTicked | TurnMoved):  # which have no place in the log
            self._put(event_frame(Where(session, thread, at or 0), event))
            if isinstance(event, TurnMoved) and event.number:
                self._leave(Where(session, thread, at or 0), event)
            return
        if at is None or seq > at:
            told.at = seq
        match event:
            case AnswerPiece():
                self._put(chunk(where, told.answering, event))
            case AnswerBegan(message=message):
                told.answering = self._pending.id_of(event.mails)
                self._put(frame("stream_start", where, id=told.answering, msg=msg_of(thread, message)))
            case AnswerEnded(message=message, kept=kept):
                self._put(frame("stream_end", where, id=told.answering, msg=msg_of(thread, message), kept=kept))
            case TurnEnded():
                # Whoever breaks off here has not been given the answer yet.
                self._put(event_frame(Where(session, thread, seq if at is None else at), event))
                self._finish(where, event)
            case TurnBegan() | CallMeasured() | SummaryBegan() | SummaryWritten() | ToolCalled() | ToolOutput():
                self._put(event_frame(where, event))
            case SubagentSpawned() | SubagentProgress() | SubagentCompleted():
                self._put(event_frame(where, event))
            case ToolReturned() | CommandDone() | Warned() | OutcomeUnknown() | ConversationDeleted():
                self._put(event_frame(where, event))
            case PermissionAsked(approvals=approvals):
                self._put(*(approval_frame(where, each) for each in approvals))
            case LetterTaken() | AnswerGiven():
                pass  # for whoever asked alone, who is told in other frames
            case TitleGiven():
                pass  # it is news of the list
            case _:
                assert_never(event)

    def _leave(self, where: Where, event: TurnMoved) -> None:
        """Nobody waits any more for what goes on in the background: it is told when it is done."""
        self._told[event.thread].answering = None
        for id in [self._pending.done(mail) for mail in event.mails if mail in self._pending]:
            content = f"This goes on in the background as task {event.number}."
            self._put(frame("response", where, id=id, content=content, files=[], unknown=[], task=event.number))

    def _finish(self, where: Where, event: TurnEnded) -> None:
        """The turn is over: each of its letters that came from here is answered, and others' turns are told once."""
        self._told[event.thread].answering = None
        turn = event.finished
        if turn.text is None and not turn.reason:
            return  # it had nothing to tell
        ids: list[str | None] = [self._pending.done(mail) for mail in turn.mails if mail in self._pending]
        if not ids and self._pending.were_answered(turn.mails):
            return
        if ids or traits_of(where.session or "", self._agent.traits).self_delivering:
            self._agent.note_shown(reply_key(event.thread, event.seq))
        for id in ids or [None]:
            self._put(_end(where, id, event.thread, turn))


def _end(where: Where, id: str | None, thread: str, turn: Finished) -> dict[str, Any]:
    if turn.reason:
        content = with_unknown(turn.text or "the turn was stopped", turn.unknown)
        cut = {"cut": turn.cut} if turn.cut else {}
        return frame("error", where, id=id, code=turn.reason, content=content, **cut)
    told = {"files": links_of(thread, turn.files) if turn.files else [], "unknown": turn.unknown}
    return frame("response", where, id=id, content=turn.text or "", **told)
