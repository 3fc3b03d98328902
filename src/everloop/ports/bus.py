"""Hints inside a house."""

from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Protocol

from .events import Event


class Feed(Protocol):
    """Events on their way to one reader, who is cut off when too slow."""

    def __aiter__(self) -> AsyncIterator[Event]: ...

    async def next_ones(self, seconds: float = 0.0) -> Sequence[Event] | None:
        """All that has come and was not read yet, once there is something; none of them when nothing has come for so
        many seconds, and None when nothing will come any more."""

    def end(self) -> None:
        """Nothing comes after what has come."""

    def close(self) -> None:
        """Hear nothing any more; whoever says `with feed` need not."""

    def __enter__(self) -> "Feed": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Bus(Protocol):
    """Hints only; losing all of it costs latency, never a message."""

    def wake(self, thread: str) -> None: ...

    def cancel(self, thread: str) -> None: ...

    def publish(self, event: Event) -> None: ...

    def hears(self, thread: str) -> bool:
        """Whether anyone would be told of an event of this thread; only the pieces of an answer are kept for later."""

    def subscribe(self, thread: str = "") -> Feed:
        """Events of one thread, or of all, from this call on; begins with the running answer so far, as one chunk."""

    def listen(self, on_wake: Callable[[str], None], on_cancel: Callable[[str], None]) -> None:
        """Be told of wakes and cancels; there is one listener, the lanes."""
