"""Routes of the API: answers on their way, and what runs for long."""

from ....core.people import Role
from .. import outbox, shapes
from ..route import ApiRoute

ROUTES = (
    ApiRoute(
        "GET",
        "/api/outbox",
        "Answers that a channel could not deliver",
        handle=outbox.list_undelivered,
        answers=shapes.OutboxList,
        least=Role.OWNER,
        needs="admin",
    ),
    ApiRoute(
        "POST",
        "/api/outbox/{id}/retry",
        "Try it again, now and for a day",
        handle=outbox.retry,
        answers=shapes.OutboxChanged,
        at=shapes.OfOutbox,
        body=shapes.Nothing,
        least=Role.OWNER,
        needs="admin",
    ),
    ApiRoute(
        "DELETE",
        "/api/outbox/{id}",
        "Never send it",
        handle=outbox.drop,
        answers=shapes.OutboxChanged,
        at=shapes.OfOutbox,
        least=Role.OWNER,
        needs="admin",
    ),
    ApiRoute(
        "GET",
        "/api/tasks",
        "What runs for as long as the gateway does, and how it stands",
        handle=outbox.list_tasks,
        answers=shapes.TaskList,
        least=Role.OWNER,
        needs="admin",
    ),
)
