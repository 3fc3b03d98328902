"""A way to break off the step that is being performed, from outside the task that performs it."""

import asyncio
from types import TracebackType
from typing import Any


class Interrupt:
    """`with interrupt:` runs until its body is done or `fire` is called; `fired` says which it was.

    As asyncio.timeout() does it, but without a timer: there is one around every step of every turn.
    """

    __slots__ = ("_cancelling", "_firing", "_task", "fired")

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._firing = False
        self.fired = False

    def fire(self) -> None:
        if self._task is not None and not self._firing:  # a second stop finds the first at work
            self._firing = True
            self._task.cancel()

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task, self._cancelling = task, task.cancelling()
        self._firing = self.fired = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        if self._firing:
            assert task is not None
            # Someone else may have cancelled the task too: that is not ours to swallow.
            self.fired = task.uncancel() <= self._cancelling and kind is asyncio.CancelledError
        return self.fired
