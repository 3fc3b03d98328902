"""What runs for long is begun again when it fails, its state can be seen, and it ends when it is told to."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from everloop.ports.jobs import TaskState
from everloop.runtime.supervisor import CALM, FIRST, LONGEST, Supervisor


class HandClock:
    """Time passes while somebody sleeps; each sleep is noted."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []
        self.held: asyncio.Event | None = None

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.held:
            await self.held.wait()
        self.time += seconds
        await asyncio.sleep(0)


def failing(times: int, then: Callable[[], Awaitable[object]], runs: float = 0.0, clock: HandClock | None = None):
    left = [times]

    async def work() -> None:
        if clock:
            clock.time += runs
        if left[0]:
            left[0] -= 1
            raise ValueError("broken pipe")
        await then()

    return work


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110  it happens in the next rounds of the event loop
        await asyncio.sleep(0)


def logged(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """By it alone: what an earlier test has left behind is complained of whenever it is collected."""
    return [record for record in caplog.records if record.name == "everloop.supervisor"]


def tracebacks(caplog: pytest.LogCaptureFixture) -> list[bool]:
    return [bool(record.exc_info) for record in logged(caplog)]


async def test_what_fails_is_begun_again_each_time_later_and_told_with_one_traceback(caplog):
    clock, reached = HandClock(), asyncio.Event()

    async def go_on() -> None:
        reached.set()
        await asyncio.Event().wait()

    async with Supervisor(clock, spread=lambda: 1.0) as supervisor:
        supervisor.start("channel", failing(10, go_on))
        await reached.wait()
        waits = [min(LONGEST, FIRST * 2**n) for n in range(10)]
        assert clock.slept == waits
        assert supervisor.states() == [
            TaskState("channel", "running", 1000 + sum(waits), 10, "ValueError: broken pipe"),
        ]
    assert tracebacks(caplog) == [True] + [False] * 9
    assert "channel failed, and it is begun again in 0.5 s (ValueError: broken pipe)" in caplog.text
    assert supervisor.states() == [TaskState("channel", "ended", 1000 + sum(waits), 10, "ValueError: broken pipe")]


async def test_the_pause_is_spread_over_its_second_half():
    for spread, factor in ((0.0, 0.5), (0.5, 0.75), (1.0, 1.0)):
        clock, reached = HandClock(), asyncio.Event()

        async def go_on(reached: asyncio.Event = reached) -> None:
            reached.set()

        async with Supervisor(clock, spread=lambda spread=spread: spread) as supervisor:
            supervisor.start("channel", failing(1, go_on))
            await reached.wait()
        assert clock.slept == [FIRST * factor]


async def test_what_ran_well_for_a_while_begins_again_soon():
    clock, reached = HandClock(), asyncio.Event()

    async def go_on() -> None:
        reached.set()

    async with Supervisor(clock, spread=lambda: 1.0) as supervisor:
        supervisor.start("channel", failing(5, go_on, runs=CALM, clock=clock))
        await reached.wait()
    assert clock.slept == [FIRST] * 5


async def test_what_waits_to_be_begun_again_is_seen_waiting(caplog):
    clock = HandClock()
    clock.held = asyncio.Event()
    async with Supervisor(clock, spread=lambda: 1.0) as supervisor:
        supervisor.start("channel", failing(1, asyncio.Event().wait))
        await until(lambda: bool(clock.slept))
        assert supervisor.states() == [TaskState("channel", "waiting", 1000, 0, "ValueError: broken pipe")]
    assert supervisor.states() == [TaskState("channel", "ended", 1000, 0, "ValueError: broken pipe")]


async def test_what_is_done_once_is_not_begun_again_and_its_failure_is_told(caplog):
    clock = HandClock()
    async with Supervisor(clock) as supervisor:
        task = supervisor.start("warm-up", failing(1, asyncio.Event().wait), once=True)
        await until(lambda: task.state.state != "running")
    assert supervisor.states() == [TaskState("warm-up", "failed", 1000, 0, "ValueError: broken pipe")]
    assert "warm-up failed, and it is not tried again (ValueError: broken pipe)" in caplog.text
    assert (tracebacks(caplog), clock.slept) == ([True], [])


async def test_what_returns_by_itself_has_ended_without_a_word(caplog):
    async with Supervisor(HandClock()) as supervisor:
        task = supervisor.start("warm-up", lambda: asyncio.sleep(0))
        await until(lambda: task.state.state != "running")
        assert supervisor.states() == [TaskState("warm-up", "ended", 1000)]
    assert logged(caplog) == []


async def test_one_that_fails_ends_no_other():
    ended: list[str] = []

    async def last() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("good")

    clock, reached = HandClock(), asyncio.Event()

    async def go_on() -> None:
        reached.set()
        await asyncio.Event().wait()

    async with Supervisor(clock) as supervisor:
        supervisor.start("good", last)
        supervisor.start("bad", failing(20, go_on))
        await reached.wait()
        assert (ended, [task.state for task in supervisor.states()]) == ([], ["running", "running"])
    assert ended == ["good"]


async def test_a_cancellation_that_is_not_ours_is_a_failure_like_any_other():
    clock, reached = HandClock(), asyncio.Event()
    times = [0]

    async def work() -> None:
        times[0] += 1
        if times[0] == 1:
            raise asyncio.CancelledError
        reached.set()
        await asyncio.Event().wait()

    async with Supervisor(clock) as supervisor:
        supervisor.start("channel", work)
        await reached.wait()
        assert [task.restarts for task in supervisor.states()] == [1]


async def test_what_fails_while_it_is_ended_is_told_and_holds_up_nobody(caplog):
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("no farewell")

    async with Supervisor(HandClock()) as supervisor:
        supervisor.start("channel", work)
        await begun.wait()
    assert [record.levelno for record in logged(caplog)] == [logging.ERROR]
    assert "channel failed when it was ended" in caplog.text
    assert [task.state for task in supervisor.states()] == ["ended"]


async def test_what_is_ended_before_it_has_begun_never_begins():
    begun: list[str] = []

    async def work() -> None:
        begun.append("x")

    async with Supervisor(HandClock()) as supervisor:
        await supervisor.start("channel", work).end()
    assert (begun, [task.state for task in supervisor.states()]) == ([], ["ended"])
