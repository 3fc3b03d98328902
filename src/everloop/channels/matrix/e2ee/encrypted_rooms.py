"""Which rooms are encrypted. One that was once is for ever, whatever a homeserver says later."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ....errors import VaultLocked
from ....ports.channel_state import ChannelRecords
from ..codec import RoomEvent
from ..homeserver import Homeserver, HomeserverRefused, path_of
from .records import KeyRecords, RoomRecord

_log = logging.getLogger("everloop.channels.matrix")

ENCRYPTION = "m.room.encryption"
MOST_MESSAGES = 10_000  # with one key, whatever a room asks for
LEAST_SECONDS, MOST_SECONDS = 3600, 365 * 86400


class EncryptedRooms:
    """It needs no extra. Raises as Homeserver and ChannelRecords do."""

    def __init__(self, server: Homeserver, state: ChannelRecords | None) -> None:
        """Without `state` it is known for as long as this process runs."""
        self._server = server
        self._records = KeyRecords(state, "rooms") if state else None
        self._encrypted: dict[str, RoomRecord] = {}
        self._plain: set[str] = set()  # to whoever listens, who is told when that changes

    async def note(self, room: str, state: Sequence[RoomEvent]) -> bool:
        """What a room says of itself. Whether it was encrypted before."""
        before = await self._known(room) if room not in self._plain else None
        told = [event for event in state if event.type == ENCRYPTION and event.state_key == ""]
        if told:
            await self._keep(room, told[-1].content)
        return before is not None

    async def is_heard_encrypted(self, room: str) -> bool:
        """For whoever notes all that a room says of itself: it is asked once."""
        if room not in self._plain and await self.find(room) is None:
            self._plain.add(room)
        return room not in self._plain

    async def find(self, room: str) -> RoomRecord | None:
        """As it is now: a room that is not known to be encrypted is asked each time, for it may have become so just
        now. None: it is not."""
        if known := await self._known(room):
            return known
        try:
            said = await self._server.get(path_of("rooms", room, "state", ENCRYPTION, ""))
        except HomeserverRefused as error:
            if error.code != "M_NOT_FOUND":
                raise
            return None
        return await self._keep(room, said)

    async def _known(self, room: str) -> RoomRecord | None:
        if self._records is None:
            return self._encrypted.get(room)
        try:
            record = await self._records.get(RoomRecord, room)
        except VaultLocked:  # there is one, and there is none of a room that is not encrypted
            return RoomRecord(encrypted=True)
        return record if record.encrypted else None

    async def _keep(self, room: str, said: Any) -> RoomRecord:
        record = read_encryption(said if isinstance(said, dict) else {})
        try:
            if self._records:
                await self._records.update(RoomRecord, (room,), lambda now: (now if now == record else record, None))
        except VaultLocked as error:
            _log.info("matrix: %s", error)
        self._encrypted[room] = record
        self._plain.discard(room)
        return record


def read_encryption(content: Mapping[str, Any]) -> RoomRecord:
    """How often a room wants its keys to change, within what is sane."""
    usual = RoomRecord()
    messages, period = content.get("rotation_period_msgs"), content.get("rotation_period_ms")
    most = min(max(messages, 1), MOST_MESSAGES) if isinstance(messages, int) else usual.messages
    seconds = float(min(max(period // 1000, LEAST_SECONDS), MOST_SECONDS)) if isinstance(period, int) else usual.seconds
    return RoomRecord(encrypted=True, messages=most, seconds=seconds)
