"""What is heard is committed before the homeserver hears that we have it: the next `/sync` begins where this ended."""

import asyncio
import logging
from collections.abc import Sequence
from itertools import chain

import msgspec
from msgspec import Struct

from ...errors import ProviderError
from ...ports import Deliver
from ...ports.channel import Incoming
from ..batch import deliver_all
from .codec import OurAccount, Reader, RoomEvent
from .deciphering import Deciphering
from .encrypted import UnreadableRooms
from .homeserver import Homeserver, HomeserverRefused, path_of
from .joining import Invitation, Joining
from .lookup import Lookup
from .rooms import Rooms
from .side_by_side import each_of
from .sync import Happened, Synced, SyncReader

_log = logging.getLogger("everloop.channels.matrix")


class MatrixResume(Struct, frozen=True, omit_defaults=True):
    """Where to go on, and the invitations that still wait. They are one account's: of another's nothing is known."""

    user: str = ""
    since: str = ""
    invitations: tuple[Invitation, ...] = ()


def read_resume(resume: str) -> MatrixResume:
    return msgspec.json.decode(resume, type=MatrixResume) if resume else MatrixResume()


class MatrixListener:
    def __init__(
        self,
        server: Homeserver,
        sync: SyncReader,
        deciphering: Deciphering | None,
        us: OurAccount,
        rooms: Rooms,
        lookup: Lookup,
        joining: Joining,
        unreadable: UnreadableRooms,
        deliver: Deliver,
        *,
        receipts: bool,
    ) -> None:
        self._server = server
        self._us = us
        self._rooms = rooms
        self._lookup = lookup
        self._joining = joining
        self._unreadable = unreadable
        self._deliver = deliver
        self._receipts = receipts
        self._sync = sync
        self._deciphering = deciphering

    async def run(self, resume: str) -> None:
        """For ever. Raises HomeserverRefused, ChannelDown, StoreError and what Http raises."""
        kept = read_resume(resume)
        if kept.user != self._us.user:
            kept = MatrixResume(self._us.user)
        self._joining.waiting.update({each.room: each for each in kept.invitations})
        if self._deciphering:
            await self._deciphering.start()
        async with asyncio.TaskGroup() as group:
            self._joining.start(group)
            while True:
                kept = await self._hear(kept, group)

    async def _hear(self, kept: MatrixResume, group: asyncio.TaskGroup) -> MatrixResume:
        synced = await self._synced(kept.since)
        self._joining.take(synced.invited)
        if self._deciphering:
            await self._deciphering.take(synced)
        rooms = synced.joined.items()
        come = await self._deciphering.come() if self._deciphering else []
        heard = [each for waited, event in come for each in await self._understood(waited.room, [event])]
        heard += chain(*await each_of(rooms, lambda each: self._read(each[0], each[1], group)))
        if self._deciphering:
            await self._deciphering.keep()
        now = MatrixResume(self._us.user, synced.next, tuple(self._joining.waiting.values()))
        if heard:
            await deliver_all(self._deliver, heard, msgspec.json.encode(now).decode())
        elif now != kept:
            await self._deliver.skip_to(msgspec.json.encode(now).decode())
        if self._deciphering:
            await self._deciphering.done(come)
        self._joining.start(group)
        if self._receipts and heard:
            group.create_task(self._acknowledge({_room(each): each.event for each in heard}))
        return now

    async def _synced(self, since: str) -> Synced:
        try:
            return await self._sync.since(since)
        except HomeserverRefused as error:
            if not since or error.status != 400 or not error.is_final:
                raise
        _log.warning("the homeserver has lost where we were, with what was said since; it is heard from now on")
        return await self._sync.since("")

    async def _read(self, room: str, happened: Happened, group: asyncio.TaskGroup) -> list[Incoming]:
        self._rooms.note(room, happened.state)
        is_unreadable = any(
            event.type == "m.room.encrypted" and event.sender != self._us.user for event in happened.said
        )
        if self._deciphering:
            happened = await self._deciphering.read(room, happened)
        elif is_unreadable:
            group.create_task(self._unreadable.tell(room))
        return await self._understood(room, happened.said)

    async def _understood(self, room: str, said: Sequence[RoomEvent]) -> list[Incoming]:
        self._lookup.note(room, (event for event in said if event.type == "m.room.message"))
        if not any(event.state_key is None and event.sender != self._us.user for event in said):
            return []
        standing = await self._rooms.standing(room)
        heard = [await self._incoming(room, event, direct=standing.direct) for event in said]
        return [each for each in heard if each]

    async def _incoming(self, room: str, event: RoomEvent, *, direct: bool) -> Incoming | None:
        if event.sender == self._us.user or event.state_key is not None:
            return None
        known = await self._lookup.referred_to(room, event)
        return Reader(room, self._us, known, direct=direct).read(event, self._rooms.name(room, event.sender))

    async def _acknowledge(self, latest: dict[str, str]) -> None:
        for room, event in latest.items():
            try:
                await self._server.post(path_of("rooms", room, "receipt", "m.read", event), {})
            except (HomeserverRefused, ProviderError) as error:
                _log.info("matrix: %s", error)


def _room(incoming: Incoming) -> str:
    return incoming.chat.removeprefix("@")
