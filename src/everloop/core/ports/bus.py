"""Hints inside a house."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import Protocol

from ..events import Event


class Feed(Protocol):
    """Events on their way to one reader, who is cut off when too slow."""

    def __aiter__(self) -> AsyncIterator[Event]: ...

    def beating(self, seconds: float) -> AsyncIterator[Event | None]:
        """The same, and None whenever nothing has come for so long."""

    def end(self) -> None:
        """Nothing comes after what has come."""


class Bus(Protocol):
    """Hints only; losing all of it costs latency, never a message."""

    def wake(self, thread: str) -> None: ...

    def cancel(self, thread: str) -> None: ...

    def publish(self, event: Event) -> None: ...

    def hears(self, thread: str) -> bool:
        """Whether anyone would be told of an event of this thread; only the pieces of an answer are kept for later."""

    def subscribe(self, thread: str = "") -> AbstractContextManager[Feed]:
        """Events of one thread, or of all; begins with the running answer so far, as one chunk."""

    def listen(self, on_wake: Callable[[str], None], on_cancel: Callable[[str], None]) -> None:
        """Be told of wakes and cancels; there is one listener, the lanes."""
