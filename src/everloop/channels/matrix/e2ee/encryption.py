"""End-to-end encryption as the channel sees it: what is heard is read, and what is said written for all."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ....ports.channel_state import ChannelState
from ..codec import RoomEvent
from ..homeserver import Homeserver, HomeserverRefused, path_of
from .devices import Devices
from .olm import OlmDevice, Whispered
from .records import InboundKey, OutboundKey, Records, RoomRecord
from .room_keys import NeverReadable, NoKeyYet, RoomKeys
from .speaking import RoomSpeaker

__all__ = ["Encryption", "NeverReadable", "NoKeyYet"]

PLAIN = 60.0  # seconds for which a room that was not encrypted is taken not to be
UNUSED = 180 * 86400.0  # seconds after which a key that nobody has used is forgotten


class Encryption:
    """For one device of ours. Raises as Homeserver and ChannelState do."""

    def __init__(self, server: Homeserver, state: ChannelState, user: str, device: str) -> None:
        self._server = server
        self.user = user
        self._device = device
        self._records = Records(state, user, device)
        self._devices = Devices(server, self._records)
        self._olm = OlmDevice(server, self._records, user, device)
        self._keys = RoomKeys(self._records, self._devices)
        self._speaker = RoomSpeaker(server, self._records, self._devices, self._olm, self._keys)
        self._encrypted: set[str] = set()
        self._plain: dict[str, float] = {}

    async def is_ours(self) -> bool:
        """Whether the homeserver knows no other keys for this device."""
        body: dict[str, Any] = {"device_keys": {self.user: [self._device]}}
        said = await self._server.post(path_of("keys", "query"), body)
        try:
            theirs = said["device_keys"][self.user][self._device]["keys"][f"ed25519:{self._device}"]
        except (KeyError, TypeError):
            return True
        return bool(theirs == (await self._olm.keys()).signing)

    async def start(self) -> None:
        """Whoever listens does this first."""
        for kind in (InboundKey, OutboundKey):
            await self._records.forget_unused(kind, UNUSED)
        said = await self._server.post(path_of("keys", "upload"), {})
        left = said.get("one_time_key_counts", {}).get("signed_curve25519", 0)
        await self._olm.publish(int(left), fallback=True)

    async def take(self, events: Iterable[Mapping[str, Any]], left: int | None, *, fallback: bool) -> int:
        """What devices have said to ours; `left` are the keys to begin with that the homeserver still has, `fallback`
        says that the last of them was used. How many keys of rooms there were."""
        taken = 0

        async def take(whispered: Whispered) -> None:
            nonlocal taken
            taken += 1
            await self._keys.take(whispered)

        for event in events:
            if event.get("type") == "m.room.encrypted":
                await self._olm.hear(event, take)
        if left is not None or fallback:
            await self._olm.publish(50 if left is None else left, fallback=fallback)
        return taken

    async def note(self, room: str, state: Sequence[RoomEvent]) -> bool:
        """What a room says of itself. Whether it was encrypted before."""
        before = await self._was_encrypted(room)
        if not before and any(each.type == "m.room.encryption" and each.state_key == "" for each in state):
            await self._keep_encrypted(room)
        return before

    async def is_encrypted(self, room: str) -> bool:
        if await self._was_encrypted(room):
            return True
        if time.monotonic() - self._plain.get(room, -PLAIN) < PLAIN:
            return False
        try:
            await self._server.get(path_of("rooms", room, "state", "m.room.encryption", ""))
        except HomeserverRefused as error:
            if error.code != "M_NOT_FOUND":
                raise
            self._plain[room] = time.monotonic()
            return False
        await self._keep_encrypted(room)
        return True

    async def _was_encrypted(self, room: str) -> bool:
        if room not in self._encrypted and (await self._records.get(RoomRecord, room)).encrypted:
            self._encrypted.add(room)
        return room in self._encrypted

    async def _keep_encrypted(self, room: str) -> None:
        await self._records.update(RoomRecord, (room,), lambda _: (RoomRecord(encrypted=True), None))
        self._encrypted.add(room)
        self._plain.pop(room, None)

    async def read(self, room: str, event: RoomEvent) -> RoomEvent:
        """What was said. Raises NoKeyYet, NeverReadable."""
        return await self._keys.read(room, event, remember=True)

    async def look_at(self, room: str, event: RoomEvent) -> RoomEvent:
        """What was said earlier, as far as it can be read; of what was taken back nothing can."""
        if event.type != "m.room.encrypted":
            return event
        if not event.content:
            return msgspec.structs.replace(event, type="m.room.message")
        try:
            return await self._keys.read(room, event, remember=False)
        except (NoKeyYet, NeverReadable):
            return event

    async def encrypt(self, room: str, kind: str, content: dict[str, Any], *, draft: bool = False) -> dict[str, Any]:
        return await self._speaker.encrypt(room, kind, content, draft=draft)
