"""Schedules that people make: what is to be done when, and what came of it each time.

A schedule is a row beside its job, which is the truth of when it is due. It fires in one transaction: the job's time is
claimed, the run is written, the letter is posted (or the command made a piece of work), and the next time is set.
"""

from typing import Literal, Protocol

from msgspec import Struct

from ..core.people import Role

CRON_SOURCE = "cron:"  # what begins the turns of schedules, before the id
SCHEDULE = "schedule"  # the kind of a schedule's job
COMMAND = "command"  # that of the work on one of its commands
RETRY = "retry"  # that of the letter by which one of its turns is tried again
POLL = "poll"  # the kind of a schedule's job that looks whether a condition holds

Does = Literal["turn", "message", "command"]
Misfire = Literal["late", "skip", "ask"]
Overlap = Literal["skip", "queue", "both"]
ScheduleRunState = Literal["running", "done", "failed", "skipped", "asked", "barred"]


class Schedule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`owner` is whose it is, with whose rights and at whose expense it runs; `principal` whose conversation `session`
    is, where that is somebody else, as in a group ("": the same).

    `when` is as it was said, `rule` as jobs have it ("": once). With `polls` (an address, or a tool and its arguments)
    it looks at each of its times whether `condition` holds, and does what it does when that is so, which is its end."""

    id: str
    owner: str
    name: str
    does: Does
    text: str
    session: str
    when: str = ""
    rule: str = ""
    zone: str = "UTC"
    principal: str = ""
    misfire: Misfire = "late"
    overlap: Overlap = "skip"
    retries: int = 0
    max_runs: int = 0  # 0: no end
    until: float = 0.0  # seconds since 1970, after which it fires no more; 0: no end
    polls: str = ""
    condition: str = ""
    hook: bool = False  # no clock has it run, but whoever knows its secret
    by_hand: bool = False  # its owner has written it themselves, and no model for them


class ScheduleRow(Struct, frozen=True):
    """A schedule as it stands. `over` says why it fires no more, "" while it does; `next` is None without a time."""

    schedule: Schedule
    enabled: bool = True
    next: float | None = None
    fires: int = 0
    last: float = 0.0
    over: str = ""


class ScheduleRun(Struct, frozen=True):
    """One of its times. `result` is what came of it in short, or why nothing did; `cost` in dollars, if it is known."""

    schedule: str
    event: str
    due: float
    begun: float
    state: ScheduleRunState
    result: str = ""
    thread: str = ""
    cost: float | None = None
    ended: float = 0.0


class FiredSchedule(Struct, frozen=True):
    """What has just fired, or was passed over; `thread` has mail now, unless it is ""."""

    schedule: str
    name: str
    owner: str
    state: ScheduleRunState
    thread: str = ""
    result: str = ""


class Asker(Struct, frozen=True):
    """Who wants something of schedules, with which role, and where that was said ("": nowhere). `by_hand`: themselves,
    and no model for them; `unasked`: a model, and not even they have said anything that led to it."""

    person: str
    role: Role
    session: str = ""
    by_hand: bool = False
    unasked: bool = False


class ScheduledWork(Struct, frozen=True):
    """What the job of a command is about: also in whose workspace it runs, and the conversation that it is told in, as
    it was when it was due."""

    schedule: str
    event: str
    due: float
    whose: str = ""
    thread: str = ""


class Schedules(Protocol):
    """Times are those of the store's clock. Raises StoreError."""

    async def add_schedule(self, schedule: Schedule, due: float | None, most: int) -> bool:
        """Keep it, to be due then, unless there is one of this id. None: no clock has it fire. Raises BadSchedule, and
        MailRefused when its owner has `most` already."""

    async def change_schedule(self, schedule: Schedule, due: float | None, enabled: bool) -> bool:
        """Put it in the place of the owner's of this id; its runs stay. Whether there was one. Raises BadSchedule."""

    async def drop_schedule(self, owner: str, id: str) -> bool:
        """Whether there was one to drop. It goes with its runs."""

    async def schedules(self, owner: str = "") -> list[ScheduleRow]:
        """The owner's, or everyone's, the next first."""

    async def schedule(self, id: str) -> ScheduleRow | None: ...

    async def schedule_runs(self, id: str, limit: int = 20) -> list[ScheduleRun]:
        """The latest first."""

    async def turn_cost(self, owner: str) -> float | None:
        """What a turn of theirs has cost on average, lately; None if that is not known."""

    def next_times(self, rule: str, first: float, count: int) -> list[float]:
        """So many times of a rule, `first` among them. Raises BadSchedule."""

    def first_time(self, rule: str, after: float) -> float:
        """The first time of a rule after this one. Raises BadSchedule."""


class Firing(Protocol):
    """What schedules do at their times. Raises StoreError."""

    async def fire_schedules(self, owner: str = "") -> list[FiredSchedule]:
        """Have each that is due fire, or pass it over by its policies; of one owner or of all."""

    async def run_schedule(self, id: str, key: str, least: float = 0.0) -> FiredSchedule | None:
        """Have it fire now, once for this key, beside its times. None: there is none, or it has for this key.

        With `least` it counts as one of its times, by its policies: not while it is stopped or over, and so many
        seconds after the last."""

    async def note_look(self, id: str, result: str, holds: bool | None) -> FiredSchedule | None:
        """A poll has looked. If its condition holds it does what it does, and is over; once, whoever says so again.
        None: it could not look, for the reason that is the `result`."""

    async def finish_run(
        self, work: ScheduledWork, state: ScheduleRunState, result: str, tell: str = "", outside: bool = False
    ) -> str:
        """Say what came of a command, once; and `tell` that in its conversation, where it may be strangers' words
        (`outside`). The thread that has mail now."""

    async def settle_turn(
        self, mail: int, *, failed: bool, result: str, cost: float | None, pause: float = 60.0
    ) -> None:
        """A turn has ended that a schedule had begun with this letter. One that has failed is tried again after
        `pause` seconds, if its schedule says so."""
