"""End-to-end encryption as the channel sees it: what is heard is read, and what is said written for all."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ....errors import ChannelDown
from ....ports.channel_state import ChannelRecords
from ..codec import RoomEvent
from ..homeserver import Homeserver, path_of
from .account import ONE_TIME_KEYS, OlmAccount
from .cross_signing import CrossSigning
from .devices import Devices
from .hindrances import OTHER_KEYS
from .olm import OlmDevice, Whispered
from .records import InboundKey, KeyRecords, OutboundKey, RoomRecord
from .room_keys import NeverReadable, NoKeyYet, RoomKeys
from .speaking import RoomSpeaker

__all__ = ["Encryption", "NeverReadable", "NoKeyYet"]

UNUSED = 180 * 86400.0  # seconds after which a key that nobody has used is forgotten


class Encryption:
    """For one device of ours. Raises as Homeserver and ChannelRecords do."""

    def __init__(self, server: Homeserver, state: ChannelRecords, user: str, device: str) -> None:
        self._server = server
        self.user = user
        self._records = KeyRecords(state, user, device)
        self._account = OlmAccount(server, self._records, user, device)
        self._signing = CrossSigning(server, KeyRecords(state, user), self._account)
        self._devices = Devices(server, self._records)
        self._olm = OlmDevice(server, self._records, self._account, self._devices)
        self._keys = RoomKeys(self._records, self._devices)
        self._speaker = RoomSpeaker(server, self._records, self._account, self._devices, self._olm, self._keys)

    async def is_ours(self) -> bool:
        """Whether the homeserver knows no other keys for this device."""
        return await self._account.is_known()

    async def start(self) -> None:
        """Whoever listens does this first. Raises ChannelDown when another home was faster with keys of its own: one
        that came later would take their place."""
        published = await self._account.published()
        if published not in ("", (await self._account.keys()).signing):
            raise ChannelDown(OTHER_KEYS)
        if not published:
            await self._account.forget_upload()
        for kind in (InboundKey, OutboundKey):
            await self._records.forget_unused(kind, UNUSED)
        said = await self._server.post(path_of("keys", "upload"), {})
        left = said.get("one_time_key_counts", {}).get("signed_curve25519", 0)
        await self._account.publish(int(left), fallback=False)
        await self._signing.start()

    async def is_signed(self) -> bool:
        """Whether clients that send keys only to signed devices send them to ours, or will when it has started."""
        return not await self._signing.is_foreign()

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
        left = ONE_TIME_KEYS if left is None else left
        if fallback or left < ONE_TIME_KEYS // 2:
            await self._account.publish(left, fallback=fallback)
        return taken

    def note_members(self, room: str) -> None:
        """Somebody has come or gone."""
        self._speaker.note_members(room)

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

    async def encrypt(
        self, room: str, rules: RoomRecord, kind: str, content: dict[str, Any], *, draft: bool = False
    ) -> dict[str, Any]:
        return await self._speaker.encrypt(room, rules, kind, content, draft=draft)
