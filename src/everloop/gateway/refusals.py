"""Why a request is not answered: a status, a code and a sentence, whatever shape a door gives them."""

import logging
import secrets
from collections.abc import Mapping

from ..core.errors import EverloopError, MailRefused, ModelMissing, NoRoom, ProviderError, TurnFailed

_log = logging.getLogger("everloop.gateway")

# Why a turn can end without an answer, as HTTP says it. All else is a failure behind us: 502.
_TURNS = {
    "rate": (429, "rate_limit_exceeded"),
    "overflow": (400, "context_length_exceeded"),
    "context": (400, "context_length_exceeded"),
    "vision": (400, "images_not_supported"),
    "request": (400, "model_refused_request"),
    "endless": (424, "answer_too_long"),  # after a 5xx some clients would ask, and pay, again for as long
    "stopped": (424, "turn_stopped"),  # a 409 would be asked again by some clients, and a person has said stop
    "guests": (403, "guest_limit"),
    "waiting": (423, "session_waits"),
    "closed": (503, "closing"),
}
BEHIND_US = 502


class Refused(Exception):
    """Its text is a sentence for whoever sent the request; `param` names the field that is meant, and `told` is what a
    program is to know beside."""

    def __init__(
        self,
        text: str,
        code: str = "invalid_request",
        *,
        status: int = 400,
        param: str | None = None,
        told: Mapping[str, object] = {},
    ) -> None:
        super().__init__(text)
        self.told = told
        self.code = code
        self.status = status
        self.param = param


def explain(error: Exception) -> Refused:
    """Any error as one that can be told. What nobody expected is named by an id that stands in the log."""
    match error:
        case Refused():
            return error
        case NoRoom():
            return Refused(_sentence(error), "no_room", status=413)
        case MailRefused():
            return Refused(_sentence(error), "message_refused")
        case ModelMissing():
            return Refused(_sentence(error), "model_not_found", status=404, param="model")
        case TurnFailed(reason=reason):
            status, code = _TURNS.get(reason, (BEHIND_US, f"turn_failed_{reason}"))
            return Refused(_sentence(error), code, status=status)
        case ProviderError(kind=kind):
            return Refused(_sentence(error), f"provider_{kind}", status=BEHIND_US)
        case EverloopError():
            return Refused(_sentence(error), "unavailable", status=503)
    id = secrets.token_hex(4)
    _log.error("a request failed (error %s)", id, exc_info=error, extra={"error_id": id})
    return Refused(f"Something went wrong here (error {id}).", "internal_error", status=500)


def _sentence(error: Exception) -> str:
    text = str(error) or type(error).__name__
    first = text.partition(" ")[0]
    if first.isalpha():  # a file's name, an address or a setting is left as it is
        text = f"{text[:1].upper()}{text[1:]}"
    return f"{text}{'' if text.endswith(('.', '!', '?', ')')) else '.'}"
