"""Routes of the API: the heartbeat."""

from ....core.people import Role
from .. import heartbeat, heartbeat_shapes, schedule_shapes
from ..route import ApiRoute

ROUTES = (
    ApiRoute(
        "GET",
        "/api/heartbeat",
        "When your HEARTBEAT.md was looked at, what was decided, and when it is looked at next",
        handle=heartbeat.show_heartbeat,
        answers=heartbeat_shapes.HeartbeatStanding,
    ),
    ApiRoute(
        "POST",
        "/api/heartbeat/run",
        "Look at your HEARTBEAT.md now, also in quiet hours",
        handle=heartbeat.run_heartbeat,
        answers=schedule_shapes.ScheduleTold,
    ),
    ApiRoute(
        "POST",
        "/api/heartbeat/allow",
        "Let the checks of your HEARTBEAT.md run as they are written now",
        handle=heartbeat.allow_checks,
        answers=schedule_shapes.ScheduleTold,
        needs="approve",
        least=Role.ADMIN,
    ),
)
