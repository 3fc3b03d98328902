"""Who is in a room: whether what is said there is between one person and us, and what people are called there.

Nobody's word is taken for it, neither the flag of an invitation nor our own list of direct chats. A room is direct when
nobody but us and one other has ever been in it, or was invited; nobody comes in without an invitation; and nobody reads
it from outside. So a room of several never becomes the place of one person whose conversation others have read.
"""

import logging
from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ...errors import HostTimeout
from .codec import RoomEvent, read_event, text_at
from .homeserver import Homeserver, HomeserverRefused, OversizedReply, path_of

_log = logging.getLogger("everloop.channels.matrix")

TRIES = 5
FEW = 64_000  # bytes of a list of members; what is longer lists more than two
LARGEST_STATE = 200_000  # bytes; no event has as many
LONGEST_NAME = 100
REMEMBERED = 5_000
STATE = ("m.room.member", "m.room.join_rules", "m.room.history_visibility", "m.room.encryption")
_BY_INVITATION = ("invite", "private")
_FOR_MEMBERS = ("shared", "invited", "joined")


class RoomStanding(Struct, frozen=True):
    """Of a direct one, `other` is who else is there."""

    other: str = ""

    @property
    def direct(self) -> bool:
        return bool(self.other)


class RoomTroubles:
    """A room of which a homeserver can tell nothing keeps us from hearing the others for a while, and not for ever."""

    def __init__(self) -> None:
        self._met: Counter[str] = Counter()

    def is_hopeless(self, room: str, error: HomeserverRefused | HostTimeout) -> bool:
        """Whether this is all that will ever be heard."""
        if isinstance(error, HomeserverRefused) and (error.is_final or error.status < 500):
            return error.is_final
        self._met[room] += 1
        if self._met[room] < TRIES:
            return False
        _log.warning("what a homeserver cannot tell of a room is done without: %s", error)
        return True

    def are_over(self, room: str) -> None:
        self._met.pop(room, None)


class NoTroubles(RoomTroubles):
    """For whoever can wait, and ask again: only what is said for good is all that will ever be heard."""

    def is_hopeless(self, room: str, error: HomeserverRefused | HostTimeout) -> bool:
        return isinstance(error, HomeserverRefused) and error.is_final


class Rooms:
    """What is known of rooms, until something of it changes. Raises as Homeserver does."""

    def __init__(self, server: Homeserver, us: str, troubles: RoomTroubles) -> None:
        self._server = server
        self._us = us
        self._troubles = troubles
        self._known: OrderedDict[str, RoomStanding] = OrderedDict()
        self._names: OrderedDict[tuple[str, str], str] = OrderedDict()

    def note(self, room: str, events: Iterable[RoomEvent]) -> None:
        """State that has changed, or that is told again."""
        for event in events:
            if event.state_key is None:
                continue
            if event.type == "m.room.member":
                _keep(self._names, (room, event.state_key), text_at(event.content, "displayname")[:LONGEST_NAME])
            if event.type in STATE and not self._is_no_news(room, event):
                self._known.pop(room, None)

    def _is_no_news(self, room: str, event: RoomEvent) -> bool:
        """A room of several stays one, however many come and go. Of one of two we are told again who is there."""
        known = self._known.get(room)
        if known is None or event.type != "m.room.member":
            return False
        return not known.direct or (
            event.state_key in (known.other, self._us) and event.content.get("membership") == "join"
        )

    def name(self, room: str, user: str) -> str:
        return self._names.get((room, user), "") or user.partition(":")[0].removeprefix("@")

    def is_surely_direct(self, room: str) -> bool:
        """As far as it need not be asked for."""
        known = self._known.get(room)
        return known is not None and known.direct

    async def standing(self, room: str) -> RoomStanding:
        known = self._known.get(room)
        if known is None:
            known = RoomStanding(await self._other(room))
            _keep(self._known, room, known)
            self._troubles.are_over(room)
        return known

    async def _other(self, room: str) -> str:
        rule = await self._state(room, "m.room.join_rules", "join_rule", "invite")
        seen = await self._state(room, "m.room.history_visibility", "history_visibility", "shared")
        if rule not in _BY_INVITATION or seen not in _FOR_MEMBERS:
            return ""
        try:
            said = await self._server.get(path_of("rooms", room, "members"), limit=FEW)
        except OversizedReply:
            return ""
        except (HomeserverRefused, HostTimeout) as error:
            if self._troubles.is_hopeless(room, error):
                return ""
            raise
        return other_of_two(said.get("chunk", ()), self._us)

    async def _state(self, room: str, kind: str, name: str, usual: str) -> Any:
        """What a room says of itself; where it says nothing, what is usual. None: nobody knows."""
        try:
            said = await self._server.get(path_of("rooms", room, "state", kind, ""), limit=LARGEST_STATE)
        except (HomeserverRefused, HostTimeout) as error:
            if isinstance(error, HomeserverRefused) and error.code == "M_NOT_FOUND":
                return usual
            if self._troubles.is_hopeless(room, error):
                return None
            raise
        return said.get(name) if isinstance(said, dict) else None


def other_of_two(members: Iterable[Any], us: str) -> str:
    """Who is there, or is invited, beside us, when nobody else is among these, who may also have left; else ""."""
    events = [read_event(each) for each in members]
    others = [event for event in events if event is None or event.state_key != us]
    match others:
        case [RoomEvent(state_key=str(other), content={"membership": "join" | "invite"})]:
            return other
    return ""


def _keep(table: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    table[key] = value
    table.move_to_end(key)
    while len(table) > REMEMBERED:
        table.popitem(last=False)
