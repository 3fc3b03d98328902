"""What happens in the house, passed on to those who watch a session.

The bus speaks of threads and people watch sessions, whose thread may change; so one reader hears all and looks up
whose it is. It also keeps, for each running model call, what has been said so far: whoever comes in the middle is given
that as one piece.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from ...core.log import MANY
from ...errors import StoreError
from ...ports.events import (
    AnswerBegan,
    AnswerEnded,
    AnswerPiece,
    ConversationDeleted,
    Draft,
    Event,
    PermissionAsked,
    TitleGiven,
    TurnBegan,
    TurnEnded,
    TurnMoved,
)
from ...ports.tasks import background_number
from ..metrics import COUNTED, Metrics
from ..ports import GatewayAgent

_SESSIONS = 10_000
BEHIND = 2.0  # seconds for which a thread is taken to be in the background: another process may take it back
NEWS = (TurnBegan, TurnEnded, PermissionAsked, TitleGiven, ConversationDeleted)


_OF_A_DRAFT = (AnswerPiece, AnswerBegan, AnswerEnded, PermissionAsked, TurnEnded, ConversationDeleted)


class Watcher(Protocol):
    @property
    def user(self) -> str: ...

    @property
    def answers(self) -> bool:
        """Whether they may answer what others are not to allow themselves."""
        ...

    def hear(self, session: str, event: Event) -> None: ...

    def hear_news(self, session: str, event: Event) -> None:
        """Something that changes the list of conversations, in any session of this user."""
        ...

    def lose(self) -> None:
        """Something was missed: begin again from the log."""
        ...


class Hub:
    """Use `async with hub.open():`; then `watch` and `leave`."""

    def __init__(self, agent: GatewayAgent, metrics: Metrics) -> None:
        self._agent = agent
        self._metrics = metrics
        self._watchers: dict[str, set[Watcher]] = {}
        self._followers: set[Watcher] = set()  # who wants to know of all sessions of their user
        self._sessions: OrderedDict[str, tuple[str, str]] = OrderedDict()  # of threads, and whose they are
        self._behind: dict[str, tuple[float, str]] = {}  # threads in the background: until when, and whose
        self.drafts: dict[str, Draft] = {}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        listening = asyncio.Event()
        task = self._agent.supervise("hub", lambda: self._listen(listening))
        try:
            await listening.wait()  # nothing may happen unheard
            yield
        finally:
            await task.end()

    def watch(self, session: str, watcher: Watcher) -> None:
        self._watchers.setdefault(session, set()).add(watcher)

    def leave(self, session: str, watcher: Watcher) -> None:
        watchers = self._watchers.get(session, set())
        watchers.discard(watcher)
        if not watchers:
            self._watchers.pop(session, None)

    def follow(self, watcher: Watcher) -> None:
        self._followers.add(watcher)

    def unfollow(self, watcher: Watcher) -> None:
        self._followers.discard(watcher)

    def note(self, thread: str, session: str, owner: str) -> None:
        """Remember whose thread it is."""
        self._sessions[thread] = session, owner
        if len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)

    async def _listen(self, listening: asyncio.Event) -> None:
        while True:
            with self._agent.events() as feed:
                self._forget()
                listening.set()
                while (events := await feed.next_ones()) is not None:
                    await self._hear(events)

    async def _hear(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, _OF_A_DRAFT):
                self._keep(event)
            if isinstance(event, COUNTED):
                self._metrics.hear(event)
            if self._watchers or (self._followers and isinstance(event, NEWS)):
                session, owner = await self._place_of(event)
                self._pass_on(event, session, owner)

    async def _place_of(self, event: Event) -> tuple[str, str]:
        """The session in which it is told, and whose it is; what goes on in the background of one is told in none."""
        if isinstance(event, TurnMoved):
            self._sessions.pop(event.thread, None)
            self._behind.pop(event.thread, None)
            return event.session, event.owner
        if behind := self._behind.get(event.thread):
            if time.monotonic() < behind[0]:
                return "", behind[1]
            del self._behind[event.thread]
        return self._sessions.get(event.thread) or await self._look_up(event.thread)

    def _forget(self) -> None:
        """It was too slow, or has failed, and cannot know what it has missed. The first time nobody watches yet."""
        self.drafts.clear()
        for watcher in self._followers.union(*self._watchers.values()):
            watcher.lose()

    def _keep(self, event: Event) -> None:
        thread, draft = event.thread, self.drafts.get(event.thread)
        if isinstance(event, AnswerPiece):
            if draft:
                draft.add(event)
        elif isinstance(event, AnswerBegan):
            self.drafts[thread] = Draft(event)
        elif isinstance(event, AnswerEnded):
            if draft:
                draft.kept = event.kept
        elif isinstance(event, TurnEnded) or (isinstance(event, PermissionAsked) and not event.is_of_files):
            self.drafts.pop(thread, None)  # the answer is committed
        elif isinstance(event, ConversationDeleted):
            self.drafts.pop(thread, None)
            self.note(thread, event.session, event.owner)  # it cannot be looked up any more

    def _pass_on(self, event: Event, session: str, owner: str) -> None:
        if self._followers and isinstance(event, NEWS):
            self._pass_news(event, session, owner)
        if session not in self._watchers or isinstance(event, TitleGiven):
            return  # a title has no place in a log, by which whoever watches one would go on
        for watcher in tuple(self._watchers[session]):
            if watcher.user == owner:  # a session may be watched before it is there, and then be another's
                watcher.hear(session, event)

    def _pass_news(self, event: Event, session: str, owner: str) -> None:
        for follower in tuple(self._followers):
            if follower.user == owner or (isinstance(event, PermissionAsked) and follower.answers):
                follower.hear_news(session, event)

    async def _look_up(self, thread: str) -> tuple[str, str]:
        try:
            row = (await self._agent.store.open(thread, MANY)).row
        except StoreError:  # whoever watches will see it in the log
            return "", ""
        if background_number(row.spawned_by):
            self._behind[thread] = time.monotonic() + BEHIND, row.owner
            return "", row.owner
        self.note(thread, row.session, row.owner)
        return row.session, row.owner
