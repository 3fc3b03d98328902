"""Routes of the API: tokens and people."""

from ....core.people import Role
from .. import people, people_shapes, shapes, tokens
from ..route import ApiRoute

_ALL = ("admin", "read", "chat", "approve")

ROUTES = (
    ApiRoute(
        "GET", "/api/tokens", "Your tokens", tokens.list_tokens, shapes.TokenList, least=Role.ADMIN, needs="admin"
    ),
    ApiRoute(
        "POST",
        "/api/tokens",
        "Make a token, which is told this once",
        handle=tokens.create,
        answers=shapes.NewToken,
        body=shapes.Creating,
        least=Role.ADMIN,
        needs="admin",
        status=201,
    ),
    ApiRoute(
        "DELETE",
        "/api/tokens/{id}",
        "Let a token hold no longer, at once",
        handle=tokens.revoke,
        answers=shapes.Revoked,
        at=shapes.OfToken,
        least=Role.ADMIN,
        needs="admin",
    ),
    ApiRoute(
        "GET",
        "/api/users",
        "Who is known, and who waits to be let in",
        handle=people.list_people,
        answers=people_shapes.PersonList,
        least=Role.ADMIN,
        needs="admin",
    ),
    ApiRoute(
        "POST",
        "/api/users",
        "Introduce somebody",
        handle=people.introduce,
        answers=people_shapes.PersonChanged,
        body=people_shapes.Introducing,
        least=Role.ADMIN,
        needs=_ALL,  # whom one lets in, or becomes, may do all that
        status=201,
    ),
    ApiRoute(
        "POST",
        "/api/pairings",
        "Let in whoever was told this code",
        handle=people.pair,
        answers=people_shapes.PersonChanged,
        body=people_shapes.Pairing,
        least=Role.ADMIN,
        needs=_ALL,  # whom one lets in, or becomes, may do all that
        status=201,
    ),
    ApiRoute(
        "PATCH",
        "/api/users/{id}",
        "Give a name or a role, block or unblock",
        handle=people.change_person,
        answers=people_shapes.PersonChanged,
        at=people_shapes.OfPerson,
        body=people_shapes.ChangingPerson,
        least=Role.ADMIN,
        needs=_ALL,  # whom one lets in, or becomes, may do all that
    ),
    ApiRoute(
        "POST",
        "/api/users/{id}/invite",
        "A link by which they come into the page, once",
        handle=people.invite,
        answers=people_shapes.Invitation,
        at=people_shapes.OfPerson,
        body=people_shapes.Inviting,
        least=Role.OWNER,
        needs=_ALL,
        status=201,
    ),
    ApiRoute(
        "POST",
        "/api/users/{id}/accounts",
        "Let another account be the same person",
        handle=people.link_account,
        answers=people_shapes.PersonChanged,
        at=people_shapes.OfPerson,
        body=people_shapes.Linking,
        least=Role.OWNER,
        needs=_ALL,  # whom one lets in, or becomes, may do all that
        status=201,
    ),
    ApiRoute(
        "DELETE",
        "/api/users/{id}/accounts",
        "Let an account be nobody's again",
        handle=people.unlink_account,
        answers=people_shapes.PersonChanged,
        at=people_shapes.OfPerson,
        query=people_shapes.Linking,
        least=Role.OWNER,
        needs=_ALL,  # whom one lets in, or becomes, may do all that
    ),
)
