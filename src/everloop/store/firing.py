"""What a schedule does at one of its times, worked out from what is known then."""

from datetime import datetime

from ..core.mail import Address, Inbound, Notice, Telling
from ..ports.schedules import CRON_SOURCE, Schedule, ScheduleRunState
from .schedule import zone_of

LATE = 60.0  # seconds after which a time was missed; until then the house was only busy
BLOCKED = "whoever it is for is blocked"
NO_RIGHT = "schedules are not for guests, which they are now"
STILL_AT_IT = "the one before is not done yet"
ASKED = "It was due at {then}, when nobody was there. Run it now with `/cron run {id}`, or leave it."


def how_it_fires(schedule: Schedule, late: float, barred: str, is_running: bool) -> tuple[ScheduleRunState, str]:
    """What becomes of a time, and why, where nothing does. `late` is by how many seconds."""
    if barred:
        return "barred", barred
    missed = late > LATE
    if missed and schedule.misfire == "skip":
        return "skipped", f"it was missed, by {lasting(late)}"
    if missed and schedule.misfire == "ask":
        return "asked", f"it was missed, by {lasting(late)}"
    if is_running and schedule.overlap == "skip":
        return "skipped", STILL_AT_IT
    return ("done" if schedule.does == "message" else "running"), ""


def letter_of(schedule: Schedule, event: str, due: float, now: float, state: ScheduleRunState) -> Inbound:
    """What is posted where it answers; what it says is never taken for what a person said."""
    text, late = schedule.text, now - due > LATE
    if state == "asked":
        text = f"{schedule.name}: {ASKED.format(then=shown(due, now, schedule.zone), id=schedule.id)}"
    elif late:
        text = f"{text}\n({lateness(schedule, due, now)})"
    if state == "running" and schedule.does == "turn":
        notice = Notice(
            text,
            f"{CRON_SOURCE}{schedule.id}",
            schedule.owner,
            schedule.session,
            unattended=True,
            principal=schedule.principal,
        )
        return Inbound(Address.parse(schedule.session), event, notice, whose(schedule))
    return telling(schedule, event, text)


def telling(schedule: Schedule, event: str, text: str, outside: bool = False) -> Inbound:
    """A word of the house's own: no model is asked, and nothing is begun by it."""
    word = Telling(text, (), schedule.session, f"the schedule {schedule.id}", schedule.owner, outside)
    return Inbound(Address.parse(schedule.session), event, word, whose(schedule))


def whose(schedule: Schedule) -> str:
    """The principal of its conversation."""
    return schedule.principal or schedule.owner


def lateness(schedule: Schedule, due: float, now: float) -> str:
    """As in `due at 08:00, delivered 09:12`."""
    verb = "delivered" if schedule.does == "message" else "begun"
    return f"due at {shown(due, now, schedule.zone)}, {verb} {shown(now, now, schedule.zone)}"


def shown(at: float, now: float, zone: str) -> str:
    """By the clock of the schedule, with the day if it is another."""
    then, today = (datetime.fromtimestamp(each, zone_of(zone)) for each in (at, now))
    return f"{then:%H:%M}" if then.date() == today.date() else f"{then:%Y-%m-%d %H:%M}"


def lasting(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"
