"""Routes of the API: how the house stands."""

from ....core.people import Role
from ....ports.house_status import HouseStatus
from .. import status
from ..route import ApiRoute

ROUTES = (
    ApiRoute(
        "GET",
        "/api/status",
        "How the whole house stands: who answers, channels, schedules, tasks, costs, disk, errors, what is broken",
        handle=status.show_status,
        answers=HouseStatus,
        least=Role.OWNER,
        needs="admin",
        further={409: "the settings file has been spoiled"},
    ),
)
