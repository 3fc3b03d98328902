"""How much has come through a channel of late: who has written how often, and how long only bots have spoken.

It is counted in memory, so that no message costs a query; what the inbox holds of the last hour is read when the first
message comes, so that neither a restart nor another process that goes on with it begins at nothing. Counted is what was
let in.
"""

import asyncio
from collections import deque
from collections.abc import Container

from ..ports import Arrivals, Clock

WINDOW = 60.0  # seconds
LOOKED_AT = 5000  # letters of all channels
MOST_TOLD = 10_000  # who were told something, and when: then those are forgotten who were told long ago


class Pace:
    """Of one channel. Those who write are named by `who`: a person, or one thing that a person does."""

    def __init__(self, store: Arrivals, channel: str, clock: Clock, bots: Container[str] = ()) -> None:
        """`bots` are authors."""
        self._store = store
        self._channel = channel
        self._clock = clock
        self._bots = bots
        self._reading = asyncio.Lock()
        self._is_read = False
        self._all: deque[tuple[float, str, str]] = deque()
        self._times: dict[str, deque[float]] = {}
        self._events: set[str] = set()
        self._told: dict[str, float] = {}
        self._streaks: dict[str, int] = {}  # of bots, by chat

    async def read(self) -> None:
        """What came before this process has listened. Raises StoreError."""
        async with self._reading:
            if self._is_read:
                return
            now = self._clock.now()
            for each in await self._store.recent(self._channel, LOOKED_AT):
                if each.told:
                    self._told[each.author] = each.at
                else:
                    self._count(each.author, each.event, min(each.at, now))
                    self.note_speaker(each.chat, each.author in self._bots)
            self._is_read = True

    def came(self, event: str) -> bool:
        return event in self._events

    def wait_of(self, who: str, limit: int, limit_of_all: int) -> float:
        """Seconds until one more is within both limits (0: none); 0 when it is now."""
        now = self._clock.now()
        self._forget(now - WINDOW)
        theirs = self._times.get(who, deque())
        waits = [0.0]
        if limit and len(theirs) >= limit:
            waits.append(theirs[len(theirs) - limit] + WINDOW - now)
        if limit_of_all and len(self._all) >= limit_of_all:
            waits.append(self._all[len(self._all) - limit_of_all][0] + WINDOW - now)
        return max(waits)

    def count(self, who: str, event: str) -> None:
        self._count(who, event, self._clock.now())

    def _count(self, who: str, event: str, at: float) -> None:
        if event not in self._events:
            self._events.add(event)
            self._all.append((at, who, event))
            self._times.setdefault(who, deque()).append(at)

    def _forget(self, before: float) -> None:
        while self._all and self._all[0][0] <= before:
            _, who, event = self._all.popleft()
            self._events.discard(event)
            self._times[who].popleft()
            if not self._times[who]:
                del self._times[who]

    def streak(self, chat: str) -> int:
        """How often bots have spoken there since a person has."""
        return self._streaks.get(chat, 0)

    def note_speaker(self, chat: str, is_bot: bool) -> None:
        if is_bot:
            self._streaks[chat] = self.streak(chat) + 1
        else:
            self._streaks.pop(chat, None)

    def tell(self, who: str, within: float = WINDOW) -> bool:
        """Whether they are to be told something now: once within so many seconds."""
        now = self._clock.now()
        if now - self._told.get(who, -within) < within:
            return False
        if len(self._told) >= MOST_TOLD:
            self._told = {each: at for each, at in self._told.items() if now - at < WINDOW}
        self._told[who] = now
        return True
