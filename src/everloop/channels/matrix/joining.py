"""Invitations: which are followed, and that none that should be is forgotten.

Where to resume names those that wait, so that they survive a restart. A join may take a minute, or for ever, where the
room is on a server that somebody else runs: nobody waits for it.
"""

import asyncio
import logging
from collections.abc import Mapping

from msgspec import Struct

from ...errors import ProviderError
from ...ports import Deliver
from ...ports.channel import KnowsPeople
from .codec import RoomEvent
from .direct import DirectChats
from .homeserver import Homeserver, HomeserverRefused, path_of
from .rooms import NoTroubles, Rooms, RoomStanding

_log = logging.getLogger("everloop.channels.matrix")

SECONDS = 60.0  # for one join
TRIES = 3
MOST_WAITING = 100
MOST_OF_ONE_SERVER = 20  # so that whoever runs one, with as many accounts as they like, keeps nobody else's from us
AT_ONCE = 4


class Invitation(Struct, frozen=True):
    room: str
    by: str
    direct: bool = False  # as whoever invites says


def read_invitation(room: str, us: str, state: tuple[RoomEvent, ...]) -> Invitation | None:
    ours = [event for event in state if event.type == "m.room.member" and event.state_key == us]
    ours = [event for event in ours if event.content.get("membership") == "invite"]
    return Invitation(room, ours[-1].sender, ours[-1].content.get("is_direct") is True) if ours else None


def _server_of(user: str) -> str:
    return user.partition(":")[2]


class Joining:
    """`join` is the setting. With `known`, people who are known here bring us into any room, and strangers into a room
    of two alone: there they can be told how to be let in. If it proves to be another, we leave it."""

    def __init__(self, server: Homeserver, rooms: Rooms, us: str, join: str, deliver: Deliver) -> None:
        self._server = server
        self._rooms = rooms
        self._us = us
        self._join = join
        self._deliver = deliver
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._begun: set[str] = set()
        self.waiting: dict[str, Invitation] = {}

    def take(self, invited: Mapping[str, tuple[RoomEvent, ...]]) -> None:
        """What has come with a sync."""
        for room, state in invited.items():
            invitation = read_invitation(room, self._us, state)
            if invitation is None or self._join == "never":
                continue
            if room in self.waiting or self._has_room_for(invitation):
                self.waiting[room] = invitation
            else:
                _log.warning("an invitation into a room of matrix is not followed: too many are waiting")

    def _has_room_for(self, invitation: Invitation) -> bool:
        of_its_server = sum(_server_of(each.by) == _server_of(invitation.by) for each in self.waiting.values())
        return len(self.waiting) < MOST_WAITING and of_its_server < MOST_OF_ONE_SERVER

    def start(self, group: asyncio.TaskGroup) -> None:
        for room in self.waiting.keys() - self._begun:
            self._begun.add(room)
            group.create_task(self._follow(self.waiting[room]))

    async def _follow(self, invitation: Invitation) -> None:
        try:
            async with self._turns:
                await self._decide(invitation)
        finally:
            self._begun.discard(invitation.room)
        self.waiting.pop(invitation.room, None)

    async def _decide(self, invitation: Invitation) -> None:
        known = self._join == "always" or await self._is_known(invitation.by)
        if not known and not invitation.direct:
            _log.info("%s has invited us into a room of several, and is nobody who is known here", invitation.by)
            return
        if not await self._joined(invitation.room):
            return
        standing = await self._standing(invitation.room)
        if standing is None:
            return
        if standing.direct:
            await self._note(invitation)
        elif not known:
            _log.info("%s has called a room of several one of two; we have left it", invitation.by)
            await self._try("leave", invitation.room)

    async def _note(self, invitation: Invitation) -> None:
        try:
            await DirectChats(self._server, self._rooms, self._us).note(invitation.by, invitation.room)
        except (HomeserverRefused, ProviderError) as error:
            _log.info("matrix: %s", error)

    async def _is_known(self, account: str) -> bool:
        return isinstance(self._deliver, KnowsPeople) and await self._deliver.knows(account)

    async def _standing(self, room: str) -> RoomStanding | None:
        """None: the homeserver cannot tell. No reason to leave: what is said there waits for the same answer."""
        asked = Rooms(self._server, self._us, NoTroubles())  # as it is now
        for number in range(TRIES):
            try:
                return await asked.standing(room)
            except (HomeserverRefused, ProviderError) as error:
                _log.info("matrix does not tell us who is in a room: %s", error)
            await asyncio.sleep(2.0**number)
        return None

    async def _joined(self, room: str) -> bool:
        for number in range(TRIES):
            if await self._try("join", room):
                return True
            await asyncio.sleep(2.0**number)
        return False

    async def _try(self, what: str, room: str) -> bool:
        try:
            async with asyncio.timeout(SECONDS):
                await self._server.post(path_of("rooms", room, what), {}, seconds=SECONDS)
        except (HomeserverRefused, ProviderError, TimeoutError) as error:
            _log.info("matrix does not let us %s a room: %s", what, error)
            return False
        return True
