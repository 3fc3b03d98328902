"""Drafts that a process has left when it was killed: the answer takes their place, so that nobody reads it twice.

A draft says in its event which message it answers. It is looked for in the room itself, once for each room that this
process sends in, for what it shows afterwards it knows; and again after one of which nobody has heard whether it came.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from .codec import RoomEvent, read_event
from .device import OurDevice
from .homeserver import Homeserver, HomeserverRefused, path_of

DRAFT = "org.everloop.draft"  # in a draft of ours: the event that it is to answer
LATEST = 20  # messages of ours that are looked through
_REMEMBERED = 10_000


class LeftDrafts:
    """Raises HomeserverRefused, and what Http raises."""

    def __init__(self, server: Homeserver, device: OurDevice) -> None:
        self._server = server
        self._device = device
        self._seen: set[str] = set()

    @asynccontextmanager
    async def showing(self, room: str) -> AsyncIterator[None]:
        """While a new draft is on its way. When that is broken off, it may have arrived."""
        known = room in self._seen
        self._seen.discard(room)
        yield
        if known:
            self._seen.add(room)

    async def take(self, room: str, us: str, letter: str) -> str:
        """The draft of an answer to this message that was left in the room; "" if there is none."""
        if not letter or room in self._seen:
            return ""
        asked = json.dumps({"types": ["m.room.message", "m.room.encrypted"], "senders": [us]})
        query = {"dir": "b", "limit": str(LATEST), "filter": asked}
        try:
            page = await self._server.get(path_of("rooms", room, "messages"), query)
        except HomeserverRefused as error:
            if not error.is_final:
                raise
            page = {}
        if len(self._seen) > _REMEMBERED:
            self._seen.clear()
        self._seen.add(room)
        chunk = page.get("chunk") if isinstance(page, dict) else None
        events = [read_event(each) for each in chunk] if isinstance(chunk, list) else []
        drafts = [event.event_id for event in events if event and await self._is_draft(room, event, letter)]
        return drafts[0] if drafts else ""

    async def _is_draft(self, room: str, event: RoomEvent, letter: str) -> bool:
        """Of what was edited the latest edit tells whether it is still one."""
        relations = event.unsigned.get("m.relations")
        latest = read_event(relations.get("m.replace")) if isinstance(relations, dict) else None
        event = await self._device.look_at(room, event)
        latest = await self._device.look_at(room, latest) if latest else None
        content = latest.content.get("m.new_content") if latest else event.content
        return isinstance(content, dict) and event.content.get(DRAFT) == letter and content.get(DRAFT) == letter


def marked(content: dict[str, Any], letter: str) -> dict[str, Any]:
    return {**content, DRAFT: letter} if letter else content
