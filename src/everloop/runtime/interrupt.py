"""A way to break off the step that is being performed, from outside the task that performs it."""

import asyncio
from types import TracebackType


class Interrupt:
    """`async with interrupt:` runs until its body is done or `fire` is called; `fired` says which it was."""

    def __init__(self) -> None:
        self._scope: asyncio.Timeout | None = None
        self.fired = False

    def fire(self) -> None:
        if self._scope is not None and not self._scope.expired():  # a second stop finds the first at work
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def __aenter__(self) -> None:
        self.fired = False
        self._scope = asyncio.timeout(None)
        await self._scope.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        scope, self._scope = self._scope, None
        assert scope is not None
        try:
            await scope.__aexit__(kind, error, trace)
        except TimeoutError:
            self.fired = True
        return self.fired
