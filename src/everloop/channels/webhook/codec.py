"""What webhooks mean: who signed one and when, what it says, and how an answer is written. No clock, no network."""

import base64
import binascii
import hmac
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ...core.mail import ReplyTo
from ...ports.channel import Incoming, OutgoingPart
from ...readings.keys import escaped

WINDOW = 300.0  # seconds by which a webhook may be older, or newer, than our clock says: the replay window
SIGNATURES = 10  # that one webhook may carry, for keys that are being changed
SHORTEST = 16  # bytes of a secret
_ID = re.compile(r"[A-Za-z0-9_:-]{1,200}", re.ASCII)  # no dot: that is what parts it from the timestamp
_TIME = re.compile(r"[0-9]{1,12}", re.ASCII)
_Name = Annotated[str, Meta(min_length=1, max_length=200)]


class Unsigned(Exception):
    """Nobody who knows the secret has sent this, or not now. What was wrong with it is for the log alone."""


class Unreadable(Exception):
    """It was signed, and is no message; says why."""


class _Said(Struct, forbid_unknown_fields=True):
    chat: _Name
    author: _Name
    text: str
    thread: Annotated[str, Meta(max_length=200)] = ""
    direct: bool = True
    mentioned: bool = False
    server: Annotated[str, Meta(max_length=200)] = ""
    name: Annotated[str, Meta(max_length=200)] = ""
    replies: bool = False
    bot: bool = False
    album: Annotated[str, Meta(max_length=200)] = ""
    replaces: Annotated[str, Meta(max_length=200)] = ""
    withdrawn: bool = False


def secret_of(text: str) -> bytes:
    """A secret as it is written: `whsec_` and base64, or any text. Raises ValueError when it is too short."""
    try:
        secret = base64.b64decode(text[6:], validate=True) if text.startswith("whsec_") else text.encode()
    except (binascii.Error, ValueError) as error:
        raise ValueError("what follows whsec_ must be base64") from error
    if len(secret) < SHORTEST:
        raise ValueError(f"it must have at least {SHORTEST} bytes, such as those of `openssl rand -hex 32`")
    return secret


def signature(secret: bytes, id: str, timestamp: str, body: bytes) -> str:
    signed = b"%s.%s.%s" % (id.encode(), timestamp.encode(), body)
    return "v1," + base64.b64encode(hmac.digest(secret, signed, sha256)).decode()


def check(headers: Mapping[str, str], body: bytes, secrets: Sequence[bytes], now: float) -> str:
    """The id of a webhook that one of the secrets has signed, just now. Raises Unsigned.

    The comparison takes as long for a wrong signature as for the right one (constant time).
    """
    id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not _ID.fullmatch(id) or not _TIME.fullmatch(timestamp):
        raise Unsigned("it has no webhook-id, or no webhook-timestamp")
    if abs(now - int(timestamp)) > WINDOW:
        raise Unsigned("its webhook-timestamp is too far from now")
    given = [each.encode("utf-8", "surrogateescape") for each in headers.get("webhook-signature", "").split(" ")]
    wanted = [signature(secret, id, timestamp, body).encode() for secret in secrets]
    fits = [hmac.compare_digest(each, ours) for each in given[:SIGNATURES] for ours in wanted]
    if not any(fits):
        raise Unsigned("its webhook-signature does not fit")
    return id


def parse(id: str, body: bytes) -> Incoming:
    """What was said. Raises Unreadable. `reply_to` is the webhook's own id, by which the sender knows it."""
    try:
        said = msgspec.json.decode(body, type=_Said)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Unreadable(f"the body is no message: {error}") from error
    return Incoming(
        event=id,
        chat=said.chat,
        thread=said.thread,
        account=said.author,
        text=said.text,
        direct=said.direct,
        mentioned=said.mentioned,
        server=said.server,
        name=said.name,
        replies=said.replies,
        bot=said.bot,
        album=said.album,
        replaces=said.replaces,
        withdrawn=said.withdrawn and bool(said.replaces),
        reply_to=ReplyTo(msgspec.json.encode({"id": id, "chat": said.chat, "thread": said.thread}).decode()),
    )


def id_of(part: OutgoingPart) -> str:
    """The same for each attempt to send it, so that a receiver can drop what it knows."""
    return f"ev_{sha256(part.key.encode()).hexdigest()[:40]}"


def body_of(part: OutgoingPart) -> bytes:
    there = msgspec.json.decode(part.reply_to) if part.reply_to else {}
    same_place = all(escaped(there.get(name, "")) == getattr(part.address, name) for name in ("chat", "thread"))
    place = there if same_place else {"chat": part.address.chat, "thread": part.address.thread}
    told = {
        "id": id_of(part),
        "in_reply_to": there.get("id", ""),
        "chat": place["chat"],
        "thread": place["thread"],
        "kind": part.kind,
        "text": part.text,
        "part": part.number + 1,
        "of": part.of,
        "approval": part.approval,
        "files": [file.name for file in part.files],
    }
    more = {"plain": part.plain, "links": {file.name: file.link for file in part.files if file.link}}
    return msgspec.json.encode({**told, **{name: value for name, value in more.items() if value}})


def signed_headers(secret: bytes, id: str, now: float, body: bytes) -> dict[str, str]:
    timestamp = str(int(now))
    return {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signature(secret, id, timestamp, body),
    }
