"""Making, changing and running schedules for people, whatever they speak through: the tool, a command, the API.

What somebody may do is looked up when they do it, and again when a schedule fires. What is refused is told in a
sentence, as MailRefused.
"""

import secrets
from collections.abc import Callable, Mapping
from hashlib import sha256
from itertools import pairwise
from typing import Any, Protocol, get_args

from msgspec import Struct, structs

from ..core.mail import Address
from ..core.people import OWNER, Role, is_chat
from ..errors import BadSchedule, MailRefused
from ..ports import Archive, Bus, Clock, Log
from ..ports.schedules import (
    Asker,
    Does,
    FiredSchedule,
    Firing,
    Misfire,
    Overlap,
    Schedule,
    ScheduleRow,
    ScheduleRun,
    Schedules,
)
from .schedule_times import When, moment_of, when_of, zone_named
from .scheduler import tell_of

GUESTS = "schedules are not for guests"
IN_CIRCLES = (
    "nobody has asked for this but a schedule, and what one begins makes or runs no other that asks the agent or runs "
    "a command: it could go on for ever; a `message:` can be made, and a poll or `every` is made by whoever wants it"
)
LONGEST, LONGEST_NAME = 10_000, 80  # characters
LOOKED_AT = 20  # times, between which the least pause is looked for
MONTH = 30 * 86_400.0
FIELDS = {
    *("name", "does", "text", "when", "zone", "session", "misfire", "overlap", "retries", "max_runs", "until"),
    *("polls", "condition"),
}
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "does": get_args(Does),
    "misfire": get_args(Misfire),
    "overlap": get_args(Overlap),
}
_MOST = {"retries": 5, "max_runs": 1_000_000}


class ScheduleRules(Struct, frozen=True):
    """By the settings: the clock that is meant where none is named, how many somebody may have, and the least seconds
    between two turns, and between two of anything else."""

    zone: str = "UTC"
    most: int = 50
    least_between_turns: float = 300.0
    least: float = 60.0


class ScheduleTimes(Protocol):
    """The times of a rule. Raises BadSchedule."""

    def next_times(self, rule: str, first: float, count: int) -> list[float]: ...

    def first_time(self, rule: str, after: float) -> float: ...


class ScheduleStore(Schedules, Firing, Archive, Log, Protocol):
    """What it asks of the store."""


class ScheduleDesk:
    def __init__(self, store: ScheduleStore, bus: Bus, clock: Clock, rules: Callable[[], ScheduleRules]) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._rules = rules

    async def create(
        self, asker: Asker, fields: Mapping[str, Any], key: str = "", *, paused: bool = False
    ) -> ScheduleRow:
        """`key` names the attempt: the same twice is one schedule. One that is `paused` has no time until it is let
        run. Raises MailRefused."""
        self._check_role(asker)
        id = sha256(key.encode()).hexdigest()[:8] if key else secrets.token_hex(4)
        if key and (known := await self._store.schedule(id)) and known.schedule.owner == asker.person:
            return known
        session = str(fields.get("session") or asker.session)
        begun = Schedule(id=id, owner=asker.person, name="", does="turn", text="", session=session)
        begun = structs.replace(begun, zone=self._rules().zone)
        schedule, due = await self._with(begun, {"when": "", **fields}, asker)
        if not await self._store.add_schedule(schedule, None if paused else due, self._rules().most):
            raise MailRefused("there is a schedule of this id already; try again")
        return await self._put(schedule, None, enabled=False) if paused else await self._row(id)

    async def edit(self, asker: Asker, id: str, fields: Mapping[str, Any]) -> ScheduleRow:
        """What is not named stays as it is. Raises MailRefused."""
        self._check_role(asker)
        row = await self.find(asker, id)
        _check_there(asker, row.schedule)
        schedule, due = await self._with(row.schedule, fields, asker)
        if "when" not in fields and "zone" not in fields and row.next is not None:
            due = row.next  # other words do not put it off
        return await self._put(schedule, due, row.enabled)

    async def enable(self, asker: Asker, id: str, enabled: bool) -> ScheduleRow:
        """The owner may also stop what is somebody else's. Raises MailRefused."""
        self._check_role(asker)
        row = await self.find(asker, id, others=not enabled)
        if enabled:
            _check_there(asker, row.schedule)
            _check_asked(asker, row.schedule)
        due = self._due(row.schedule) if enabled else None
        return await self._put(row.schedule, due, enabled)

    async def remove(self, asker: Asker, id: str) -> Schedule:
        """The owner may also remove what is somebody else's. Raises MailRefused."""
        row = await self.find(asker, id, others=True)
        await self._store.drop_schedule(row.schedule.owner, row.schedule.id)
        return row.schedule

    async def run(self, asker: Asker, id: str, key: str = "") -> FiredSchedule | None:
        """Now, beside its times; once for a key. Raises MailRefused."""
        self._check_role(asker)
        row = await self.find(asker, id)
        _check_there(asker, row.schedule)
        _check_asked(asker, row.schedule)
        fired = await self._store.run_schedule(row.schedule.id, key or secrets.token_hex(8))
        if fired is not None:
            tell_of(fired, self._bus)
        return fired

    async def listed(self, asker: Asker, *, everyones: bool = False) -> list[ScheduleRow]:
        """Their own; the owner may see everyone's."""
        return await self._store.schedules("" if everyones and asker.role >= Role.OWNER else asker.person)

    async def find(self, asker: Asker, id: str, *, others: bool = False) -> ScheduleRow:
        """By its id or its name; with `others` for the owner also somebody else's, who would never put words into it:
        it runs with their rights. Of anyone else's one hears what one hears of none. Raises MailRefused."""
        mine = await self._store.schedules(asker.person)
        found = [row for row in mine if row.schedule.id == id] or [row for row in mine if row.schedule.name == id]
        if not found and others and asker.role >= Role.OWNER:
            row = await self._store.schedule(id)
            found = [row] if row else []
        if len(found) != 1:
            there = f"several schedules are called {id[:80]!r}: name one by its id" if found else ""
            raise MailRefused(there or f"there is no schedule {id[:80]!r} of yours")
        return found[0]

    async def log(self, asker: Asker, id: str, limit: int = 20) -> list[ScheduleRun]:
        """What was said in a group is told there alone. Raises MailRefused."""
        schedule = (await self.find(asker, id)).schedule
        runs = await self._store.schedule_runs(schedule.id, limit)
        return runs if _is_there(asker, schedule) else [structs.replace(run, result="") for run in runs]

    def next_times(self, row: ScheduleRow, count: int = 3) -> list[float]:
        if row.next is None:
            return []
        times = self._store.next_times(row.schedule.rule, row.next, count)
        return [at for at in times if not row.schedule.until or at <= row.schedule.until]

    async def monthly_cost(self, row: ScheduleRow) -> str:
        """What it is likely to cost in a month, in a sentence; "" where it costs nothing."""
        schedule = row.schedule
        if schedule.does != "turn":
            return ""
        each = await self._store.turn_cost(schedule.owner)
        if each is None:
            return "What it costs is not known: no turn of yours with a known price has been answered lately."
        if schedule.hook:
            return f"A turn of yours costs about ${each:.4f}; how often its hook is called is not known."
        times = self._times_a_month(row)
        return f"It is likely to cost about ${each * times:.2f} a month: {times} turn(s) of about ${each:.4f}."

    def _times_a_month(self, row: ScheduleRow) -> int:
        schedule = row.schedule
        if row.next is None:
            return 0
        times = self._store.next_times(schedule.rule, row.next, LOOKED_AT)
        ahead = [at for at in times if at < row.next + MONTH]
        count = len(ahead)
        if count == LOOKED_AT:
            count = round(MONTH * (LOOKED_AT - 1) / (times[-1] - times[0]))
        if schedule.polls:
            count = 1
        return min(count, schedule.max_runs) if schedule.max_runs else count

    async def _row(self, id: str) -> ScheduleRow:
        row = await self._store.schedule(id)
        if row is None:
            raise MailRefused("the schedule was removed meanwhile")
        return row

    async def _put(self, schedule: Schedule, due: float | None, enabled: bool) -> ScheduleRow:
        if not await self._store.change_schedule(schedule, due, enabled):
            raise MailRefused("the schedule was removed meanwhile")
        return await self._row(schedule.id)

    def _check_role(self, asker: Asker) -> None:
        if asker.role < Role.USER:
            raise MailRefused(GUESTS)

    async def _with(self, schedule: Schedule, fields: Mapping[str, Any], asker: Asker) -> tuple[Schedule, float | None]:
        """With these fields in place of its own, and its next time. Raises MailRefused."""
        schedule, due = drafted(schedule, fields, rules=self._rules(), times=self._store, now=self._clock.now())
        schedule = structs.replace(schedule, by_hand=asker.by_hand and asker.person == schedule.owner)
        _check_asked(asker, schedule)
        return await self._at_its_place(schedule, asker), due

    def _due(self, schedule: Schedule) -> float | None:
        return _first(schedule, None, self._store, self._clock.now())

    async def _at_its_place(self, schedule: Schedule, asker: Asker) -> Schedule:
        """Where it answers has to be a conversation of theirs, or the one in which they speak. Raises MailRefused."""
        try:
            Address.parse(schedule.session)
        except MailRefused as error:
            raise MailRefused(f"say where it is to answer; {error}") from error
        row = await self._store.session(schedule.session)
        owner = schedule.owner
        if row is None:
            if schedule.owner != OWNER and schedule.session != asker.session:
                raise MailRefused(f"there is no conversation {schedule.session[:80]!r} of yours")
            return structs.replace(schedule, principal="")
        if row.owner == owner:
            return structs.replace(schedule, principal="")
        if is_chat(row.owner) and (schedule.session == asker.session or schedule.principal == row.owner):
            return structs.replace(schedule, principal=row.owner)
        raise MailRefused(f"there is no conversation {schedule.session[:80]!r} of yours")


def drafted(
    schedule: Schedule, fields: Mapping[str, Any], *, rules: ScheduleRules, times: ScheduleTimes, now: float
) -> tuple[Schedule, float | None]:
    """A schedule with these fields in place of its own, and its next time: as far as it can be said without knowing who
    asks, and which conversations there are. Raises MailRefused."""
    _check_names(fields)
    plain = {name: value for name, value in fields.items() if name not in ("when", "until", "zone")}
    schedule = structs.replace(schedule, **plain)
    if zone := fields.get("zone"):
        schedule = structs.replace(schedule, zone=zone_named(str(zone)).key)
    when: When | None = None
    if "when" in fields or "zone" in fields:
        when = when_of(str(fields.get("when", schedule.when)), schedule.zone, now)
        schedule = structs.replace(schedule, when=when.said, rule=when.rule, hook=when.hook)
    if "until" in fields:
        until = str(fields["until"] or "")
        schedule = structs.replace(schedule, until=moment_of(until, schedule.zone, now) if until else 0.0)
    schedule = _named(schedule)
    _check(schedule)
    due = _first(schedule, when, times, now)
    _check_pace(schedule, due, rules, times)
    return schedule, due


def _first(schedule: Schedule, when: When | None, times: ScheduleTimes, now: float) -> float | None:
    """Its next time from now on; None where no clock has it run. Raises BadSchedule."""
    if schedule.hook:
        return None
    when = when or when_of(schedule.when, schedule.zone, now)
    return when.first if when.first is not None else times.first_time(when.rule, now)


def _check_pace(schedule: Schedule, due: float | None, rules: ScheduleRules, times: ScheduleTimes) -> None:
    """Raises MailRefused."""
    if due is None or not schedule.rule:
        return
    least = rules.least_between_turns if schedule.does == "turn" and not schedule.polls else rules.least
    following = times.next_times(schedule.rule, due, LOOKED_AT)
    if any(later - earlier < least for earlier, later in pairwise(following)):
        kind = "turns" if least == rules.least_between_turns else "times"
        raise MailRefused(f"that is too often: at least {least:g} seconds lie between two {kind} of a schedule")


def _check_asked(asker: Asker, schedule: Schedule) -> None:
    """Raises MailRefused where a schedule would lead to another, and that to the next."""
    if asker.unasked and schedule.does != "message":
        raise MailRefused(IN_CIRCLES)


def _is_there(asker: Asker, schedule: Schedule) -> bool:
    """Whoever speaks in a group now belongs to it; who only did so once may not any more. Nobody else knows that."""
    return not schedule.principal or asker.session == schedule.session or asker.role >= Role.OWNER


def _check_there(asker: Asker, schedule: Schedule) -> None:
    """Raises MailRefused for a schedule of a group that is changed or run from elsewhere."""
    if not _is_there(asker, schedule):
        raise MailRefused(
            f"{schedule.name} works in a group: change or run it there; here it can be stopped or removed"
        )


def _check_names(fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if name not in FIELDS:
            raise MailRefused(f"a schedule has no {name[:40]!r}; it has {', '.join(sorted(FIELDS))}")
        if name in _CHOICES and value not in _CHOICES[name]:
            raise MailRefused(f"{name} is one of {', '.join(_CHOICES[name])}, not {str(value)[:40]!r}")
        if name in _MOST and not (isinstance(value, int) and 0 <= value <= _MOST[name]):
            raise MailRefused(f"{name} is a number from 0 to {_MOST[name]:,}, not {str(value)[:40]!r}")


def _named(schedule: Schedule) -> Schedule:
    """By its own name, else by what it says first."""
    name = " ".join(schedule.name.split()) or " ".join(schedule.text.split()[:6])
    return structs.replace(schedule, name=name[:LONGEST_NAME], text=schedule.text.encode("utf-8", "replace").decode())


def _check(schedule: Schedule) -> None:
    """Raises MailRefused."""
    if not schedule.text.strip() or len(schedule.text) > LONGEST:
        raise MailRefused(f"a schedule says what it does: some text, at most {LONGEST:,} characters")
    if schedule.overlap == "both" and schedule.does != "command":
        raise MailRefused("what is said in a conversation has an order: overlap is skip or queue; both is for commands")
    if bool(schedule.polls) != bool(schedule.condition):
        raise MailRefused("a poll needs both: what it looks at (polls), and until when (condition)")
    if schedule.polls and not schedule.rule.startswith(("every ", "cron ")):
        raise BadSchedule("a poll looks again and again: say when as `every 10m`, or by cron")
