"""Routes of the API: what people keep for themselves."""

from ....core.people import Role
from .. import own_secrets, own_shapes, setup_shapes
from ..route import ApiRoute

ROUTES = (
    ApiRoute(
        "GET",
        "/api/me/keys",
        "For which model providers you keep a key of your own",
        handle=own_secrets.own_keys,
        answers=own_shapes.OwnKeyList,
        least=Role.GUEST,
    ),
    ApiRoute(
        "PUT",
        "/api/me/keys/{name}",
        "Keep a key of your own: you are answered with it, and pay for that",
        handle=own_secrets.keep_own_key,
        answers=own_shapes.OwnKeyList,
        at=setup_shapes.OfProvider,
        body=setup_shapes.KeyToKeep,
    ),
    ApiRoute(
        "DELETE",
        "/api/me/keys/{name}",
        "Keep it no longer",
        handle=own_secrets.forget_own_key,
        answers=own_shapes.OwnKeyList,
        at=setup_shapes.OfProvider,
        least=Role.GUEST,
    ),
    ApiRoute(
        "GET",
        "/api/me/credentials",
        "What your tools may use in your name",
        handle=own_secrets.own_credentials,
        answers=own_shapes.OwnCredentialList,
        least=Role.GUEST,
    ),
    ApiRoute(
        "PUT",
        "/api/me/credentials/{name}",
        "Keep a credential for your tools, bound to hosts",
        handle=own_secrets.keep_credential,
        answers=own_shapes.OwnCredentialList,
        at=own_shapes.OfCredential,
        body=own_shapes.KeepingCredential,
    ),
    ApiRoute(
        "DELETE",
        "/api/me/credentials/{name}",
        "Keep it no longer",
        handle=own_secrets.forget_credential,
        answers=own_shapes.OwnCredentialList,
        at=own_shapes.OfCredential,
        least=Role.GUEST,
    ),
)
