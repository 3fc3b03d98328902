"""Routes of the API: personas."""

from ....core.people import Role
from .. import persona_shapes, personas, shapes
from ..route import ApiRoute

_ALL = ("admin", "read", "chat", "approve")  # as the setting `personas` needs

ROUTES = (
    ApiRoute(
        "GET",
        "/api/personas",
        "Who the agent is, and at which places",
        handle=personas.list_personas,
        answers=persona_shapes.PersonaList,
        least=Role.ADMIN,
        needs="admin",
    ),
    ApiRoute(
        "POST",
        "/api/personas",
        "Make a persona",
        handle=personas.add_persona,
        answers=persona_shapes.PersonaSaved,
        body=persona_shapes.AddingPersona,
        least=Role.OWNER,
        needs=_ALL,
        status=201,
    ),
    ApiRoute(
        "PATCH",
        "/api/personas/{name}",
        "Change a persona",
        handle=personas.change_persona,
        answers=persona_shapes.PersonaSaved,
        at=persona_shapes.OfPersona,
        body=persona_shapes.ChangingPersona,
        least=Role.OWNER,
        needs=_ALL,
    ),
    ApiRoute(
        "DELETE",
        "/api/personas/{name}",
        "Remove a persona and its files",
        handle=personas.remove_persona,
        answers=persona_shapes.PersonaTold,
        at=persona_shapes.OfPersona,
        least=Role.OWNER,
        needs=_ALL,
    ),
    ApiRoute(
        "POST",
        "/api/personas/{name}/use",
        "Have a persona answer at a place; `none` as its name: nobody of them",
        handle=personas.use_persona,
        answers=persona_shapes.PersonaTold,
        at=persona_shapes.OfPersona,
        body=persona_shapes.UsingPersona,
        least=Role.OWNER,
        needs=_ALL,
    ),
    ApiRoute(
        "GET",
        "/api/sessions/{id}/persona",
        "Which persona answers in it, and by which rule",
        handle=personas.persona_of_session,
        answers=persona_shapes.PersonaAnswering,
        at=shapes.OfSession,
    ),
)
