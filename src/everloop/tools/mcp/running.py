"""A call that runs at a server: on whose behalf, how long it may still take, and what the server said beside it."""

import asyncio
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from ...ports.tools import CallContext

T = TypeVar("T")

MOST_QUESTIONS = 5  # in one call
MOST_ASIDES = 20

CURRENT: ContextVar["RunningCall | None"] = ContextVar("everloop_mcp_call", default=None)
"""The call on whose behalf the SDK is at work, where it is that call's own task."""


class RunningCall:
    """Its time stands still while a person is asked, for `question_seconds` at most."""

    def __init__(self, context: CallContext | None, seconds: float, question_seconds: float) -> None:
        self.context = context
        self.seconds = seconds
        self.began = time.monotonic()
        self.asides: list[str] = []  # the server's words
        self._patience = question_seconds
        self._paused = 0.0
        self._asked_at: float | None = None
        self._questions = 0
        self.turn = asyncio.Lock()  # of a question: one after another
        self._asks: asyncio.Task[Any] | None = None

    @property
    def left(self) -> float:
        """Seconds."""
        return self.began + self.seconds + self._paused + self._asking - time.monotonic()

    @property
    def patience(self) -> float:
        """Seconds that a person has still."""
        return self._patience - self._paused - self._asking

    @property
    def may_ask(self) -> bool:
        return self._questions < MOST_QUESTIONS and self.patience > 0

    @property
    def _asking(self) -> float:
        return 0.0 if self._asked_at is None else time.monotonic() - self._asked_at

    async def asked(self, question: Coroutine[Any, Any, T]) -> T | None:
        """What is answered, in its turn; None: nothing in time, or its call was over before that."""
        async with self.turn:
            if not self.may_ask:
                question.close()
                return None
            with self._asking_now():
                self._asks = asyncio.create_task(question)
                try:
                    await asyncio.wait({self._asks}, timeout=self.patience)
                finally:
                    self._asks.cancel()
            return self._asks.result() if self._asks.done() and not self._asks.cancelled() else None

    def end(self) -> None:
        """Whoever has called is gone: nobody waits for an answer any more."""
        self._patience = 0.0
        if self._asks:
            self._asks.cancel()

    @contextmanager
    def _asking_now(self) -> Iterator[None]:
        self._questions += 1
        self._asked_at = time.monotonic()
        try:
            yield
        finally:
            self._paused += self._asking
            self._asked_at = None

    def tell(self, aside: str) -> None:
        if len(self.asides) < MOST_ASIDES:
            self.asides.append(aside)
