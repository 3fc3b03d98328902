"""Routes of the API: a person takes along what is theirs, or is erased."""

from ....core.people import Role
from .. import leaving, leaving_shapes, people_shapes
from ..route import ApiRoute

ROUTES = (
    ApiRoute(
        "GET",
        "/api/users/{id}/export",
        "All that is yours, as a zip; the owner is handed anybody's",
        handle=leaving.export_person,
        at=people_shapes.OfPerson,
        needs=("read", "chat"),  # it is all of it, the workspace too
    ),
    ApiRoute(
        "POST",
        "/api/users/{id}/erase",
        "Erase somebody for good, with all that is theirs",
        handle=leaving.erase_person,
        answers=leaving_shapes.PersonErased,
        at=people_shapes.OfPerson,
        query=leaving_shapes.ConfirmingErasure,
        least=Role.ADMIN,
        needs=("admin", "read", "chat", "approve"),
    ),
)
