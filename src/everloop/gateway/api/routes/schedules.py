"""Routes of the API: schedules."""

from .. import schedule_shapes, schedules
from ..route import ApiRoute

ROUTES = (
    ApiRoute(
        "GET",
        "/api/schedules",
        "Your schedules, the next first",
        handle=schedules.list_schedules,
        answers=schedule_shapes.ScheduleList,
    ),
    ApiRoute(
        "POST",
        "/api/schedules",
        "Make a schedule",
        handle=schedules.add_schedule,
        answers=schedule_shapes.ScheduleSaved,
        body=schedule_shapes.AddingSchedule,
        status=201,
    ),
    ApiRoute(
        "PATCH",
        "/api/schedules/{id}",
        "Change a schedule, stop it or let it run again",
        handle=schedules.change_schedule,
        answers=schedule_shapes.ScheduleSaved,
        at=schedule_shapes.OfSchedule,
        body=schedule_shapes.ChangingSchedule,
    ),
    ApiRoute(
        "DELETE",
        "/api/schedules/{id}",
        "Remove a schedule, with what is known of its runs",
        handle=schedules.remove_schedule,
        answers=schedule_shapes.ScheduleTold,
        at=schedule_shapes.OfSchedule,
    ),
    ApiRoute(
        "POST",
        "/api/schedules/{id}/run",
        "Run a schedule now, beside its times",
        handle=schedules.run_schedule,
        answers=schedule_shapes.ScheduleTold,
        at=schedule_shapes.OfSchedule,
    ),
    ApiRoute(
        "GET",
        "/api/schedules/{id}/runs",
        "How its last runs went",
        handle=schedules.list_schedule_runs,
        answers=schedule_shapes.ScheduleRunList,
        at=schedule_shapes.OfSchedule,
    ),
)
