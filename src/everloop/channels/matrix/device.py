"""Who we are at the homeserver, and what the device encrypts with as which we are logged in."""

import logging
from typing import TYPE_CHECKING

from ...errors import ChannelRefused
from ...ports.channel_state import ChannelRecords
from .codec import OurAccount, RoomEvent
from .e2ee import has_extra, opened_encryption
from .e2ee.hindrances import NEEDS_EXTRA, NO_PLACE, OTHER_KEYS, UNSIGNED
from .homeserver import Homeserver, HomeserverRefused, path_of

if TYPE_CHECKING:
    from .e2ee.encryption import Encryption

_log = logging.getLogger("everloop.channels.matrix")


class OurDevice:
    """Raises HomeserverRefused, ChannelRefused, VaultLocked, and what Http raises."""

    def __init__(self, server: Homeserver, state: ChannelRecords | None, user: str = "") -> None:
        """`user` is who we are to be. Without `state` encrypted messages are neither read nor written."""
        self._server = server
        self._state = state
        self._user = user
        self._us: OurAccount | None = None
        self._encryption: Encryption | None = None
        self.id = ""

    async def account(self) -> OurAccount:
        if self._us is None:
            said = await self._server.get(path_of("account", "whoami"))
            user, self.id = str(said.get("user_id", "")), str(said.get("device_id") or "")
            if self._user and self._user != user:
                raise ChannelRefused(
                    f"channels.matrix.access_token is that of {user}, and channels.matrix.user_id says "
                    f"{self._user}: correct one of them"
                )
            self._us = OurAccount(user, await self._display_name(user))
        return self._us

    async def _display_name(self, user: str) -> str:
        try:
            name = (await self._server.get(path_of("profile", user, "displayname"))).get("displayname")
        except HomeserverRefused:
            return ""
        return name if isinstance(name, str) else ""

    async def encryption(self) -> "Encryption | None":
        """None where encrypted messages are not read: `hindrance` says why."""
        us = await self.account()
        if self._encryption is None and self._state and self.id:
            opened = opened_encryption(self._server, self._state, us.user, self.id)
            if opened and await opened.is_ours():
                self._encryption = opened
        return self._encryption

    async def hindrance(self) -> str:
        """Why encrypted messages are not read, or not all; and what whoever runs us does about it. "" when they are."""
        if encryption := await self.encryption():
            return "" if await encryption.is_signed() else UNSIGNED
        if not has_extra():
            return NEEDS_EXTRA
        return OTHER_KEYS if self._state else NO_PLACE

    async def look_at(self, room: str, event: RoomEvent) -> RoomEvent:
        """As far as it can be read."""
        encryption = await self.encryption() if event.type == "m.room.encrypted" else None
        return await encryption.look_at(room, event) if encryption else event
