"""Writes whose rows somebody else holds: they wait on a connection of their own, so that no other write waits for them.

A batch that met a lock is halved until the blocked ones stand alone. Those of one thread or session are one pile, which
is written in the order in which it grew. Each pile is then tried in turn, for a part of a second, until its time is up.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain

from ..errors import StoreError
from .batch_items import Item, WriteResult
from .sender import Locked, Sender, WriteOutcome
from .server import LOCK_SECONDS, WAIT_SECONDS

QueuedWrite = tuple["asyncio.Future[WriteResult]", Item]
Tell = Callable[[Sequence[tuple[QueuedWrite, WriteOutcome]]], None]

MOST = 100  # at once
SPLIT_MS = 20  # how long a part of a batch waits for a lock
ROUND_MS = 250  # in which each pile has its try, but for those that are very many
LEAST_MS = 5


class Blocked:
    """There are `piles` while something waits."""

    def __init__(self, sender: Sender, tell: Tell) -> None:
        self._sender = sender
        self._tell = tell
        self.piles: dict[str, list[tuple[float, QueuedWrite]]] = {}  # with when its time is up
        self._lots: deque[list[str]] = deque()  # of piles that are tried together
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None

    def sort_out(self, batch: list[QueuedWrite]) -> list[QueuedWrite]:
        """Keep those that come after one that waits here; the others."""
        behind = [job for job in batch if not self.piles.keys().isdisjoint(_keys(job))]
        if not behind:
            return batch
        self._keep(behind, WAIT_SECONDS)
        return [job for job in batch if self.piles.keys().isdisjoint(_keys(job))]

    def add(self, batch: list[QueuedWrite]) -> None:
        """These have met a lock, one of them at least. The first have waited for it for a while."""
        if lot := self._keep(batch, WAIT_SECONDS if self.piles else WAIT_SECONDS - LOCK_SECONDS):
            self._lots.appendleft(lot)
        if self._task is None:
            self._start()

    async def close(self) -> None:
        """When all have been written or told."""
        while self._task is not None:
            await asyncio.wait([self._task])

    def _keep(self, jobs: Sequence[QueuedWrite], seconds: float) -> list[str]:
        """The keys of the piles that are new."""
        until, lot = self._loop.time() + seconds, []
        for job in jobs:
            key = next((key for key in _keys(job) if key in self.piles), None)
            if key is None:
                key = _keys(job)[0]
                lot.append(key)
            self.piles.setdefault(key, []).append((until, job))
        return lot

    def _start(self) -> None:
        self._task = self._loop.create_task(self._work(), name="everloop-blocked")
        self._task.add_done_callback(self._end)

    async def _work(self) -> None:
        while self._lots:
            await self._try(self._lots.popleft())

    async def _try(self, lot: list[str]) -> None:
        waiting = list(chain.from_iterable(self.piles[key] for key in lot))[:MOST]
        answers = await self._sender.send([item for _, (_, item) in waiting], self._patience(lot))
        now = self._loop.time()
        ended = [
            (job, answer)
            for (until, job), answer in zip(waiting, answers, strict=True)
            if not isinstance(answer, Locked) or until <= now
        ]
        self._take_out(lot, {id(job) for job, _ in ended})
        self._queue([key for key in lot if key in self.piles])
        self._tell(ended)

    def _patience(self, lot: list[str]) -> int:
        return SPLIT_MS if len(lot) > 1 else max(LEAST_MS, ROUND_MS // len(self.piles))

    def _take_out(self, lot: list[str], ended: set[int]) -> None:
        for key in lot:
            self.piles[key] = [waiting for waiting in self.piles[key] if id(waiting[1]) not in ended]
            if not self.piles[key]:
                del self.piles[key]

    def _queue(self, lot: list[str]) -> None:
        half = len(lot) // 2
        if half:
            self._lots.extendleft((lot[half:], lot[:half]))
        elif lot:
            self._lots.append(lot)

    def _end(self, task: "asyncio.Task[None]") -> None:
        """Nobody is left waiting, also when somebody ends all tasks."""
        self._task = None
        self._sender.close()
        if task.cancelled() or task.exception() is not None:
            left = [job for _, job in chain.from_iterable(self.piles.values())]
            self.piles.clear()
            self._lots.clear()
            self._tell([(job, StoreError("the write was broken off")) for job in left])
        elif self._lots:  # more came in the last moment
            self._start()


def _keys(job: QueuedWrite) -> Sequence[str]:
    _, item = job
    sessions = tuple(key for key, _ in item.sessions)
    return sessions + item.threads or (f"settle {id(job)}",)
