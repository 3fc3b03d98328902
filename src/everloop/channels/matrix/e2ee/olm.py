"""What our device says to one other device, and hears from it (Olm)."""

import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct
from vodozemac import (
    Account,
    AnyOlmMessage,
    Curve25519PublicKey,
    OlmDecryptionException,
    PreKeyMessage,
    Session,
)

from ..homeserver import Homeserver, path_of
from .account import OLM, OlmAccount
from .devices import PATIENCE, Device, Devices
from .records import PICKLE, KeyRecords, OlmSessions
from .signing import base64, is_signed, unbase64

_log = logging.getLogger("everloop.channels.matrix")

MOST_SESSIONS = 5  # with one device
MOST_HEARD = 100  # messages of one device, which a homeserver brings again after a kill
AGAIN = 3600.0  # seconds before we begin anew with the same device
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)  # vodozemac's are ValueErrors


class Whispered(Struct, frozen=True):
    """What a device has said to us alone: `signing` is the key that it says it has."""

    sender: str
    identity: str
    signing: str
    type: str
    content: dict[str, Any]


Take = Callable[[Whispered], Awaitable[None]]


class OlmDevice:
    """Raises as Homeserver and ChannelRecords do."""

    def __init__(self, server: Homeserver, records: KeyRecords, account: OlmAccount, devices: Devices) -> None:
        self._server = server
        self._records = records
        self._account = account
        self._devices = devices
        self._begun: dict[str, float] = {}

    async def whisper(self, devices: Sequence[Device], kind: str, content: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """What is to be sent to each, by user and device. Those to whom nothing can be said are left out."""
        said: dict[str, dict[str, Any]] = {}
        claimed = await self._claimed([each for each in devices if not await self._knows(each)])
        for device in devices:
            if message := await self._encrypted(device, claimed.get((device.user, device.id)), kind, content):
                said.setdefault(device.user, {})[device.id] = message
        return said

    async def send(self, messages: dict[str, dict[str, Any]]) -> None:
        path = path_of("sendToDevice", "m.room.encrypted", secrets.token_hex(16))
        await self._server.put(path, {"messages": messages})

    async def _knows(self, device: Device) -> bool:
        return bool((await self._records.get(OlmSessions, device.identity)).pickles)

    async def _claimed(self, devices: Sequence[Device]) -> dict[tuple[str, str], str]:
        """Keys to begin with, which their devices have signed."""
        if not devices:
            return {}
        asked: dict[str, dict[str, str]] = {}
        for each in devices:
            asked.setdefault(each.user, {})[each.id] = "signed_curve25519"
        body = {"one_time_keys": asked, "timeout": PATIENCE}
        said = (await self._server.post(path_of("keys", "claim"), body)).get("one_time_keys")
        return {(each.user, each.id): key for each in devices if (key := _one_time_key(said, each))}

    async def _encrypted(
        self, device: Device, one_time_key: str | None, kind: str, content: dict[str, Any], *, anew: bool = False
    ) -> dict[str, Any] | None:
        ours, account = await self._account.keys(), await self._account.now()
        plain = {
            "type": kind,
            "content": content,
            "sender": self._account.user,
            "sender_device": self._account.device,
            "keys": {"ed25519": ours.signing},
            "recipient": device.user,
            "recipient_keys": {"ed25519": device.signing},
        }

        def say(record: OlmSessions) -> tuple[OlmSessions, tuple[int, bytes] | None]:
            if record.pickles and not anew:
                session, others = Session.from_pickle(record.pickles[0], PICKLE), record.pickles[1:]
            elif one_time_key:
                theirs = Curve25519PublicKey.from_base64(device.identity)
                session = account.create_outbound_session(theirs, Curve25519PublicKey.from_base64(one_time_key))
                others = record.pickles[: MOST_SESSIONS - 1]
            else:
                return record, None
            parts = session.encrypt(json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace")).to_parts()
            return OlmSessions((session.pickle(PICKLE), *others), record.heard), parts

        try:
            parts = await self._records.update(OlmSessions, (device.identity,), say)
        except ValueError as error:
            _log.info("nothing can be said to a device of %s: %s", device.user, type(error).__name__)
            return None
        if parts is None:
            return None
        message = {"type": parts[0], "body": base64(parts[1])}
        return {"algorithm": OLM, "sender_key": ours.identity, "ciphertext": {device.identity: message}}

    async def hear(self, event: Mapping[str, Any], take: Take) -> None:
        """What a device has said to us. It is taken before what it was read with moves on: after a kill in between it
        is read once more."""
        try:
            sender, content = str(event["sender"]), event["content"]
            identity, message = content["sender_key"], content["ciphertext"][(await self._account.keys()).identity]
            Curve25519PublicKey.from_base64(identity)
            is_first, body = message["type"] == 0, str(message["body"])
        except _UNREADABLE:
            return
        while True:
            kept, account = await self._records.get(OlmSessions, identity), await self._account.now()
            if (mark := _mark(body)) in kept.heard:
                break
            try:
                plain, sessions = _read(account, kept, identity, is_first, body)
            except _UNREADABLE as error:
                _log.info("a device of %s has said what we cannot read: %s", sender, type(error).__name__)
                await self._begin_anew(sender, identity)
                return
            if whispered := await self._whispered(sender, identity, plain):
                await take(whispered)
            heard = msgspec.structs.replace(sessions, heard=(*kept.heard, mark)[-MOST_HEARD:])
            if await self._records.update(OlmSessions, (identity,), _in_place_of(kept, heard)):
                break
        if is_first:
            await self._account.forget_key_of(identity, body)

    async def _begin_anew(self, sender: str, identity: str) -> None:
        """Say something over a new session: the device speaks over that one then, and we understand each other again.
        Not each time, for a device may say what nobody reads as often as it likes."""
        if time.monotonic() < self._begun.get(sender, 0.0):
            return
        self._begun[sender] = time.monotonic() + AGAIN
        for device in await self._devices.of([sender]):
            if device.identity != identity:
                continue
            claimed = (await self._claimed([device])).get((device.user, device.id))
            if message := await self._encrypted(device, claimed, "m.dummy", {}, anew=True):
                await self.send({device.user: {device.id: message}})

    async def _whispered(self, sender: str, identity: str, plain: bytes) -> Whispered | None:
        """None for what was said by or to somebody else than it seems."""
        ours = await self._account.keys()
        try:
            said = json.loads(plain)
            is_ours = (said["recipient"], said["recipient_keys"]["ed25519"]) == (self._account.user, ours.signing)
            if not is_ours or said["sender"] != sender or not isinstance(said["content"], dict):
                _log.warning("what a device of %s has said was not said by it, or not to us", sender)
                return None
            return Whispered(sender, identity, str(said["keys"]["ed25519"]), str(said["type"]), said["content"])
        except _UNREADABLE:
            return None


def _mark(body: str) -> str:
    return sha256(body.encode()).hexdigest()[:32]


def _in_place_of(kept: OlmSessions, sessions: OlmSessions) -> Callable[[OlmSessions], tuple[OlmSessions, bool]]:
    return lambda record: (sessions, True) if record == kept else (record, False)


def _read(account: Account, kept: OlmSessions, identity: str, is_first: bool, body: str) -> tuple[bytes, OlmSessions]:
    """The text, and the sessions as they are then. Raises ValueError."""
    message = PreKeyMessage.from_base64(body).to_any() if is_first else AnyOlmMessage.normal(unbase64(body))
    for pickle in kept.pickles:
        session = Session.from_pickle(pickle, PICKLE)
        if is_first and not session.session_matches(PreKeyMessage.from_base64(body)):
            continue
        try:
            plain = session.decrypt(message)
        except OlmDecryptionException:
            if is_first:
                raise
            continue
        others = [each for each in kept.pickles if each != pickle]
        return plain, OlmSessions((session.pickle(PICKLE), *others))
    if not is_first:
        raise ValueError("no session with this device reads it")
    theirs = Curve25519PublicKey.from_base64(identity)
    session, plain = account.create_inbound_session(theirs, PreKeyMessage.from_base64(body))
    return plain, OlmSessions((session.pickle(PICKLE), *kept.pickles[: MOST_SESSIONS - 1]))


def _one_time_key(said: Any, device: Device) -> str:
    try:
        [(id, key)] = said[device.user][device.id].items()
        is_theirs = id.startswith("signed_curve25519:") and is_signed(key, device.user, device.id, device.signing)
        return str(key["key"]) if is_theirs else ""
    except _UNREADABLE:
        return ""
