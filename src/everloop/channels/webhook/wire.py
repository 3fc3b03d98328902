"""How webhooks travel: in through the gateway, out through the network."""

import logging
import time
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import msgspec

from ...errors import (
    ChannelDown,
    HostFailed,
    HostHungUp,
    HostTimeout,
    HostUnreachable,
    Undeliverable,
)
from ...ports import Deliver, Http
from ...ports.channel import Hook, HookAnswer, HookRequest, OutgoingPart, Probed
from .codec import Unreadable, Unsigned, body_of, check, id_of, parse, signed_headers
from .manifest import MANIFEST

_log = logging.getLogger("everloop.channels.webhook")

LARGEST = 256_000  # bytes of a webhook
SECONDS = 20.0  # for the receiver to answer
_NEVER = frozenset({400, 410, 413, 422})  # what a receiver answers to what it will never take


class Webhook:
    """The Channel. The first secret signs what goes out; each of them opens for what comes in."""

    manifest = MANIFEST

    def __init__(self, url: str, secrets: Sequence[bytes], http: Http, clock: Callable[[], float] = time.time) -> None:
        self._url = url
        self._secrets = secrets
        self._http = http
        self._clock = clock

    async def run(self, deliver: Deliver, resume: str) -> None:
        """There is nothing to listen to: what comes in comes through the gateway."""

    def hooks(self, deliver: Deliver) -> Sequence[Hook]:
        async def answer(request: HookRequest) -> HookAnswer:
            return await self._take(request, deliver)

        return [Hook("POST", "", answer, LARGEST)]

    async def _take(self, request: HookRequest, deliver: Deliver) -> HookAnswer:
        try:
            id = check(request.headers, request.body, self._secrets, self._clock())
        except Unsigned as error:
            _log.warning("a webhook was refused: %s", error)
            return _told(401, error="this webhook is not signed as it should be")
        try:
            incoming = parse(id, request.body)
        except Unreadable as error:
            return _told(400, error=str(error))
        delivered = await deliver(incoming)
        if delivered.refused:
            return _told(422, error=delivered.refused)
        return _told(202 if delivered.fresh else 200, id=id, letter="accepted" if delivered.fresh else "known")

    async def probe(self) -> Probed:
        """Whether anybody answers at the address. What they answer to a HEAD, which no program need know, says nothing
        of how they take answers."""
        try:
            async with self._http.request("HEAD", self._url, seconds=SECONDS) as answer:
                status = answer.status
        except (HostUnreachable, HostTimeout, HostFailed) as error:
            raise ChannelDown(str(error)) from error
        if status >= 500:
            raise ChannelDown(f"the receiver answered {status}")
        return Probed(account=urlsplit(self._url).hostname or "")

    async def send(self, part: OutgoingPart) -> str:
        id, body, now = id_of(part), body_of(part), self._clock()
        headers = signed_headers(self._secrets[0], id, now, body)
        try:
            async with self._http.request("POST", self._url, body=body, headers=headers, seconds=SECONDS) as answer:
                status, asked = answer.status, {name.lower(): value for name, value in answer.headers.items()}
        except HostHungUp:
            raise  # it may have arrived
        except HostUnreachable as error:
            raise ChannelDown(str(error)) from error
        if status in _NEVER:
            raise Undeliverable(f"the receiver answered {status}")
        if not 200 <= status < 300:
            raise ChannelDown(f"the receiver answered {status}", _retry_after(asked.get("retry-after", ""), now))
        return id


def _retry_after(text: str, now: float) -> float | None:
    """The seconds that a receiver asks for, as a number or as a date."""
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):  # which a year of many digits raises
        return None


def _told(status: int, **told: str) -> HookAnswer:
    return HookAnswer(status, msgspec.json.encode(told))
