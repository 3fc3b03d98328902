"""Our device, and what it says to one other device (Olm)."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from .devices import PATIENCE, Device
from .records import PICKLE, AccountRecord, OlmSessions, Records
from .signing import base64, canonical, is_signed, unbase64

_log = logging.getLogger("everloop.channels.matrix")

OLM = "m.olm.v1.curve25519-aes-sha2"
MEGOLM = "m.megolm.v1.aes-sha2"
ONE_TIME_KEYS = 50
MOST_SESSIONS = 5  # with one device
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)  # vodozemac's are ValueErrors


class OurKeys(Struct, frozen=True):
    identity: str
    signing: str


class Whispered(Struct, frozen=True):
    """What a device has said to us alone: `signing` is the key that it says it has."""

    sender: str
    identity: str
    signing: str
    type: str
    content: dict[str, Any]


Take = Callable[[Whispered], Awaitable[None]]


class OlmDevice:
    """Raises as Homeserver and ChannelState do."""

    def __init__(self, server: Homeserver, records: Records, user: str, device: str) -> None:
        self._server = server
        self._records = records
        self.user = user
        self.device = device
        self._keys: OurKeys | None = None

    async def keys(self) -> OurKeys:
        if self._keys is None:
            record = await self._records.update(AccountRecord, (), _made_once)
            account = Account.from_pickle(record.pickle, PICKLE)
            self._keys = OurKeys(account.curve25519_key.to_base64(), account.ed25519_key.to_base64())
        return self._keys

    async def publish(self, left: int, *, fallback: bool) -> None:
        """Our device's keys, and as many for others to begin with as are missing; `fallback`: that for when they are
        used up, too. They are kept before anybody can use them."""
        await self.keys()

        def make(record: AccountRecord) -> tuple[AccountRecord, AccountRecord]:
            account = Account.from_pickle(record.pickle, PICKLE)
            missing = ONE_TIME_KEYS - left - len(account.one_time_keys)
            if missing <= ONE_TIME_KEYS // 2 and not fallback and not account.one_time_keys:
                return record, record
            account.generate_one_time_keys(max(missing, 0))
            if fallback and not _fallback_key(account):
                account.generate_fallback_key()  # type: ignore[attr-defined]
            made = msgspec.structs.replace(record, pickle=account.pickle(PICKLE))
            return made, made

        record = await self._records.update(AccountRecord, (), make)
        account = Account.from_pickle(record.pickle, PICKLE)
        body = {} if record.uploaded else {"device_keys": self._signed(account, self._device_keys(account))}
        if account.one_time_keys:
            body["one_time_keys"] = self._key_objects(account, account.one_time_keys, {})
        if last := _fallback_key(account):
            body["fallback_keys"] = self._key_objects(account, last, {"fallback": True})
        if not body:
            return
        await self._server.post(path_of("keys", "upload"), body)
        await self._records.update(AccountRecord, (), _published)

    def _device_keys(self, account: Account) -> dict[str, Any]:
        return {
            "user_id": self.user,
            "device_id": self.device,
            "algorithms": [OLM, MEGOLM],
            "keys": {
                f"curve25519:{self.device}": account.curve25519_key.to_base64(),
                f"ed25519:{self.device}": account.ed25519_key.to_base64(),
            },
        }

    def _key_objects(self, account: Account, keys: Mapping[str, Any], more: dict[str, Any]) -> dict[str, Any]:
        return {
            f"signed_curve25519:{id}": self._signed(account, {"key": key.to_base64(), **more})
            for id, key in keys.items()
        }

    def _signed(self, account: Account, value: dict[str, Any]) -> dict[str, Any]:
        signature = account.sign(canonical(value)).to_base64()
        return {**value, "signatures": {self.user: {f"ed25519:{self.device}": signature}}}

    async def whisper(self, devices: Sequence[Device], kind: str, content: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """What is to be sent to each, by user and device. Those to whom nothing can be said are left out."""
        said: dict[str, dict[str, Any]] = {}
        claimed = await self._claimed([each for each in devices if not await self._knows(each)])
        for device in devices:
            if message := await self._encrypted(device, claimed.get((device.user, device.id)), kind, content):
                said.setdefault(device.user, {})[device.id] = message
        return said

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
        self, device: Device, one_time_key: str | None, kind: str, content: dict[str, Any]
    ) -> dict[str, Any] | None:
        ours = await self.keys()
        account = Account.from_pickle((await self._records.get(AccountRecord)).pickle, PICKLE)
        plain = {
            "type": kind,
            "content": content,
            "sender": self.user,
            "sender_device": self.device,
            "keys": {"ed25519": ours.signing},
            "recipient": device.user,
            "recipient_keys": {"ed25519": device.signing},
        }

        def say(record: OlmSessions) -> tuple[OlmSessions, tuple[int, bytes] | None]:
            if record.pickles:
                session = Session.from_pickle(record.pickles[0], PICKLE)
            elif one_time_key:
                theirs = Curve25519PublicKey.from_base64(device.identity)
                session = account.create_outbound_session(theirs, Curve25519PublicKey.from_base64(one_time_key))
            else:
                return record, None
            parts = session.encrypt(json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace")).to_parts()
            return OlmSessions((session.pickle(PICKLE), *record.pickles[1:])), parts

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
            identity, message = content["sender_key"], content["ciphertext"][(await self.keys()).identity]
            Curve25519PublicKey.from_base64(identity)
            is_first, body = message["type"] == 0, str(message["body"])
        except _UNREADABLE:
            return
        while True:
            kept = await self._records.get(OlmSessions, identity)
            account = Account.from_pickle((await self._records.get(AccountRecord)).pickle, PICKLE)
            try:
                plain, sessions, is_new = _read(account, kept, identity, is_first, body)
            except _UNREADABLE as error:
                _log.info("a device of %s has said what we cannot read: %s", sender, type(error).__name__)
                return
            if whispered := await self._whispered(sender, identity, plain):
                await take(whispered)
            if await self._records.update(OlmSessions, (identity,), _in_place_of(kept, sessions)):
                break
        if is_new:
            await self._records.update(AccountRecord, (), _without_key_of(identity, body))

    async def _whispered(self, sender: str, identity: str, plain: bytes) -> Whispered | None:
        """None for what was said by or to somebody else than it seems."""
        try:
            said = json.loads(plain)
            is_ours = (
                said["recipient"] == self.user and said["recipient_keys"]["ed25519"] == (await self.keys()).signing
            )
            if not is_ours or said["sender"] != sender or not isinstance(said["content"], dict):
                _log.warning("what a device of %s has said was not said by it, or not to us", sender)
                return None
            return Whispered(sender, identity, str(said["keys"]["ed25519"]), str(said["type"]), said["content"])
        except _UNREADABLE:
            return None


def _fallback_key(account: Account) -> Mapping[str, Curve25519PublicKey]:
    """One that is not published yet."""
    key: Mapping[str, Curve25519PublicKey] = account.fallback_key  # type: ignore[attr-defined]
    return key


def _made_once(record: AccountRecord) -> tuple[AccountRecord, AccountRecord]:
    made = record if record.pickle else AccountRecord(Account().pickle(PICKLE))
    return made, made


def _published(record: AccountRecord) -> tuple[AccountRecord, None]:
    account = Account.from_pickle(record.pickle, PICKLE)
    account.mark_keys_as_published()
    return AccountRecord(account.pickle(PICKLE), uploaded=True), None


def _without_key_of(identity: str, body: str) -> Callable[[AccountRecord], tuple[AccountRecord, None]]:
    """A one-time key that somebody has begun with goes."""

    def change(record: AccountRecord) -> tuple[AccountRecord, None]:
        account = Account.from_pickle(record.pickle, PICKLE)
        try:
            account.create_inbound_session(Curve25519PublicKey.from_base64(identity), PreKeyMessage.from_base64(body))
        except ValueError:
            return record, None
        return msgspec.structs.replace(record, pickle=account.pickle(PICKLE)), None

    return change


def _in_place_of(kept: OlmSessions, sessions: OlmSessions) -> Callable[[OlmSessions], tuple[OlmSessions, bool]]:
    return lambda record: (sessions, True) if record == kept else (record, False)


def _read(
    account: Account, kept: OlmSessions, identity: str, is_first: bool, body: str
) -> tuple[bytes, OlmSessions, bool]:
    """The text, the sessions as they are then, and whether one of them is new. Raises ValueError."""
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
        return plain, OlmSessions((session.pickle(PICKLE), *others)), False
    if not is_first:
        raise ValueError("no session with this device reads it")
    theirs = Curve25519PublicKey.from_base64(identity)
    session, plain = account.create_inbound_session(theirs, PreKeyMessage.from_base64(body))
    return plain, OlmSessions((session.pickle(PICKLE), *kept.pickles[: MOST_SESSIONS - 1])), True


def _one_time_key(said: Any, device: Device) -> str:
    try:
        [(id, key)] = said[device.user][device.id].items()
        is_theirs = id.startswith("signed_curve25519:") and is_signed(key, device.user, device.id, device.signing)
        return str(key["key"]) if is_theirs else ""
    except _UNREADABLE:
        return ""
