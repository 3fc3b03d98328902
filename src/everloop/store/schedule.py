"""When a job is due next."""

import math

from ..errors import BadSchedule
from ..ports.jobs import Job

_EVERY = "every "


def event_of(id: str, due: float) -> str:
    """The event of the letter that a job posts for one time: the same time twice is one letter."""
    return f"job:{id}:{due:.15g}"


def check_times(job: Job) -> None:
    """Raises BadSchedule."""
    _seconds(job.schedule)
    if not math.isfinite(job.due):
        raise BadSchedule(f"a job is due at a time, in seconds since 1970, not {job.due}")


def next_due(schedule: str, due: float, now: float) -> float | None:
    """When a job is due after the time `due`; None if that was the last. What was missed is made up for once, not once
    for each time: the next lies after `now`, on the same beat. Raises BadSchedule."""
    every = _seconds(schedule)
    if not every:
        return None
    times = max(1, math.floor((now - due) / every) + 1)
    while (then := due + every * times) <= now:  # as far as a float can tell
        times += 1
    return then


def _seconds(schedule: str) -> float:
    """How far apart its times are; 0 for a job that is due once."""
    if not schedule:
        return 0.0
    try:
        every = float(schedule.removeprefix(_EVERY)) if schedule.startswith(_EVERY) else math.nan
    except ValueError:
        every = math.nan
    if not 1 <= every < math.inf:
        raise BadSchedule(f"a schedule is empty (once) or `every SECONDS`, of at least 1, not {schedule[:200]!r}")
    return every
