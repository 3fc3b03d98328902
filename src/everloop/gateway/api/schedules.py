"""Schedules: everyone's own. Those of others the owner sees and stops at the terminal, and not here."""

from typing import Any

from msgspec import UNSET, Struct

from ...errors import MailRefused
from ...ports.schedules import Asker, ScheduleRow
from ..http.errors import Refused, sentence
from .route import ApiAnswer, ApiCall
from .schedule_shapes import ScheduleList, ScheduleRunList, ScheduleSaved, ScheduleTold, shown, shown_run


async def list_schedules(call: ApiCall) -> ApiAnswer:
    desk = call.agent.schedules.desk
    rows = await desk.listed(_asker(call))
    return ScheduleList([shown(row, desk.next_times(row)) for row in rows])


async def add_schedule(call: ApiCall) -> ApiAnswer:
    key = f"api {call.principal.user} {call.body.key}" if call.body.key else ""
    return await _saved(call, await call.agent.schedules.desk.create(_asker(call), _fields(call.body), key))


async def change_schedule(call: ApiCall) -> ApiAnswer:
    desk, asker, fields = call.agent.schedules.desk, _asker(call), _fields(call.body)
    row = await _found(call)
    if fields:
        row = await desk.edit(asker, row.schedule.id, fields)
    if call.body.enabled is not UNSET and call.body.enabled != row.enabled:
        row = await desk.enable(asker, row.schedule.id, call.body.enabled)
    return await _saved(call, row)


async def remove_schedule(call: ApiCall) -> ApiAnswer:
    row = await _found(call)
    gone = await call.agent.schedules.desk.remove(_asker(call), row.schedule.id)
    return ScheduleTold(f"{gone.name} is removed.")


async def run_schedule(call: ApiCall) -> ApiAnswer:
    row = await _found(call)
    return ScheduleTold(await call.agent.schedules.act(_asker(call), "run", row.schedule.id, {}))


async def list_schedule_runs(call: ApiCall) -> ApiAnswer:
    row = await _found(call)
    runs = await call.agent.schedules.desk.log(_asker(call), row.schedule.id)
    return ScheduleRunList([shown_run(run) for run in runs])


def _asker(call: ApiCall) -> Asker:
    """What a person may approve themselves they may also make by hand."""
    who = call.principal
    return Asker(who.user, who.role, by_hand=who.may("approve"))


def _fields(asked: Struct) -> dict[str, Any]:
    given = {name: getattr(asked, name) for name in asked.__struct_fields__ if name not in ("enabled", "key")}
    return {name: value for name, value in given.items() if value is not UNSET}


async def _found(call: ApiCall) -> ScheduleRow:
    """Raises Refused."""
    try:
        return await call.agent.schedules.desk.find(_asker(call), call.path.id)
    except MailRefused as error:
        raise Refused(404, "not_found", sentence(error)) from error


async def _saved(call: ApiCall, row: ScheduleRow) -> ScheduleSaved:
    desk = call.agent.schedules.desk
    return ScheduleSaved(shown(row, desk.next_times(row)), await desk.monthly_cost(row))
