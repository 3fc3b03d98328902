"""What is said to all of a room (Megolm), as it is read.

A key reads what whoever has sent it says, in the room for which it was sent, and nothing else: that the keys with which
it came are those of a device of theirs is asked of their homeserver before anything is read with it.
"""

import json
import logging
from typing import Any

import msgspec
from msgspec import Struct
from vodozemac import InboundGroupSession, MegolmMessage, SessionKey

from ..codec import RoomEvent
from .account import MEGOLM
from .devices import Devices
from .olm import Whispered
from .records import PICKLE, InboundKey, KeyRecords

_log = logging.getLogger("everloop.channels.matrix")

MOST_SEEN = 2_000  # messages of one key of which it is known which they were


class NoKeyYet(Exception):
    """It cannot be read now."""


class NeverReadable(Exception):
    """Why nobody will ever read it."""


class _Ciphertext(Struct, frozen=True):
    session_id: str
    ciphertext: str


class RoomKeys:
    """Raises as Homeserver and ChannelRecords do."""

    def __init__(self, records: KeyRecords, devices: Devices) -> None:
        self._records = records
        self._devices = devices

    async def take(self, whispered: Whispered) -> None:
        """Keep the key of a room, if that is what somebody has sent."""
        content = whispered.content
        room, key = content.get("room_id"), content.get("session_key")
        if whispered.type != "m.room_key" or content.get("algorithm") != MEGOLM or not isinstance(room, str):
            return
        try:
            session = InboundGroupSession(SessionKey(str(key)))
        except ValueError:
            return
        if session.session_id != content.get("session_id"):
            return

        def keep(record: InboundKey) -> tuple[InboundKey, None]:
            if record.pickle and (record.is_bound or record.sender_key == whispered.identity):
                before = InboundGroupSession.from_pickle(record.pickle, PICKLE)
                if record.sender_key != whispered.identity or before.first_known_index <= session.first_known_index:
                    return record, None
            made = InboundKey(session.pickle(PICKLE), whispered.identity, whispered.signing)
            return msgspec.structs.replace(made, seen=record.seen, floor=record.floor), None

        await self._records.update(InboundKey, (room, whispered.sender, session.session_id), keep)

    async def keep_ours(self, room: str, us: str, session: InboundGroupSession) -> None:
        record = InboundKey(session.pickle(PICKLE), is_bound=True)
        await self._records.update(InboundKey, (room, us, session.session_id), lambda _: (record, None))

    async def read(self, room: str, event: RoomEvent, *, remember: bool) -> RoomEvent:
        """Raises NoKeyYet, NeverReadable."""
        said = _said(event)
        names = (room, event.sender, said.session_id)
        record = await self._records.get(InboundKey, *names)
        if not record.pickle:
            raise NoKeyYet(f"a key of {event.sender} has not come")
        if not record.is_bound:
            if not await self._devices.has(event.sender, record.sender_key, record.signing):
                raise NoKeyYet(f"a key of {event.sender} came from a device that is not theirs")
            await self._records.update(InboundKey, names, lambda now: (_bound(now, record), None))
        plain, index = _decrypted(record, said)
        if record.seen.get(index, event.event_id) != event.event_id:
            raise NeverReadable("it repeats another message")
        if remember and index not in record.seen and int(index) < record.floor:
            raise NeverReadable("it is older than any of which it is known whether they were read")
        if remember and index not in record.seen:
            await self._records.update(InboundKey, names, lambda now: (_seen(now, index, event.event_id), None))
        return _event(room, event, plain)


def _said(event: RoomEvent) -> _Ciphertext:
    """Not by msgspec: it takes no table in which somebody has half of a surrogate pair for a name."""
    match event.content:
        case {"algorithm": str(algorithm), "session_id": str(session), "ciphertext": str(text)}:
            if algorithm == MEGOLM:
                return _Ciphertext(session, text)
            raise NeverReadable("it is encrypted in a way that is not known")
    raise NeverReadable("it has no form that is known")


def _bound(now: InboundKey, checked: InboundKey) -> InboundKey:
    is_same = (now.sender_key, now.signing) == (checked.sender_key, checked.signing)
    return msgspec.structs.replace(now, is_bound=True) if is_same and not now.is_bound else now


def _seen(now: InboundKey, index: str, event: str) -> InboundKey:
    latest = sorted(int(each) for each in {**now.seen, index: event})[-MOST_SEEN:]
    floor = max(now.floor, latest[0]) if len(latest) == MOST_SEEN else now.floor
    seen = {each: id for each, id in {**now.seen, index: event}.items() if int(each) >= floor}
    return msgspec.structs.replace(now, seen=seen, floor=floor)


def _decrypted(record: InboundKey, said: _Ciphertext) -> tuple[bytes, str]:
    session = InboundGroupSession.from_pickle(record.pickle, PICKLE)
    try:
        message = MegolmMessage.from_base64(said.ciphertext)
    except ValueError as error:
        raise NeverReadable("it is damaged") from error
    if message.message_index() < session.first_known_index:
        raise NoKeyYet("the key that came is for later messages")
    try:
        read = session.decrypt(message)
    except ValueError as error:
        raise NeverReadable("it is damaged") from error
    return bytes(read.plaintext), str(read.message_index)


def _event(room: str, event: RoomEvent, plain: bytes) -> RoomEvent:
    """What it refers to stands outside of what is encrypted."""
    try:
        said: Any = json.loads(plain)
        kind, content = said["type"], said["content"]
        if said["room_id"] != room:
            raise NeverReadable("it was said in another room")
        if not isinstance(kind, str) or not isinstance(content, dict):
            raise NeverReadable("it has no form that is known")
        if kind in ("m.room.redaction", "m.reaction"):
            raise NeverReadable("what it is about stands in clear, where anybody at the homeserver can change it")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise NeverReadable("it has no form that is known") from error
    relation = event.content.get("m.relates_to")
    content = {**content, "m.relates_to": relation} if relation is not None else content
    return msgspec.structs.replace(event, type=kind, content=content)
