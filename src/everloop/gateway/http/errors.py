"""What a client is told when something is not as it wished: the one `Refused`, and every error of ours as one.

Clients of the WebSocket, `/api` and the rest of the gateway are told by `refused_by`; those of `/v1` and `/message`,
whose turns may fail in ways that OpenAI's clients have words for, by `refused_at_http_door`.
"""

import logging
import secrets
from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from ...errors import (
    EverloopError,
    MailRefused,
    ModelMissing,
    NoRoom,
    ProviderError,
    StoreError,
    ThreadGone,
    TurnFailed,
)

_log = logging.getLogger("everloop.gateway")

ENCODE = msgspec.json.Encoder().encode


class Refused(Exception):
    """A request that is not granted. Any handler may raise it; the middleware makes the answer.

    `message` is a sentence for whoever sent it. `param` names the field that is meant, and `told` is what a program is
    to know beside.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        seconds: int = 0,
        *,
        param: str | None = None,
        told: Mapping[str, object] = {},
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.seconds = seconds  # after which it may be tried again
        self.param = param
        self.told = told


_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    424: "turn_failed_error",
    429: "rate_limit_error",
}

# Why a turn can end without an answer, as HTTP says it. All else is a failure behind us: 502.
_TURNS = {
    "rate": (429, "rate_limit_exceeded"),
    "overflow": (400, "context_length_exceeded"),
    "context": (400, "context_length_exceeded"),
    "vision": (400, "images_not_supported"),
    "request": (400, "model_refused_request"),
    "endless": (424, "answer_too_long"),  # after a 5xx some clients would ask, and pay, again for as long
    "stopped": (424, "turn_stopped"),  # a 409 would be asked again by some clients, and a person has said stop
    "budget": (429, "insufficient_quota"),  # as OpenAI says it; its clients are told not to ask again
    "waiting": (423, "session_waits"),
    "closed": (503, "closing"),
    "deleted": (410, "conversation_deleted"),
}
BEHIND_US = 502


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
    """An error of everloop's own, in the codes of docs/websocket.md and docs/gateway.md."""
    match error:
        case NoRoom():
            return Refused(413, error.code, str(error))
        case MailRefused():
            return Refused(400, "refused", str(error))
        case TurnFailed(reason="waiting"):
            return Refused(423, "session_waits", str(error))
        case TurnFailed():
            return Refused(BEHIND_US, error.reason or "failed", str(error))
        case ThreadGone():
            return Refused(404, "not_found", "This conversation is not there any more.")
        case StoreError():
            return Refused(503, "store", str(error))
        case ProviderError():
            return Refused(BEHIND_US, error.kind, str(error))
    return Refused(500, "failed", str(error))


def refused_at_http_door(error: Exception) -> Refused:
    """Any error in the codes of docs/openai.md. What nobody expected is named by an id that stands in the log."""
    match error:
        case Refused():
            return error
        case NoRoom():
            return Refused(413, error.code, sentence(error))
        case MailRefused():
            return Refused(400, "message_refused", sentence(error))
        case ModelMissing():
            return Refused(404, "model_not_found", sentence(error), param="model")
        case TurnFailed(reason=reason):
            status, code = _TURNS.get(reason, (BEHIND_US, f"turn_failed_{reason}"))
            return Refused(status, code, sentence(error))
        case ProviderError(kind=kind):
            return Refused(BEHIND_US, f"provider_{kind}", sentence(error))
        case EverloopError():
            return Refused(503, "unavailable", sentence(error))
    id = secrets.token_hex(4)
    _log.error("a request failed (error %s)", id, exc_info=error, extra={"error_id": id})
    return Refused(500, "internal_error", f"Something went wrong here (error {id}).")


def noted(refused: Refused, error: Exception, session: str | None = None) -> Refused:
    """With a name under which the log tells more; what the client did wrong needs none."""
    if refused.status < 500 or refused.status == BEHIND_US:  # a turn's own failure is in the log already
        return refused
    id = secrets.token_hex(4)
    _log.error("%s (error %s)", error, id, exc_info=error, extra={"error_id": id, "session": session or ""})
    return Refused(refused.status, refused.code, f"{refused.message} (error {id})", refused.seconds)


def sentence(error: Exception) -> str:
    """Its text with a capital and a full stop."""
    text = str(error) or type(error).__name__
    if text.partition(" ")[0].rstrip(",;").isalpha():  # a file's name, an address or a setting is left as it is
        text = f"{text[:1].upper()}{text[1:]}"
    return text if text.endswith((".", "!", "?", ")")) else f"{text}."
