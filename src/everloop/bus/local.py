"""The bus inside one process: plain calls and queues. It carries hints; the store is the truth."""

from collections.abc import Callable
from functools import partial

from ..ports.events import AnswerBegan, AnswerEnded, AnswerPiece, Draft, Event
from .feed import LocalFeed


class LocalBus:
    def __init__(self) -> None:
        self._feeds: dict[str, list[LocalFeed]] = {}  # by thread; "" are those of all threads
        self._drafts: dict[str, Draft] = {}
        self._on_wake: Callable[[str], None] = _nobody
        self._on_cancel: Callable[[str], None] = _nobody

    def listen(self, on_wake: Callable[[str], None], on_cancel: Callable[[str], None]) -> None:
        self._on_wake, self._on_cancel = on_wake, on_cancel

    def wake(self, thread: str) -> None:
        self._on_wake(thread)

    def cancel(self, thread: str) -> None:
        self._on_cancel(thread)

    def publish(self, event: Event) -> None:
        if isinstance(event, AnswerPiece):
            if draft := self._drafts.get(event.thread):
                draft.add(event)
        elif isinstance(event, AnswerBegan):
            self._drafts[event.thread] = Draft(event)
        elif isinstance(event, AnswerEnded):
            self._drafts.pop(event.thread, None)
        if not self._feeds:
            return
        for feed in self._feeds.get(event.thread, ()):
            feed.put(event)
        for feed in self._feeds.get("", ()):
            feed.put(event)

    def hears(self, thread: str) -> bool:
        return bool(self._feeds) and (thread in self._feeds or "" in self._feeds)

    def subscribe(self, thread: str = "") -> LocalFeed:
        feed = LocalFeed(partial(self._leave, thread))
        draft = self._drafts.get(thread)
        if draft and (said := draft.whole):
            feed.put(said)
        self._feeds.setdefault(thread, []).append(feed)
        return feed

    def _leave(self, thread: str, feed: LocalFeed) -> None:
        feeds = self._feeds[thread]
        feeds.remove(feed)
        if not feeds:
            del self._feeds[thread]


def _nobody(thread: str) -> None:
    pass
