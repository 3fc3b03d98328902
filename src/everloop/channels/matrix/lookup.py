"""The events that others refer to: what is replied to, edited, taken back, or the root of a thread."""

from collections import OrderedDict
from collections.abc import Iterable

from ...errors import HostTimeout
from .codec import RoomEvent, read_event, referred_to
from .device import OurDevice
from .homeserver import Homeserver, HomeserverRefused, path_of

REMEMBERED = 5_000
LARGEST_EVENT = 400_000  # bytes, with all that a homeserver says beside it


class Lookup:
    """Remembers the latest events: of one that was taken back the homeserver has no content any more."""

    def __init__(self, server: Homeserver, device: OurDevice) -> None:
        self._server = server
        self._device = device
        self._seen: OrderedDict[tuple[str, str], RoomEvent | None] = OrderedDict()

    def note(self, room: str, events: Iterable[RoomEvent]) -> None:
        for event in events:
            if event.event_id:
                self._keep(room, event.event_id, event)

    async def referred_to(self, room: str, event: RoomEvent) -> dict[str, RoomEvent]:
        """Those of them that are there. What cannot be had now is as absent as what is not there."""
        found = {id: await self.find(room, id) for id in referred_to(event)}
        return {id: each for id, each in found.items() if each}

    async def find(self, room: str, id: str) -> RoomEvent | None:
        if not id:
            return None
        if (room, id) not in self._seen:
            try:
                said = await self._server.get(path_of("rooms", room, "event", id), limit=LARGEST_EVENT)
            except HostTimeout:
                return None
            except HomeserverRefused as error:
                if not error.is_final:
                    return None
                said = None
            event = read_event(said)
            event = await self._device.look_at(room, event) if event else None
            self._keep(room, id, event if event and event.event_id == id else None)
        return self._seen[room, id]

    def _keep(self, room: str, id: str, event: RoomEvent | None) -> None:
        self._seen[room, id] = event
        self._seen.move_to_end((room, id))
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
