"""Messages whose key has not come yet. They wait for it, also over a restart; who has sent one is told, once."""

import logging
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ....errors import ChannelDown
from ....ports.channel_state import ChannelRecords
from ..codec import RoomEvent
from .records import read, written

_log = logging.getLogger("everloop.channels.matrix")

MOST = 500  # messages
MOST_OF_ONE = 20  # person: whoever sends more of them keeps nobody else's from us
LATE = 120.0  # seconds after which it is told
_TEXTS = ("algorithm", "session_id", "ciphertext")
GIVEN_UP = 7 * 86400.0
TOO_LATE = (
    "I cannot read a message of yours, for its key has not come to me. If it comes, I shall answer. Otherwise let your "
    "client begin with a new key, and send it again: in Element, /discardsession does that. If your client sends keys "
    "to verified devices alone, allow it others."
)


class WaitingMessage(Struct, frozen=True):
    room: str
    event: RoomEvent
    at: float
    told: bool = False


class WaitingMessages:
    """Of whoever listens; what is added is kept by `keep`. Raises as ChannelRecords does."""

    def __init__(self, state: ChannelRecords, user: str, device: str, late: float = LATE) -> None:
        self._state = state
        self._key = f"{user} {device} waiting"
        self._late = late
        self._kept: tuple[WaitingMessage, ...] = ()
        self._version = 0
        self.all: tuple[WaitingMessage, ...] = ()

    async def load(self) -> None:
        kept = await self._state.get(self._key)
        self._version = kept.version
        self.all = read(kept.value, tuple[WaitingMessage, ...]) if kept.version else ()
        self._kept = self.all

    def add(self, room: str, event: RoomEvent) -> None:
        if any(each.event.event_id == event.event_id for each in self.all):
            return
        event = msgspec.structs.replace(event, content=_needed(event.content), unsigned={})
        theirs = sum(each.event.sender == event.sender for each in self.all)
        if theirs < MOST_OF_ONE and len(self.all) < MOST:
            self.all = (*self.all, WaitingMessage(room, event, time.time()))
        else:
            _log.warning("a message of %s does not wait for its key: too many do", event.sender)

    def remove(self, *done: WaitingMessage) -> None:
        self.all = tuple(each for each in self.all if each not in done)

    def drop(self, event: RoomEvent) -> None:
        self.all = tuple(each for each in self.all if each.event.event_id != event.event_id)

    async def keep(self) -> None:
        """Raises ChannelDown when another process has begun to listen: where to go on is then not ours to say."""
        self.all = tuple(each for each in self.all if time.time() - each.at < GIVEN_UP)
        if self.all == self._kept:
            return
        if not await self._state.put(self._key, written(self.all), self._version):
            raise ChannelDown("another process has begun to listen")
        self._version, self._kept = self._version + 1, self.all

    def late(self) -> list[WaitingMessage]:
        """The first of each room that has waited for long, and of which nobody was told."""
        told = {each.room for each in self.all if each.told}
        late = [each for each in self.all if time.time() - each.at > self._late and each.room not in told]
        return [*{each.room: each for each in reversed(late)}.values()]

    def tell(self, message: WaitingMessage) -> None:
        self.all = tuple(msgspec.structs.replace(e, told=True) if e.room == message.room else e for e in self.all)


def _needed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Enough to read it, and nothing that is nested deeper than what it refers to ever is."""
    texts = {name: content[name] for name in _TEXTS if isinstance(content.get(name), str)}
    relation = content.get("m.relates_to")
    flat = {name: each for name, each in relation.items() if _is_flat(each)} if isinstance(relation, dict) else {}
    return {**texts, **({"m.relates_to": flat} if flat else {})}


def _is_flat(value: Any) -> bool:
    values = value.values() if isinstance(value, dict) else (value,)
    return all(isinstance(each, str | bool) for each in values)
