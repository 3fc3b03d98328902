"""Owns what runs for long: channels and their outboxes, the scheduler, the exporter of spans, warming up.

What fails is begun again, each time a little later (exponential backoff with jitter, so that many do not come back in
step), and its state can be seen. A failure is logged with its traceback when it is new, and else in a sentence.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from types import TracebackType

from msgspec import structs

from ..ports import Clock
from ..ports.jobs import RunState, TaskState

_log = logging.getLogger("everloop.supervisor")

FIRST, LONGEST = 0.5, 60.0  # seconds before it is begun again: after the first failure, and at most
CALM = 60.0  # seconds that it has to run for the failures before to be forgotten

Work = Callable[[], Awaitable[object]]


class Supervised:
    """One task. Whoever began it may `end` it before the supervisor does."""

    def __init__(
        self,
        name: str,
        work: Work,
        clock: Clock,
        *,
        once: bool,
        spread: Callable[[], float],
        is_elsewhere: Callable[[], bool],
    ) -> None:
        self._name = name
        self._work = work
        self._clock = clock
        self._once = once
        self._spread = spread
        self._is_elsewhere = is_elsewhere
        self._state = TaskState(name, "running", clock.now())
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"everloop-{name}")

    @property
    def name(self) -> str:
        return self._name

    @property
    def is_over(self) -> bool:
        return self._task.done()

    @property
    def state(self) -> TaskState:
        if self._state.state == "running" and self._is_elsewhere():
            return structs.replace(self._state, state="standby")
        return self._state

    async def end(self) -> None:
        """When it returns, nothing of it runs any more."""
        self._task.cancel()
        await asyncio.wait([self._task])
        if self._state.state in ("running", "waiting"):
            self._be("ended")

    async def _run(self) -> None:
        failures = 0
        while True:
            began = self._clock.now()
            try:
                await self._work()
            # The border to whatever runs here, which must end nothing else; a cancellation may be somebody else's.
            except (Exception, asyncio.CancelledError) as error:
                if self._task.cancelling():
                    if not isinstance(error, asyncio.CancelledError):
                        _log.error("%s failed when it was ended", self._name, exc_info=error)
                    return
                failures = 1 if self._clock.now() - began >= CALM else failures + 1
                if not await self._go_on_after(error, failures):
                    return
            else:
                self._be("ended")
                return

    async def _go_on_after(self, failure: BaseException, failures: int) -> bool:
        said = f"{type(failure).__name__}: {failure}"
        pause = min(LONGEST, FIRST * 2 ** min(failures - 1, 16)) * (0.5 + self._spread() / 2)
        then = "it is not tried again" if self._once else f"it is begun again in {pause:.1f} s"
        known = said == self._state.error
        _log.error("%s failed, and %s (%s)", self._name, then, said, exc_info=None if known else failure)
        self._be("failed" if self._once else "waiting", said)
        if self._once:
            return False
        await self._clock.sleep(pause)
        self._be("running", said, self._state.restarts + 1)
        return True

    def _be(self, state: RunState, error: str | None = None, restarts: int | None = None) -> None:
        before = self._state
        self._state = TaskState(
            self._name,
            state,
            self._clock.now(),
            before.restarts if restarts is None else restarts,
            before.error if error is None else error,
        )


class Supervisor:
    """Use as `async with supervisor:`; leaving it ends what it began, the last first."""

    def __init__(self, clock: Clock, spread: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._spread = spread
        self._tasks: list[Supervised] = []

    def start(
        self, name: str, work: Work, *, once: bool = False, is_elsewhere: Callable[[], bool] = lambda: False
    ) -> Supervised:
        """Have something run beside everything else; `work` is called anew after each failure, unless it is done
        `once`. What returns by itself has ended. `is_elsewhere` says whether another process does it just now."""
        task = Supervised(name, work, self._clock, once=once, spread=self._spread, is_elsewhere=is_elsewhere)
        self._tasks = [each for each in self._tasks if each.name != name or not each.is_over]
        self._tasks.append(task)
        return task

    def states(self) -> list[TaskState]:
        """In the order in which they were begun."""
        return [task.state for task in self._tasks]

    async def __aenter__(self) -> "Supervisor":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in reversed(self._tasks):
            await task.end()
