"""The heartbeat: everyone's own."""

from ...ports.schedules import Asker
from .heartbeat_shapes import HeartbeatStanding, standing
from .route import ApiAnswer, ApiCall
from .schedule_shapes import ScheduleTold


async def show_heartbeat(call: ApiCall) -> ApiAnswer:
    return await _standing(call)


async def run_heartbeat(call: ApiCall) -> ApiAnswer:
    return ScheduleTold(await call.agent.heartbeat.run(call.principal.user))


async def allow_checks(call: ApiCall) -> ApiAnswer:
    who = call.principal
    return ScheduleTold(await call.agent.heartbeat.allow(Asker(who.user, who.role, by_hand=who.may("approve"))))


async def _standing(call: ApiCall) -> HeartbeatStanding:
    desk, person = call.agent.heartbeat, call.principal.user
    return standing(await desk.shown(person), await desk.lines(person))
