"""What is asked and told about schedules."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ...ports.schedules import ScheduleRow, ScheduleRun
from .shapes import ApiInput

_Words = Annotated[str, Meta(max_length=300)]
_Text = Annotated[str, Meta(max_length=10_000)]
_Does = Literal["turn", "message", "command"]
_Misfire = Literal["late", "skip", "ask"]
_Overlap = Literal["skip", "queue", "both"]
_Retries = Annotated[int, Meta(ge=0, le=5)]
_Runs = Annotated[int, Meta(ge=0, le=1_000_000)]


class OfSchedule(ApiInput, frozen=True):
    id: Annotated[str, Meta(min_length=1, max_length=80)]


class ChangingSchedule(ApiInput, frozen=True):
    """What is not said stays as it is. `when` is as in `at 08:00`, `after 20m`, `every 2h`, `cron 0 8 * * 1-5`."""

    when: _Words | UnsetType = UNSET
    does: _Does | UnsetType = UNSET
    text: _Text | UnsetType = UNSET
    name: _Words | UnsetType = UNSET
    session: _Words | UnsetType = UNSET
    zone: _Words | UnsetType = UNSET
    misfire: _Misfire | UnsetType = UNSET
    overlap: _Overlap | UnsetType = UNSET
    retries: _Retries | UnsetType = UNSET
    max_runs: _Runs | UnsetType = UNSET
    until: _Words | UnsetType = UNSET
    polls: _Words | UnsetType = UNSET
    condition: _Words | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET


class AddingSchedule(ApiInput, frozen=True):
    """`session` is where it answers; the rest as for a change. `key` names the attempt: the same twice is one."""

    when: _Words
    text: _Text
    session: _Words
    does: _Does = "turn"
    name: _Words | UnsetType = UNSET
    zone: _Words | UnsetType = UNSET
    misfire: _Misfire | UnsetType = UNSET
    overlap: _Overlap | UnsetType = UNSET
    retries: _Retries | UnsetType = UNSET
    max_runs: _Runs | UnsetType = UNSET
    until: _Words | UnsetType = UNSET
    polls: _Words | UnsetType = UNSET
    condition: _Words | UnsetType = UNSET
    key: _Words = ""


class ScheduleShown(Struct, frozen=True):
    """Times are Unix time, `next` those that come. `over` says why it runs no more."""

    id: str
    name: str
    owner: str
    does: str
    text: str
    when: str
    zone: str
    session: str
    misfire: str
    overlap: str
    retries: int
    max_runs: int
    until: float
    polls: str
    condition: str
    enabled: bool
    next: list[float]
    runs: int
    last: float
    over: str


class ScheduleList(Struct, frozen=True):
    schedules: list[ScheduleShown]


class ScheduleSaved(Struct, frozen=True):
    """`cost` says what it is likely to cost in a month; "" where it costs nothing."""

    schedule: ScheduleShown
    cost: str = ""


class ScheduleRunShown(Struct, frozen=True):
    due: float
    begun: float
    state: str
    result: str
    cost: float | None
    ended: float


class ScheduleRunList(Struct, frozen=True):
    runs: list[ScheduleRunShown]


class ScheduleTold(Struct, frozen=True):
    told: str


def shown(row: ScheduleRow, times: list[float]) -> ScheduleShown:
    each = row.schedule
    same: dict[str, Any] = {
        name: getattr(each, name) for name in ScheduleShown.__struct_fields__ if name in each.__struct_fields__
    }
    return ScheduleShown(**same, enabled=row.enabled, next=times, runs=row.fires, last=row.last, over=row.over)


def shown_run(run: ScheduleRun) -> ScheduleRunShown:
    return ScheduleRunShown(run.due, run.begun, run.state, run.result, run.cost, run.ended)
