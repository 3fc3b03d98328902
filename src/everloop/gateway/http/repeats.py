"""The same request again, from a client that has no answer: its first turn counts, and is not done a second time
(idempotency).

Clients ask again by themselves when a connection breaks, when they have waited too long, and after some answers. None
of them says so, so a request is known by what it says: its credential, route, session and body make the event of its
letter, and the inbox takes an event once. Whoever repeats themselves on purpose has been given an answer before, and
has another number under the same name.
"""

from hashlib import sha256
from typing import Self

import msgspec
from aiohttp import web
from msgspec import structs

from ...core.log import CallReturned, Entry, ModelSaid
from ...core.mail import Inbound, Said
from ...ports import Arrivals, Clock
from ...ports.rows import Came
from ..ports import Admit
from .turn_errors import TurnStore, is_there, what_ran

WINDOW = 600.0  # seconds after its end for which a turn stands for the same request
_PREFIX = "once:"
_LAST = 0xFFFFFFFF
_HOW = ("stream", "stream_options")  # how an answer is told, and not what is asked


def event_of(*parts: object) -> str:
    """The first name of a request that has none of its own. The last part is what it says."""
    *rest, plain = parts
    if isinstance(plain, dict):
        plain = {name: value for name, value in plain.items() if name not in _HOW}
    digest = sha256(msgspec.json.encode((*rest, plain), order="sorted")).hexdigest()[:32]
    return f"{_PREFIX}{digest}:{0:08x}"


def token_of(event: str) -> str:
    """What a conversation that begins with this event is called."""
    return sha256(event.encode()).hexdigest()[:24]


async def came_before(store: Arrivals, channel: str, event: str) -> Came | None:
    """The last letter under this name, whatever its number."""
    name = event.rpartition(":")[0]
    return await store.newest(channel, f"{name}:{0:08x}", f"{name}:{_LAST:08x}")


def next_event(event: str) -> str:
    """The name of the same request, once more."""
    name, _, number = event.rpartition(":")
    return f"{name}:{int(number, 16) + 1:08x}"


class Repeats:
    """The requests whose clients wait for an answer at this door, by event."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, list[web.Request]] = {}

    def attempt(
        self, store: TurnStore, request: web.Request, inbound: Inbound, admit: Admit | None = None
    ) -> "Attempt":
        return Attempt(store, self._clock, self._waiting, request, inbound, admit)


class Attempt:
    """A request on its way to its turn: `with` it for as long as its client waits, in which the same request from
    elsewhere is one of its own. `inbound` is the letter that stands for it; `admit` is asked before it is posted."""

    def __init__(
        self,
        store: TurnStore,
        clock: Clock,
        waiting: dict[str, list[web.Request]],
        request: web.Request,
        inbound: Inbound,
        admit: Admit | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._waiting = waiting
        self._request = request
        self.inbound = inbound
        self.admit = admit

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    async def again(self) -> Inbound | None:
        """Another letter in place of one that has come before, or None to go on with that one."""
        event = self.inbound.event
        if not event.startswith(_PREFIX):  # the client has named it, and means the same
            return None
        came = await came_before(self._store, self.inbound.address.channel, event)
        assert came is not None, "it has come before"
        is_over = await self._is_over(came)
        if not is_over and came.event == event:
            return None
        self._end()
        self.inbound = _renamed(self.inbound, next_event(came.event) if is_over else came.event)
        self._begin()
        return self.inbound

    async def _is_over(self, came: Came) -> bool:
        """Whether that request is done with, so that this is another one."""
        others = [each for each in self._waiting.get(came.event, ()) if each is not self._request]
        if any(is_there(each) for each in others):
            return True
        if not came.ended:
            return False
        if came.given or came.ended < 0:
            return came.given or self._clock.now() - came.at > WINDOW
        [end] = await self._store.history(came.thread, came.ended - 1, 1)
        if self._clock.now() - end.at > WINDOW:
            return True
        answered = isinstance(entry := end.entry, ModelSaid | CallReturned) and not _is_cancelled(entry)
        return not answered and await what_ran(self._store, came) == ()

    def _begin(self) -> None:
        self._waiting.setdefault(self.inbound.event, []).append(self._request)

    def _end(self) -> None:
        event = self.inbound.event
        self._waiting[event].remove(self._request)
        if not self._waiting[event]:
            del self._waiting[event]


def _is_cancelled(entry: Entry) -> bool:
    return isinstance(entry, CallReturned) and entry.outcome == "cancelled"


def _renamed(inbound: Inbound, event: str) -> Inbound:
    """The same letter under another event; a conversation of its own begins elsewhere."""
    before, after = token_of(inbound.event), token_of(event)
    letter, address = inbound.letter, inbound.address
    assert isinstance(letter, Said)
    if letter.brought is not None and letter.brought.id == before:
        letter = structs.replace(letter, brought=structs.replace(letter.brought, id=after))
    if address.chat == before:
        address = structs.replace(address, chat=after)
        letter = structs.replace(letter, address=str(address))
    return Inbound(address, event, letter, inbound.owner)
