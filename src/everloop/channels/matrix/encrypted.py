"""What we say where people write encrypted messages, which we cannot read."""

import logging

from ...errors import EverloopError
from .direct import DirectChats
from .homeserver import Homeserver, HomeserverRefused, path_of
from .rooms import Rooms
from .writing import transaction_of

_log = logging.getLogger("everloop.channels.matrix")

TOLD = "org.everloop.told"  # in a room's account data: that it was said there
CANNOT = (
    "I cannot read encrypted messages until whoever runs me has installed everloop[matrix-e2ee], or has done what "
    "`everloop channels test matrix` says"
)
UNREADABLE = f"{CANNOT}: talk to me in another room, without end-to-end encryption, and invite me there."
ELSEWHERE = f"{CANNOT}: I have invited you into a room without end-to-end encryption, to talk there if you like."


class UnreadableRooms:
    """Says so once in each room, also after a restart. Who is alone with us there is invited into a room that can be
    read, unless we are to go nowhere by ourselves."""

    def __init__(self, server: Homeserver, rooms: Rooms, us: str, *, may_invite: bool) -> None:
        self._server = server
        self._rooms = rooms
        self._us = us
        self._may_invite = may_invite
        self._seen: set[str] = set()

    async def tell(self, room: str) -> None:
        """What fails is not tried again before the next start."""
        if room in self._seen:
            return
        self._seen.add(room)
        try:
            await self._tell(room)
        except (HomeserverRefused, EverloopError) as error:
            _log.info("matrix: %s", error)

    async def _tell(self, room: str) -> None:
        told = path_of("user", self._us, "rooms", room, "account_data", TOLD)
        if await self._is_there(told):
            return
        other = (await self._rooms.standing(room)).other if self._may_invite else ""
        if other:
            await DirectChats(self._server, self._rooms, self._us).find_or_make(other, readable=True)
        content = {"msgtype": "m.notice", "body": ELSEWHERE if other else UNREADABLE, "m.mentions": {}}
        send = path_of("rooms", room, "send", "m.room.message", transaction_of("unreadable", room))
        await self._server.put(send, content)
        await self._server.put(told, {"unreadable": True})

    async def _is_there(self, path: str) -> bool:
        try:
            await self._server.get(path)
        except HomeserverRefused as error:
            if error.code != "M_NOT_FOUND":
                raise
            return False
        return True
