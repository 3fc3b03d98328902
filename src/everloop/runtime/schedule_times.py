"""When something is to happen, as people say it: `at 08:00`, `after 20m`, `every 2h`, `cron 0 8 * * 1-5`."""

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from ..errors import BadSchedule

SAID = (
    "say when as `at 08:00`, `at 2027-01-31 08:00`, `after 20m`, `every 2h`, `cron 0 8 * * 1-5` (minute, hour, "
    "day, month, weekday) or `hook`"
)
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_PART = re.compile(r"(\d{1,6})\s*(s|min|m|h|d|w)")
_FORMATS = ("%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
LONGEST = 200  # characters
FURTHEST = 50 * 366 * 86_400.0  # seconds ahead


class When(Struct, frozen=True):
    """As it was said, the rule by which it goes on ("": once), and its first time, if it is known."""

    said: str
    rule: str = ""
    first: float | None = None
    hook: bool = False


def when_of(text: str, zone: str, now: float) -> When:
    """Raises BadSchedule."""
    said = " ".join(text[: LONGEST + 1].split())
    word, _, rest = said.partition(" ")
    if len(said) > LONGEST:
        raise BadSchedule(f"this is too long for a time; {SAID}")
    match word.lower():
        case "hook" if not rest:
            return When("hook", hook=True)
        case "at":
            return When(said, first=moment_of(rest, zone, now))
        case "after" | "in":
            return When(said, first=_within_reach(now + seconds_in(rest), now))
        case "every":
            every = seconds_in(rest)
            return When(said, f"every {every:.15g}", now + every)
        case "cron":
            return When(said, f"cron {zone} {rest}")
    if len(said.split()) == 5 or said.startswith("@"):
        return When(f"cron {said}", f"cron {zone} {said}")
    raise BadSchedule(f"{said[:80]!r} is no time; {SAID}")


def seconds_in(text: str) -> float:
    """As in 90s, 20m, 2h30m, 7d. Raises BadSchedule."""
    plain = text.strip().lower()
    parts = _PART.findall(plain)
    if not parts or _PART.sub("", plain).strip():
        raise BadSchedule(f"{text[:80]!r} is no time; say one such as 20m, 2h30m or 7d")
    seconds = float(sum(int(count) * _UNITS[unit] for count, unit in parts))
    if not 1 <= seconds <= FURTHEST:
        raise BadSchedule(f"{text[:80]!r} is no time between 1s and 50 years")
    return seconds


def moment_of(text: str, zone: str, now: float) -> float:
    """A time of day, the next such; a day and a time; or these with their own offset. Raises BadSchedule."""
    plain = text.strip()
    if found := re.fullmatch(r"(\d{1,2}):(\d\d)", plain):
        return _next_at(int(found[1]), int(found[2]), zone_named(zone), now)
    for form in _FORMATS:
        for with_offset in ("", "%z"):
            try:
                then = datetime.strptime(plain, form + with_offset)
            except ValueError:
                continue
            at = (then if with_offset else then.replace(tzinfo=zone_named(zone))).timestamp()
            return _within_reach(at, now)
    raise BadSchedule(f"{text[:80]!r} is no time; say it as 08:00 or 2027-01-31 08:00")


def quiet_left(quiet: str, now: float, zone: str) -> float:
    """Seconds until hours such as 22:00-07:00 are over; 0 outside of them."""
    if not quiet:
        return 0.0
    begin, end = (tuple(map(int, each.split(":"))) for each in quiet.split("-"))
    here = datetime.fromtimestamp(now, ZoneInfo(zone))
    at = (here.hour, here.minute)
    inside = begin <= at < end if begin <= end else at >= begin or at < end
    if not inside:
        return 0.0
    over = here.replace(hour=end[0], minute=end[1], second=0, microsecond=0, fold=0)
    if over.timestamp() <= now:
        over += timedelta(days=1)
    return over.timestamp() - now


def _next_at(hour: int, minute: int, zone: ZoneInfo, now: float) -> float:
    if hour > 23 or minute > 59:
        raise BadSchedule(f"there is no {hour:02}:{minute:02} on a clock")
    today = datetime.fromtimestamp(now, zone).replace(hour=hour, minute=minute, second=0, microsecond=0, fold=0)
    while today.timestamp() <= now:
        today += timedelta(days=1)
    return today.timestamp()


def _within_reach(at: float, now: float) -> float:
    if at <= now:
        raise BadSchedule("that time is over; say one that is to come")
    if at > now + FURTHEST:
        raise BadSchedule("that time is more than 50 years ahead")
    return at


def zone_named(name: str) -> ZoneInfo:
    """Raises BadSchedule."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise BadSchedule(f"there is no time zone {name[:80]!r}; one is called as in Europe/Berlin, or UTC") from None
