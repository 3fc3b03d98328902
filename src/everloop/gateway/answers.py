"""What a client is told when something is not as it wished: always JSON with a code and a sentence."""

import logging
import secrets
from typing import Any

import msgspec
from aiohttp import web

from ..core.errors import EverloopError, MailRefused, NoRoom, ProviderError, StoreError, TurnFailed

_log = logging.getLogger("everloop.gateway")

ENCODE = msgspec.json.Encoder().encode


class Refused(Exception):
    """A request that is not granted. Any handler may raise it; the middleware makes the answer."""

    def __init__(self, status: int, code: str, message: str, seconds: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.seconds = seconds  # after which it may be tried again


_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    424: "turn_failed_error",
    429: "rate_limit_error",
}


def type_of(status: int) -> str:
    """What OpenAI's clients call a failure of this status."""
    return _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")


def respond(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=ENCODE(body), status=status, content_type="application/json")


def refusal(refused: Refused, path: str = "") -> web.Response:
    error: dict[str, Any] = {"code": refused.code, "message": refused.message}
    if path.startswith("/v1/"):  # what the clients of that API look for
        error |= {"type": type_of(refused.status), "param": None}
        if refused.status == 401:
            error["code"] = "invalid_api_key"
    response = respond({"error": error}, refused.status)
    if refused.seconds:
        response.headers["Retry-After"] = str(refused.seconds)
    if refused.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def refused_by(error: EverloopError) -> Refused:
    """An error of the house, as a client is told it."""
    match error:
        case NoRoom():
            return Refused(413, "no_room", str(error))
        case MailRefused():
            return Refused(400, "refused", str(error))
        case TurnFailed(reason="waiting"):
            return Refused(423, "session_waits", str(error))
        case TurnFailed():
            return Refused(502, error.reason or "failed", str(error))
        case StoreError():
            return Refused(503, "store", str(error))
        case ProviderError():
            return Refused(502, error.kind, str(error))
    return Refused(500, "failed", str(error))


def noted(refused: Refused, error: Exception, session: str | None = None) -> Refused:
    """With a name under which the log tells more; what the client did wrong needs none."""
    if refused.status < 500 or refused.status == 502:  # a turn's own failure is in the log already
        return refused
    id = secrets.token_hex(4)
    _log.error("%s (error %s)", error, id, exc_info=error, extra={"error_id": id, "session": session or ""})
    return Refused(refused.status, refused.code, f"{refused.message} (error {id})", refused.seconds)
