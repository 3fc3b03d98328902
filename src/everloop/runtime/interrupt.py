"""A way to break off the step that is being performed, from outside the task that performs it."""

import asyncio
from types import TracebackType
from typing import Any


class Interrupt:
    """`with interrupt:` in `task` runs until its body is done or `fire` is called; `fired` says which it was.

    As asyncio.timeout() does it, but without a timer: there is one around every step of every turn.
    """

    __slots__ = ("_cancelling", "_entered", "_firing", "fired", "task")

    def __init__(self, task: "asyncio.Task[Any] | None" = None) -> None:
        self.task = task
        self._cancelling = 0
        self._entered = self._firing = self.fired = False

    def fire(self) -> None:
        if self._entered and not self._firing:  # a second stop finds the first at work
            assert self.task is not None
            self._firing = True
            self.task.cancel()

    def __enter__(self) -> None:
        assert self.task is not None
        self._entered, self._cancelling = True, self.task.cancelling()
        self._firing = self.fired = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._entered = False
        if self._firing:
            assert self.task is not None
            # Someone else may have cancelled the task too: that is not ours to swallow.
            self.fired = self.task.uncancel() <= self._cancelling and kind is asyncio.CancelledError
        return self.fired
