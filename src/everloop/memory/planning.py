"""Finds conversations that are to become part of the memory, and keeps a job for each: about once a minute, one process
for all. A turn pays nothing for it.

A conversation is due when so many messages are new in it, when its session has gone on to another (`/new`), and when
nobody has spoken in it for a while since somebody did. Where no person has said anything new, nothing is due.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from ..core.people import Role, is_chat
from ..errors import StoreError
from ..ports import Archive, Clock, Jobs, Leases, Log, People
from ..ports.channel import ASIDE
from ..ports.consolidation import Consolidations, Unconsolidated
from ..ports.conversation import Written
from ..ports.jobs import CONSOLIDATE, Job
from .material import has_people, messages_in, principal_in

_log = logging.getLogger("everloop.memory")

EVERY = 60.0  # seconds between two looks
AT_ONCE = 1000  # conversations
SEEN = 10_000  # that were looked at and have no job
NEVER = 1e12  # seconds
LEASE = "consolidation"


class PlanningRules(Struct, frozen=True):
    """`idle` is after how many seconds of silence; None: silence is no reason."""

    window: int = 100
    idle: float | None = 1800.0


class PlanningStore(Log, Archive, Jobs, Leases, Consolidations, Protocol):
    """What it asks of the store."""


class ConsolidationPlanner:
    """`run` it under a supervisor. `rules` are asked for at each look; None: nothing is to be remembered now. Without
    an `owner` it looks at everyone's conversations, else at those of one while nobody does that."""

    def __init__(
        self,
        store: PlanningStore,
        people: People,
        clock: Clock,
        rules: Callable[[], PlanningRules | None],
        owner: str = "",
        under: str = "",
    ) -> None:
        self._store = store
        self._people = people
        self._clock = clock
        self._rules = rules
        self._owner = owner
        self._under = under if owner else ""
        self._lease = f"{LEASE}:{owner}" if owner else LEASE
        self._hinted = asyncio.Event()
        self._seen: OrderedDict[str, tuple[int, bool]] = OrderedDict()

    def hint(self) -> None:
        """A session may have gone on to another conversation: look soon."""
        self._hinted.set()

    async def run(self) -> None:
        while True:
            await self._rest()
            try:
                await self.look()
            except StoreError as error:  # of which the lanes tell
                _log.info("what is to be remembered is looked for later: %s", error)

    async def _rest(self) -> None:
        waits = [asyncio.ensure_future(self._clock.sleep(EVERY)), asyncio.ensure_future(self._hinted.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        self._hinted.clear()

    async def look(self) -> list[str]:
        """The jobs that were added. Raises StoreError."""
        rules = self._rules()
        if rules is None or not await self._store.hold(self._lease, 2 * EVERY, self._under):
            return []
        quiet = NEVER if rules.idle is None else rules.idle
        waiting = await self._store.unconsolidated(quiet, rules.window, AT_ONCE, self._owner)
        return [job for each in waiting if (job := await self._plan(each, rules))]

    async def _plan(self, waiting: Unconsolidated, rules: PlanningRules) -> str:
        """The id of its job; "" where none was added."""
        thread, after, head = waiting.thread, waiting.after, waiting.head
        quiet = rules.idle is not None and self._clock.now() - waiting.active >= rules.idle
        due = waiting.left or quiet
        if self._seen.get(thread) == (seen := (head, due)):
            return ""
        written = await self._store.history(thread, after, head - after)
        principal = principal_in(written) or waiting.owner
        due = due or messages_in(written) >= rules.window
        if due and not await self._is_worth_it(waiting, principal, written):
            await self._store.pass_over(thread, after, head)
            return ""
        job = Job(f"{CONSOLIDATE}:{thread}:{head}", CONSOLIDATE, waiting.active, principal, payload=thread)
        if due and await self._store.add_job(job):
            return job.id
        self._seen[thread] = seen
        if len(self._seen) > SEEN:
            self._seen.popitem(last=False)
        return ""

    async def _is_worth_it(self, waiting: Unconsolidated, principal: str, written: list[Written]) -> bool:
        """Whether a person has said something, and is somebody of whom anything is remembered."""
        if waiting.session.startswith(ASIDE) or not has_people(written):
            return False
        return is_chat(principal) or await self._people.role(principal) >= Role.USER
