"""When a job is due next: once (""), `every SECONDS`, or `cron ZONE FIELDS`, such as `cron Europe/Berlin 0 8 * * 1-5`.

A cron expression is read as Debian's cron reads it. At a change of the clocks, a time of day that is left out is made
up for when the clocks have gone forward, and one that comes twice counts once; but where the minute or the hour is a
`*`, it is each minute or hour that passes which counts.
"""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from ..errors import BadSchedule
from ..ports.jobs import Job

_EVERY, _CRON = "every ", "cron "
_STEP = 43200.0  # seconds in which clocks are changed at most once
_LONGEST = 200  # characters of an expression
_FIELDS = "minute, hour, day of the month, month and day of the week"
_NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}


def event_of(id: str, due: float) -> str:
    """The event of the letter that a job posts for one time: the same time twice is one letter."""
    return f"job:{id}:{due:.15g}"


def check_times(job: Job) -> None:
    """Raises BadSchedule."""
    check_rule(job.schedule)
    if not math.isfinite(job.due):
        raise BadSchedule(f"a job is due at a time, in seconds since 1970, not {job.due}")


def check_rule(schedule: str) -> None:
    """Raises BadSchedule."""
    if schedule.startswith(_CRON):
        _first_after(schedule, 0.0)
    else:
        _seconds(schedule)


def next_due(schedule: str, due: float, now: float) -> float | None:
    """When a job is due after the time `due`; None if that was the last. What was missed is made up for once, not once
    for each time: the next lies after `now`, on the same beat. Raises BadSchedule."""
    if schedule.startswith(_CRON):
        return _first_after(schedule, max(due, now))
    every = _seconds(schedule)
    if not every:
        return None
    times = max(1, math.floor((now - due) / every) + 1)
    while (then := due + every * times) <= now:  # as far as a float can tell
        times += 1
    return then


def next_ones(schedule: str, first: float, count: int) -> list[float]:
    """So many of its times, `first` among them. Raises BadSchedule."""
    return list(islice(_times(schedule, first), count))


def _times(schedule: str, first: float) -> Iterator[float]:
    then: float | None = first
    while then is not None:
        yield then
        then = next_due(schedule, then, then)


def _first_after(schedule: str, after: float) -> float:
    zone, fields = _cron(schedule)
    try:
        if fields.startswith("*") or fields.split()[1].startswith("*"):
            return _by_what_passes(fields, zone, after)
        return _by_time_of_day(fields, zone, after)
    except (CronSimError, OverflowError, ValueError) as error:
        raise BadSchedule(f"the cron expression {fields!r} is none ({error}): its fields are {_FIELDS}") from error
    except StopIteration:
        raise BadSchedule(f"the cron expression {fields!r} never comes true") from None


def _by_time_of_day(fields: str, zone: ZoneInfo, after: float) -> float:
    """A time of day is meant when it first comes; one that the clocks leave out, when they have gone forward."""
    walls = CronSim(fields, _wall(zone, after))
    while (then := _first_instant(zone, next(walls))) <= after:  # it comes again, after the clocks went back
        pass
    return then


def _first_instant(zone: ZoneInfo, wall: datetime) -> float:
    then, other = (wall.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    return then if then <= other else _change_between(zone, other, then) or then


def _by_what_passes(fields: str, zone: ZoneInfo, after: float) -> float:
    """Whatever the clock shows counts, each time that it does. cronsim goes through what clocks show from where none
    changes to where none changes; by itself it would miss what half an hour's change repeats."""
    began, wall = after, _wall(zone, after)
    while True:
        found = next(CronSim(fields, wall))
        then = found.replace(tzinfo=UTC).timestamp() - _offset(zone, began)
        change = _change_between(zone, began, then)
        if change is None:
            return then
        began, wall = change, _wall(zone, change) - timedelta(seconds=1)


def _wall(zone: ZoneInfo, at: float) -> datetime:
    """What a clock shows then."""
    return datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0)


def _offset(zone: ZoneInfo, at: float) -> float:
    return (datetime.fromtimestamp(at, zone).utcoffset() or timedelta()).total_seconds()


def _change_between(zone: ZoneInfo, first: float, last: float) -> float | None:
    """The first moment after `first`, up to `last`, at which the clocks are changed."""
    offset = _offset(zone, first)
    while first < last:
        step = min(last, first + _STEP)
        if _offset(zone, step) != offset:
            return _bisected(zone, offset, math.floor(first), math.ceil(step))
        first = step
    return None


def _bisected(zone: ZoneInfo, offset: float, before: int, after: int) -> float:
    """Clocks are changed at whole seconds."""
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (middle, after) if _offset(zone, middle) == offset else (before, middle)
    return float(after)


def _cron(schedule: str) -> tuple[ZoneInfo, str]:
    _, name, *rest = [*schedule[: _LONGEST + 1].split(), "", ""]
    fields = " ".join(rest).strip()
    fields = _NAMED.get(fields.lower(), fields)
    if len(schedule) > _LONGEST or len(fields.split()) != 5:
        raise BadSchedule(f"a cron expression has five fields ({_FIELDS}), as in '0 8 * * 1-5', not {fields[:80]!r}")
    return zone_of(name), fields


@lru_cache(1000)
def zone_of(name: str) -> ZoneInfo:
    """Raises BadSchedule."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # not there, a folder of them, or no name at all
        raise BadSchedule(f"there is no time zone {name[:80]!r}; one is called as in Europe/Berlin, or UTC") from None


def _seconds(schedule: str) -> float:
    """How far apart its times are; 0 for a job that is due once."""
    if not schedule:
        return 0.0
    try:
        every = float(schedule.removeprefix(_EVERY)) if schedule.startswith(_EVERY) else math.nan
    except ValueError:
        every = math.nan
    if not 1 <= every < math.inf:
        raise BadSchedule(
            "a schedule is empty (once), `every SECONDS`, of at least 1, or `cron ZONE FIELDS`, not "
            f"{schedule[:_LONGEST]!r}"
        )
    return every
