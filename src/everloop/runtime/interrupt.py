"""A way to break off the step that is being performed, from outside the task that performs it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Interrupt:
    """`async with interrupt.guard():` runs until it is done or `fire` is called; `fired` says which."""

    def __init__(self) -> None:
        self._scope: asyncio.Timeout | None = None
        self.fired = False

    def fire(self) -> None:
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def guard(self) -> AsyncIterator[None]:
        self.fired = False
        try:
            async with asyncio.timeout(None) as scope:
                self._scope = scope
                yield
        except TimeoutError:
            if not scope.expired():
                raise
            self.fired = True
        finally:
            self._scope = None
