"""Asking a host again and again whether the person has agreed, as slowly as it wants (RFC 8628, section 3.5)."""

from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from msgspec import Struct

from ...errors import BadRequest, LoginDenied, LoginExpired, ProviderError, RateLimited
from . import DeviceCode, Sleep
from .tokens import Clock, again
from .wire import LoginAnswer

Granted = TypeVar("Granted")

SLOWER = 5.0  # seconds that each "slow_down" adds
PATIENCE = 5  # failures in a row that are taken for a bad connection

_PENDING = {"authorization_pending", "deviceauth_authorization_pending", "deviceauth_authorization_unknown"}
_EXPIRED = {"expired_token", "token_expired", "deviceauth_expired"}


class NotYet(Struct, frozen=True):
    """The person has not decided. `slower`: we ask too often; `interval` may say how often would be right."""

    slower: bool = False
    interval: float = 0.0


async def until_granted(
    name: str, asking: DeviceCode, ask: Callable[[], Awaitable[Granted | NotYet]], sleep: Sleep, now: Clock
) -> Granted:
    """What `ask` brings in the end. Raises LoginDenied, LoginExpired and whatever does not pass by itself."""
    interval, failures = asking.interval, 0
    while now() + interval < asking.expires:
        await sleep(interval)
        try:
            answer = await ask()
        except ProviderError as error:
            failures += 1
            if not error.retryable or failures >= PATIENCE:
                raise
            answer = NotYet(slower=isinstance(error, RateLimited))
        else:
            failures = 0
        if not isinstance(answer, NotYet):
            return answer
        if answer.slower:
            interval = max(interval + SLOWER, answer.interval)
    raise _expired(name)


def judge(name: str, answer: LoginAnswer, pending: Collection[int] = ()) -> NotYet:
    """A refusal that means: not yet, as one with a status in `pending` does unless it says otherwise.

    Raises LoginDenied, LoginExpired and BadRequest for those that mean never.
    """
    code = answer.error
    if code == "slow_down":
        return NotYet(slower=True, interval=answer.number("interval", 0.0))
    if code == "access_denied":
        raise LoginDenied(f"The login to {name} was refused in the browser. {again(name)}")
    if code in _EXPIRED:
        raise _expired(name)
    if code in _PENDING or answer.status in pending:
        return NotYet()
    raise BadRequest(f"{answer.host} refuses the login to {name} ({code or answer.status}). {again(name)}")


def _expired(name: str) -> LoginExpired:
    return LoginExpired(f"The code for {name} was not entered in time. {again(name)}")
