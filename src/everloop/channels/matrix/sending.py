"""Events of ours on their way into rooms: into an encrypted one nothing is sent that everybody could read."""

import asyncio
from typing import Any

from ...errors import ChannelDown, Undeliverable
from ...ports.channel import OutgoingFile
from .device import OurDevice
from .e2ee.attachments import encrypted
from .e2ee.encrypted_rooms import EncryptedRooms
from .homeserver import Homeserver, path_of
from .writing import file_message

MESSAGE = "m.room.message"


class EventSender:
    """Raises HomeserverRefused, Undeliverable, ChannelDown, VaultLocked, and what Http raises."""

    def __init__(self, server: Homeserver, device: OurDevice, rooms: EncryptedRooms) -> None:
        self._server = server
        self._device = device
        self._rooms = rooms

    async def put(
        self, room: str, transaction: str, content: dict[str, Any], kind: str = MESSAGE, *, draft: bool = False
    ) -> str:
        """Whether the room is encrypted is asked as the last thing before. Reactions are never encrypted, on Matrix:
        who has reacted to what is counted by homeservers."""
        rules = await self._rooms.find(room) if kind == MESSAGE else None
        if rules:
            encryption = await self._device.encryption()
            if encryption is None:
                raise Undeliverable(f"this room is encrypted, and {await self._device.hindrance()}")
            if "url" in content:
                raise ChannelDown("this room has become encrypted while a file for it was on its way")
            content = await encryption.encrypt(room, rules, kind, content, draft=draft)
            kind = "m.room.encrypted"
        said = await self._server.put(path_of("rooms", room, "send", kind, transaction), content)
        return str(said["event_id"])

    async def upload(self, room: str, file: OutgoingFile) -> dict[str, Any]:
        """The message of a file that lies on the homeserver from now on: in an encrypted room as nobody there reads
        it, who does not read the message."""
        if not await self._rooms.find(room):
            url = await self._server.upload(file.name, file.mime, file.data)
            return file_message(file.name, file.mime, len(file.data), url)
        if await self._device.encryption() is None:
            raise Undeliverable(f"this room is encrypted, and {await self._device.hindrance()}")
        data, sealed = await asyncio.to_thread(encrypted, file.data)
        url = await self._server.upload("file", "application/octet-stream", data)
        return file_message(file.name, file.mime, len(file.data), url, sealed)
