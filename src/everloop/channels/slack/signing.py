"""Who posts an event: Slack signs each with a secret that only the app's owner and Slack know (HMAC-SHA256)."""

import hmac
import re
from collections.abc import Mapping
from hashlib import sha256

WINDOW = 300.0  # seconds by which a request may be older, or newer, than our clock says: the replay window
_TIME = re.compile(r"[0-9]{1,12}", re.ASCII)


class UnsignedEvent(Exception):
    """Nobody who knows the secret has sent this, or not now. What was wrong with it is for the log alone."""


def signature(secret: str, timestamp: str, body: bytes) -> str:
    return "v0=" + hmac.new(secret.encode(), b"v0:%s:%s" % (timestamp.encode(), body), sha256).hexdigest()


def check(headers: Mapping[str, str], body: bytes, secret: str, now: float) -> None:
    """Raises UnsignedEvent. The comparison takes as long for a wrong signature as for the right one (constant time)."""
    timestamp = headers.get("x-slack-request-timestamp", "")
    if not _TIME.fullmatch(timestamp):
        raise UnsignedEvent("it has no x-slack-request-timestamp")
    if abs(now - int(timestamp)) > WINDOW:
        raise UnsignedEvent("its x-slack-request-timestamp is too far from now")
    given = headers.get("x-slack-signature", "").encode("utf-8", "surrogateescape")
    if not hmac.compare_digest(given, signature(secret, timestamp, body).encode()):
        raise UnsignedEvent("its x-slack-signature does not fit")
