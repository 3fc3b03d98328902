"""What a homeserver has for us since the last time (`/sync`), with what it left out of it.

A room in which much was said comes with a gap before its latest messages, which is read backwards, to where we were.
In a room that we have just joined that is where we were invited: what was said to us since then is not lost.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ...errors import ChannelDown, HostTimeout
from .codec import RoomEvent, read_event
from .homeserver import Homeserver, HomeserverRefused, OversizedReply, path_of
from .rooms import STATE, RoomTroubles
from .side_by_side import each_of

_log = logging.getLogger("everloop.channels.matrix")

WAIT = 30.0  # seconds that a homeserver keeps a request when there is nothing to tell
TIMELINE = 20  # events of one room in one answer
PAGE = 50
MOST_PAGES = 400  # of one gap
LARGEST = 16_000_000  # bytes of one answer
SAID = ("m.room.message", "m.room.encrypted", "m.room.redaction", "m.reaction")
_KEYS = "signed_curve25519"
_NOTHING = {"not_types": ["*"]}


class Happened(Struct, frozen=True):
    """In one room: what its state is told to be, and what was said, in order. In a room that is new to us nothing is
    said but what was said since we were invited."""

    state: tuple[RoomEvent, ...] = ()
    said: tuple[RoomEvent, ...] = ()


class Synced(Struct, frozen=True):
    """`invited` are the events that come with an invitation, by their room."""

    next: str
    joined: Mapping[str, Happened]
    invited: Mapping[str, tuple[RoomEvent, ...]]
    whispered: tuple[dict[str, Any], ...] = ()  # what devices have said to ours
    keys_left: int | None = None  # to begin with, of those that we have published; None: it does not say
    fallback_used: bool = False


class _Timeline(Struct):
    events: list[Any] = []
    limited: bool = False
    prev_batch: str = ""


class _Events(Struct):
    events: list[Any] = []


class _Joined(Struct):
    timeline: _Timeline = msgspec.field(default_factory=_Timeline)
    state: _Events = msgspec.field(default_factory=_Events)


class _Invited(Struct):
    invite_state: _Events = msgspec.field(default_factory=_Events)


class _Rooms(Struct):
    join: dict[str, _Joined] = {}
    invite: dict[str, _Invited] = {}


class _Answer(Struct):
    next_batch: str
    rooms: _Rooms = msgspec.field(default_factory=_Rooms)
    to_device: _Events = msgspec.field(default_factory=_Events)
    device_one_time_keys_count: dict[str, Any] | None = None
    device_unused_fallback_key_types: list[Any] | None = None


def filter_for(timeline: int) -> str:
    return json.dumps(
        {
            "presence": _NOTHING,
            "account_data": _NOTHING,
            "room": {
                "ephemeral": _NOTHING,
                "account_data": _NOTHING,
                "timeline": {"limit": timeline, "types": [*SAID, *STATE]},
                "state": {"types": [*STATE], "lazy_load_members": True, "include_redundant_members": True},
            },
        }
    )


class SyncReader:
    """Raises HomeserverRefused, ChannelDown and what Http raises."""

    def __init__(self, server: Homeserver, us: str, troubles: RoomTroubles) -> None:
        self._server = server
        self._us = us
        self._troubles = troubles

    async def since(self, since: str) -> Synced:
        """What has happened since then. Without one, where we are and what we are invited to: no history."""
        answer = await self._ask(since)
        rooms = answer.rooms.join
        happened = await each_of(rooms.items(), lambda each: self._happened(each[0], each[1], since))
        joined = dict(zip(rooms, happened, strict=True))
        invited = {room: _events(each.invite_state.events) for room, each in answer.rooms.invite.items()}
        unused = answer.device_unused_fallback_key_types
        return Synced(
            answer.next_batch,
            joined,
            invited,
            tuple(each for each in answer.to_device.events if isinstance(each, dict)),
            _keys_left(answer.device_one_time_keys_count),
            fallback_used=unused is not None and _KEYS not in unused,
        )

    async def _ask(self, since: str) -> _Answer:
        wait = {"timeout": str(int(WAIT * 1000)), "since": since} if since else {"timeout": "0"}
        for timeline, limit in ((TIMELINE if since else 1, LARGEST), (1, 4 * LARGEST)):
            query = {**wait, "filter": filter_for(timeline)}
            try:
                said = await self._server.get(path_of("sync"), query, seconds=WAIT + 60.0, limit=limit)
                return msgspec.convert(said, _Answer)
            except OversizedReply:
                continue  # what is left out then is fetched room by room
            except msgspec.ValidationError as error:
                raise ChannelDown("the homeserver answered /sync in a form that nobody knows") from error
        raise ChannelDown(f"the homeserver answered /sync with more than {4 * LARGEST} bytes")

    async def _happened(self, room: str, joined: _Joined, since: str) -> Happened:
        state, events = _events(joined.state.events), _events(joined.timeline.events)
        if not since:
            return Happened((*state, *events))
        pages = _Pages(self._server, room, joined.timeline.prev_batch, self._troubles)
        if joined.timeline.limited and not self._is_new(events):
            events = (*await pages.back_to(since, self._is_invited_in), *events)
        if self._was_invited(events) and not self._is_invited_in(events):
            events = (*await pages.back_to("", self._is_invited_in), *events)
        begin = self._last(events, "join") if self._is_new(events) else None
        begin = self._last(events, "invite") if self._is_invited_in(events) else begin
        return Happened((*state, *pages.state, *events), events[begin or 0 :])

    def _is_invited_in(self, events: Sequence[RoomEvent]) -> bool:
        return self._last(events, "invite") is not None

    def _is_new(self, events: Sequence[RoomEvent]) -> bool:
        """Whether we have come into the room just now; a change of our name is a join as well."""
        at = self._last(events, "join")
        return at is not None and _membership_before(events[at]) != "join"

    def _was_invited(self, events: Sequence[RoomEvent]) -> bool:
        at = self._last(events, "join")
        return at is not None and _membership_before(events[at]) == "invite"

    def _last(self, events: Sequence[RoomEvent], membership: str) -> int | None:
        ours = [
            at
            for at, event in enumerate(events)
            if event.type == "m.room.member"
            and event.state_key == self._us
            and event.content.get("membership") == membership
        ]
        return ours[-1] if ours else None


class _Pages:
    """The history of a room, read backwards (`/messages`)."""

    def __init__(self, server: Homeserver, room: str, start: str, troubles: RoomTroubles) -> None:
        self._server = server
        self._troubles = troubles
        self._room = room
        self._start = start
        self.state: list[RoomEvent] = []

    async def back_to(self, end: str, is_enough: Callable[[Sequence[RoomEvent]], bool]) -> tuple[RoomEvent, ...]:
        """The events before those that were read last, in order, from `end` on or from a page that is enough."""
        found: list[RoomEvent] = []
        query = {"dir": "b", "limit": str(PAGE), "filter": _PAGE_FILTER, **({"to": end} if end else {})}
        for _ in range(MOST_PAGES):
            if not self._start or self._start == end:
                break
            page = await self._next(query)
            found += page
            if is_enough(page):
                break
        else:
            _log.warning("more was said in a room than %d messages; those before them are not read", len(found))
        return tuple(reversed(found))

    async def _next(self, query: Mapping[str, str]) -> tuple[RoomEvent, ...]:
        path, start, self._start = path_of("rooms", self._room, "messages"), self._start, ""
        try:
            page = await self._server.get(path, {**query, "from": start}, limit=LARGEST)
        except (HomeserverRefused, HostTimeout) as error:
            if self._troubles.is_hopeless(self._room, error):
                return ()
            raise
        self.state += _events(page.get("state"))
        ended = page.get("end")
        self._start = ended if isinstance(ended, str) and ended != start else ""
        return _events(page.get("chunk"))


def _keys_left(counts: dict[str, Any] | None) -> int | None:
    left = counts.get(_KEYS, 0) if counts is not None else None
    return left if isinstance(left, int) else None


def _membership_before(event: RoomEvent) -> str:
    before = event.unsigned.get("prev_content")
    return str(before.get("membership", "")) if isinstance(before, dict) else ""


_PAGE_FILTER = json.dumps({"types": [*SAID, *STATE], "lazy_load_members": True, "include_redundant_members": True})


def _events(values: Any) -> tuple[RoomEvent, ...]:
    read = [read_event(each) for each in values] if isinstance(values, list | tuple) else []
    return tuple(event for event in read if event)
