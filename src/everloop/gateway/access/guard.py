"""The middleware that every request passes: its name and page, its credentials, its permission, and what it is told
when it fails."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from aiohttp import web

from ...errors import EverloopError
from ...ports.audit import Authority, acting
from ..http.errors import Refused, noted, refusal, refused_by
from ..http.handler import Handler, Middleware
from .permissions import Permissions
from .principal import Principal

NONE = "send a token as Authorization: Bearer …, or log in"
WRONG = (
    "this token does not hold: it is wrong, was revoked, or its time is over. Make another with `everloop tokens "
    "create NAME`, and send it as Authorization: Bearer …"
)

NOBODY = Authority("", "nobody has shown who they are")


class Authenticator(Protocol):
    def check_origin(self, request: web.Request) -> None:
        """Raises Refused for a name that is not ours, or a page that may not call."""
        ...

    async def authenticate(self, request: web.Request) -> Principal | None: ...


Check = Callable[[web.Request], None]  # raises Refused


def guard(auth: Authenticator, permissions: Permissions, *checks: Check) -> Middleware:
    """`checks` are made of whoever was let in."""
    admit = partial(_admit, auth, permissions)

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            auth.check_origin(request)
            _check_encoding(request)
            await admit(request)
            request["admit"] = admit
            for check in checks:
                check(request)
            token = acting.set(_authority(request))
            try:
                return await handler(request)
            finally:
                acting.reset(token)
        except Refused as refused:
            return refusal(refused, request.path)
        except web.HTTPException as error:
            return _told(error, request)
        except EverloopError as error:
            return refusal(noted(refused_by(error), error), request.path)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:  # the border to every handler: a client never sees a traceback
            return refusal(noted(Refused(500, "internal", "something went wrong here"), error), request.path)

    return middleware


async def _admit(auth: Authenticator, permissions: Permissions, request: web.Request) -> None:
    """Raises Refused, unless whoever asks may; then `request["principal"]` says who it is."""
    permission = permissions.of(request)
    if permission is not None and permission.is_public:
        return
    principal = await auth.authenticate(request)
    if principal is None:
        raise Refused(401, "unauthorized", WRONG if "Authorization" in request.headers else NONE)
    if permission is not None:
        permission.check(principal)
    elif request.match_info.http_exception is None:  # there is a handler, but nobody has said who may call it
        raise Refused(404, "not_found", "there is nothing here")
    request["principal"] = principal


async def admit_again(request: web.Request) -> None:
    """For who has waited for long before they are given something: raises Refused when they would not be let in by
    now, because their token was revoked, has run out or may do less."""
    await request["admit"](request)


def _authority(request: web.Request) -> Authority:
    """For whom it is answered, as the audit tells it."""
    principal: Principal | None = request.get("principal")
    return principal.authority if principal else NOBODY


def _told(error: web.HTTPException, request: web.Request) -> web.StreamResponse:
    if error.status < 400:
        raise error
    codes = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}
    sentences = {404: "there is nothing here", 413: "the request is larger than what is taken"}
    code, sentence = codes.get(error.status, "bad_request"), sentences.get(error.status, error.reason.lower())
    response = refusal(Refused(error.status, code, sentence), request.path)
    if allow := error.headers.get("Allow"):
        response.headers["Allow"] = allow
    return response


def _check_encoding(request: web.Request) -> None:
    """Raises Refused for a body that would have to be unpacked: a little may become much (a decompression bomb)."""
    if "Content-Encoding" not in request.headers:
        return
    codings = {each.strip().lower() for each in ",".join(request.headers.getall("Content-Encoding", [])).split(",")}
    if codings - {"", "identity"}:
        raise Refused(415, "unsupported_encoding", "send the request as it is, without Content-Encoding")
