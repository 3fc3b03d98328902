"""What is said to all of a room (Megolm), as it is written: every device of whoever is in it has the key first."""

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from vodozemac import GroupSession, InboundGroupSession

from ..codec import read_event
from ..homeserver import Homeserver, path_of
from .account import MEGOLM, OlmAccount
from .devices import Device, Devices
from .olm import OlmDevice
from .records import PICKLE, KeyRecords, OutboundKey, RoomRecord
from .room_keys import RoomKeys

_log = logging.getLogger("everloop.channels.matrix")

FRESH = 30.0  # seconds for which a draft goes by who was there
AGAIN = 600.0  # seconds before a device is tried again to which nothing could be said
AT_ONCE = 100  # devices
REMEMBERED = 5_000


class RoomSpeaker:
    """Raises as Homeserver and ChannelRecords do."""

    def __init__(
        self,
        server: Homeserver,
        records: KeyRecords,
        account: OlmAccount,
        devices: Devices,
        olm: OlmDevice,
        keys: RoomKeys,
    ) -> None:
        self._server = server
        self._records = records
        self._account = account
        self._devices = devices
        self._olm = olm
        self._keys = keys
        self._there: OrderedDict[str, tuple[float, list[Device]]] = OrderedDict()
        self._deaf: dict[str, float] = {}  # identity keys of devices without any to begin with
        self._turns: dict[str, asyncio.Lock] = {}
        self._begun = time.time()  # an older key may be that of a copy which was brought back, and used up since

    async def encrypt(
        self, room: str, rules: RoomRecord, kind: str, content: dict[str, Any], *, draft: bool = False
    ) -> dict[str, Any]:
        """The content of an m.room.encrypted. With `draft`, for those who were there a moment ago."""
        async with self._turns.setdefault(room, asyncio.Lock()):
            there = await self._who(room, FRESH if draft else 0.0)
            while True:
                session = await self._ready(room, rules, there)
                if said := await self._said(room, session, kind, content):
                    return said

    def note_members(self, room: str) -> None:
        """Somebody has come or gone."""
        self._there.pop(room, None)

    async def _who(self, room: str, fresh: float) -> list[Device]:
        """The devices of all who are there, and who are invited: they read what was said when they come."""
        at, there = self._there.get(room, (-FRESH, []))
        if time.monotonic() - at < fresh:
            return there
        said = await self._server.get(path_of("rooms", room, "members"), {"not_membership": "leave"})
        devices = await self._devices.of(members_of(said))
        there = [each for each in devices if (each.user, each.id) != (self._account.user, self._account.device)]
        self._there[room] = (time.monotonic(), there)
        self._there.move_to_end(room)
        while len(self._there) > REMEMBERED:
            self._there.popitem(last=False)
        return there

    async def _ready(self, room: str, rules: RoomRecord, there: Sequence[Device]) -> str:
        """The id of a key that all of them have, and nobody else."""
        record = await self._records.update(OutboundKey, (room,), lambda now: self._current(now, rules, there))
        group = GroupSession.from_pickle(record.pickle, PICKLE)
        if not record.shared and record.used == 0:
            await self._keys.keep_ours(room, self._account.user, InboundGroupSession(group.session_key))
        content = {
            "algorithm": MEGOLM,
            "room_id": room,
            "session_id": group.session_id,
            "session_key": group.session_key.to_base64(),
        }
        missing = [each for each in there if not _has(record, each) and not self._is_deaf(each)]
        for first in range(0, len(missing), AT_ONCE):
            await self._share(room, missing[first : first + AT_ONCE], content)
        return record.session

    def _current(self, now: OutboundKey, rules: RoomRecord, there: Iterable[Device]) -> tuple[OutboundKey, OutboundKey]:
        """Another key when this one is used up or old, or when somebody has it who is not there any more."""
        here = {(each.user, each.id, each.identity) for each in there}
        having = {(user, id, key) for user, devices in now.shared.items() for id, key in devices.items()}
        is_young = self._begun <= now.made and 0 <= time.time() - now.made < rules.seconds
        if now.pickle and is_young and now.used < rules.messages and having <= here:
            return now, now
        group = GroupSession()
        made = OutboundKey(group.pickle(PICKLE), group.session_id, time.time())
        return made, made

    def _is_deaf(self, device: Device) -> bool:
        return time.monotonic() < self._deaf.get(device.identity, 0.0)

    async def _share(self, room: str, devices: Sequence[Device], content: dict[str, Any]) -> None:
        messages = await self._olm.whisper(devices, "m.room_key", content)
        told = [each for each in devices if each.id in messages.get(each.user, {})]
        for each in devices:
            if each not in told:
                _log.info("a device of %s has no key to begin with, and cannot read us", each.user)
                self._deaf[each.identity] = time.monotonic() + AGAIN
        if not told:
            return
        await self._olm.send(messages)
        await self._records.update(OutboundKey, (room,), lambda now: (_shared(now, content["session_id"], told), None))

    async def _said(self, room: str, session: str, kind: str, content: dict[str, Any]) -> dict[str, Any] | None:
        """None: another process has begun with another key since."""
        relation = content.get("m.relates_to")
        inner = {name: value for name, value in content.items() if name != "m.relates_to"}
        plain = json.dumps({"type": kind, "content": inner, "room_id": room}, ensure_ascii=False)

        def say(record: OutboundKey) -> tuple[OutboundKey, str]:
            if record.session != session:
                return record, ""
            group = GroupSession.from_pickle(record.pickle, PICKLE)
            text = group.encrypt(plain.encode("utf-8", "replace")).to_base64()
            return msgspec.structs.replace(record, pickle=group.pickle(PICKLE), used=record.used + 1), text

        if not (text := await self._records.update(OutboundKey, (room,), say)):
            return None
        return {
            "algorithm": MEGOLM,
            "sender_key": (await self._account.keys()).identity,
            "device_id": self._account.device,
            "session_id": session,
            "ciphertext": text,
            **({"m.relates_to": relation} if relation is not None else {}),
        }


def members_of(said: Any) -> list[str]:
    """Who is in a room or invited, of what a homeserver says."""
    chunk = said.get("chunk") if isinstance(said, dict) else None
    events = [read_event(each) for each in chunk] if isinstance(chunk, list) else []
    there = [event for event in events if event and event.content.get("membership") in ("join", "invite")]
    return [event.state_key for event in there if event.state_key]


def _has(record: OutboundKey, device: Device) -> bool:
    return record.shared.get(device.user, {}).get(device.id) == device.identity


def _shared(now: OutboundKey, session: str, devices: Iterable[Device]) -> OutboundKey:
    if now.session != session:
        return now
    shared = {user: {**having} for user, having in now.shared.items()}
    for each in devices:
        shared.setdefault(each.user, {})[each.id] = each.identity
    return msgspec.structs.replace(now, shared=shared)
