"""What is to happen later. A job is a row: due at a time, once or over and over."""

import math
from typing import Literal

from msgspec import Struct

from .errors import BadSchedule
from .mail import Inbound

JobState = Literal["waiting", "working", "done", "failed"]

_EVERY = "every "


class Job(Struct, frozen=True):
    """With a `letter` it speaks: when it is due, the letter is posted to its address, with an event of the job's own
    (`event_of`). Without one it is work of its `kind`, on its `payload`: it is claimed, and tried until it is done.

    `owner` is the principal that it belongs to; `due` is Unix time by the store's clock; `schedule` says how it goes on
    after that (`next_due`).
    """

    id: str
    kind: str
    due: float
    owner: str = "owner"
    schedule: str = ""
    letter: Inbound | None = None
    payload: str = ""


class JobRow(Struct, frozen=True):
    """A job as it stands. `epoch` is that of its last claim; `result` is what came of it, or why it did not."""

    job: Job
    state: JobState = "waiting"
    attempts: int = 0  # of the work that is due now
    epoch: int = 0
    result: str = ""


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
