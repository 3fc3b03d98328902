"""What is heard in encrypted rooms, read. What is read with is committed before where to go on is."""

import logging
import time
from typing import TYPE_CHECKING

import msgspec

from ...errors import ChannelDown, ProviderError, Undeliverable
from .codec import RoomEvent
from .e2ee.encrypted_rooms import ENCRYPTION, EncryptedRooms
from .e2ee.waiting import TOO_LATE, WaitingMessage, WaitingMessages
from .homeserver import HomeserverRefused
from .sending import EventSender
from .sync import Happened, Synced
from .writing import message_of, transaction_of

if TYPE_CHECKING:
    from .e2ee.encryption import Encryption

_log = logging.getLogger("everloop.channels.matrix")

IN_CLEAR = ("m.room.message", "m.reaction")  # what somebody says, where it is not encrypted
AGAIN = 30.0  # seconds after which a device that was unknown may have told its keys


class Deciphering:
    """Of whoever listens. Raises as Homeserver and ChannelRecords do."""

    def __init__(
        self, encryption: "Encryption", rooms: EncryptedRooms, waiting: WaitingMessages, events: EventSender
    ) -> None:
        self._encryption = encryption
        self._rooms = rooms
        self._waiting = waiting
        self._events = events
        self._is_due = True  # what waits is tried again
        self._tried = 0.0

    async def start(self) -> None:
        await self._waiting.load()
        await self._encryption.start()

    async def take(self, synced: Synced) -> None:
        taken = await self._encryption.take(synced.whispered, synced.keys_left, fallback=synced.fallback_used)
        self._is_due = self._is_due or taken > 0

    async def read(self, room: str, happened: Happened) -> Happened:
        """With what could be read in place of what was encrypted; what has no key yet waits. In an encrypted room
        nothing is heard that is not: anybody at the homeserver could have written it in another's name."""
        if any(event.type == "m.room.member" for event in happened.state):
            self._encryption.note_members(room)
        is_encrypted = await self._is_encrypted(room, happened)
        said = [await self._readable(room, event, is_encrypted=is_encrypted) for event in happened.said]
        return msgspec.structs.replace(happened, said=tuple(event for event in said if event))

    async def _is_encrypted(self, room: str, happened: Happened) -> bool:
        """Before any of this happened."""
        was = await self._rooms.note(room, happened.state)
        is_begun = any(event.type == ENCRYPTION for event in happened.state)
        if was or is_begun or not any(event.type in IN_CLEAR for event in happened.said):
            return was
        try:
            return await self._rooms.is_heard_encrypted(room)
        except HomeserverRefused as error:
            if not error.is_final:
                raise
            return False

    async def _readable(self, room: str, event: RoomEvent, *, is_encrypted: bool) -> RoomEvent | None:
        if event.type in IN_CLEAR and is_encrypted and event.sender != self._encryption.user:
            _log.warning("what is said in clear in an encrypted room, in the name of %s, is not heard", event.sender)
            return None
        if event.type != "m.room.encrypted" or event.state_key is not None or event.sender == self._encryption.user:
            return event
        return await self._try(room, event)

    async def _try(self, room: str, event: RoomEvent) -> RoomEvent | None:
        from .e2ee.encryption import NeverReadable, NoKeyYet

        try:
            return await self._encryption.read(room, event)
        except NoKeyYet as error:
            _log.info("a message waits: %s", error)
            self._waiting.add(room, event)
        except NeverReadable as error:
            _log.warning("a message of %s cannot be read: %s", event.sender, error)
            self._waiting.drop(event)
        return None

    async def come(self) -> list[tuple[WaitingMessage, RoomEvent]]:
        """Those that waited and can be read now. They go on waiting until `done`."""
        if not self._is_due and time.monotonic() - self._tried < AGAIN:
            return []
        self._is_due, self._tried = False, time.monotonic()
        tried = [(each, await self._try(each.room, each.event)) for each in self._waiting.all]
        return [(each, event) for each, event in tried if event]

    async def keep(self) -> None:
        await self._waiting.keep()

    async def done(self, come: list[tuple[WaitingMessage, RoomEvent]]) -> None:
        """They were delivered. Who has waited for long is told."""
        self._waiting.remove(*(each for each, _ in come))
        for late in self._waiting.late():
            try:
                told = message_of(TOO_LATE, "", notice=True)
                await self._events.put(late.room, transaction_of("late", late.event.event_id), told)
            except (HomeserverRefused, ProviderError, ChannelDown, Undeliverable) as error:
                _log.info("matrix: %s", error)
            self._waiting.tell(late)
        await self._waiting.keep()
