"""The bus inside one process: plain calls and queues. It carries hints; the store is the truth."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..core.ports import Event

QUEUE_LIMIT = 10_000  # events that a slow reader may be behind before it is cut off


class LocalBus:
    def __init__(self) -> None:
        self._queues: dict[str, list[asyncio.Queue[Event | None]]] = {}
        self._drafts: dict[str, list[Event]] = {}
        self._on_wake: Callable[[str], None] = _nobody
        self._on_cancel: Callable[[str], None] = _nobody

    def listen(self, on_wake: Callable[[str], None], on_cancel: Callable[[str], None]) -> None:
        self._on_wake, self._on_cancel = on_wake, on_cancel

    def wake(self, thread: str) -> None:
        self._on_wake(thread)

    def cancel(self, thread: str) -> None:
        self._on_cancel(thread)

    def publish(self, event: Event) -> None:
        if event.name == "stream_chunk":
            self._drafts.setdefault(event.thread, []).append(event)
        elif event.name == "stream_start":
            self._drafts[event.thread] = []
        elif event.name == "stream_end":
            self._drafts.pop(event.thread, None)
        if not self._queues:
            return
        for key in (event.thread, ""):
            for queue in self._queues.get(key, ()):
                _put(queue, event)

    def hears(self, thread: str) -> bool:
        return bool(self._queues) and (thread in self._queues or "" in self._queues)

    @contextmanager
    def subscribe(self, thread: str = "") -> Iterator[AsyncIterator[Event]]:
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        if draft := self._drafts.get(thread):
            queue.put_nowait(_joined(draft))
        self._queues.setdefault(thread, []).append(queue)
        try:
            yield _read(queue)
        finally:
            queues = self._queues[thread]
            queues.remove(queue)
            if not queues:
                del self._queues[thread]


def _put(queue: asyncio.Queue[Event | None], event: Event) -> None:
    if queue.qsize() < QUEUE_LIMIT:
        queue.put_nowait(event)
    elif queue.qsize() == QUEUE_LIMIT:
        queue.put_nowait(None)  # too slow: it ends here, and its reader begins again from the log


async def _read(queue: asyncio.Queue[Event | None]) -> AsyncIterator[Event]:
    while (event := await queue.get()) is not None:
        yield event


def _joined(draft: list[Event]) -> Event:
    last = draft[-1]
    data: dict[str, Any] = {
        name: "".join(event.data.get(name, "") for event in draft) for name in ("text", "reasoning")
    }
    return Event(last.name, last.thread, last.seq, last.n, {**last.data, **data})


def _nobody(thread: str) -> None:
    pass
