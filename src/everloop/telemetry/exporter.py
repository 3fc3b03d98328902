"""Sends the spans of turns that have ended to a collector, beside everything else and in nobody's way.

All that is kept of a turn until then is its name: its spans are in the log. So whatever the collector does, little is
held here, and when it is back, what could not be sent is read once more.
"""

import asyncio
import logging
from collections import deque
from contextlib import suppress
from typing import Protocol

from msgspec import Struct, structs

from ..core.log import MANY, UserSaid
from ..core.turn import Finished
from ..errors import EverloopError, StoreError
from ..ports import Arrivals, Http, Log, Outgoing
from ..readings.spans import TurnSpans, deliver, keys_of, turns_of
from .contents import contents_of
from .otlp import request
from .target import ExportTarget

_log = logging.getLogger("everloop.telemetry")

PAUSE = 2.0  # seconds for which turns are gathered
BATCH = 64  # turns of one request
MOST = 2000  # turns that wait; beyond that the oldest are forgotten
DELIVERY = 10.0  # seconds after which a turn is sent whose answer is still on its way
SECONDS = 10.0  # for an answer of the collector
FAREWELL = 2.0  # seconds for the last ones, when the house closes
LONGEST_REST = 60.0  # between two tries
WIDER = (0, 64, 1024, MANY)  # entries before a turn's first that are read as well, if it began in the middle of another
AGAIN = (408, 429, 502, 503, 504)


class Ended(Struct, frozen=True):
    """A turn that is over, as a name: the entries at which it began and ended. `late`: its answer is waited for no
    longer."""

    thread: str
    turn: int
    seq: int
    late: bool = False


class Told(Struct, frozen=True):
    """A turn as it is sent."""

    name: Ended
    turn: TurnSpans
    content: dict[str, dict[str, str]]


class SpanStore(Log, Arrivals, Outgoing, Protocol):
    """Turns, when their letters came, and what became of their answers."""


class Exporter:
    """Give it `note` for every turn that ends, have it `run`, and `close` it after that."""

    def __init__(
        self,
        store: SpanStore,
        http: Http,
        target: ExportTarget,
        version: str,
        content: bool = False,
        *,
        pause: float = PAUSE,
        delivery: float = DELIVERY,
    ) -> None:
        self._store = store
        self._http = http
        self._target = target
        self._version = version
        self._content = content
        self._pause = pause
        self._delivery = delivery
        self._waiting: deque[Ended] = deque()
        self._later: dict[Ended, asyncio.TimerHandle] = {}  # their answers are on the way
        self._noted = asyncio.Event()
        self._failures = 0
        self._forgotten = 0

    def note(self, thread: str, turn: Finished) -> None:
        self._add(Ended(thread, turn.turn, turn.seq))

    def _add(self, name: Ended) -> None:
        self._waiting.append(name)
        if len(self._waiting) > MOST:
            self._waiting.popleft()
            self._forgotten += 1
        self._noted.set()

    async def run(self) -> None:
        while True:
            await self._noted.wait()
            await asyncio.sleep(min(LONGEST_REST, self._pause * 2**self._failures))
            self._noted.clear()
            await self._send_all()
            if self._waiting:
                self._noted.set()

    async def close(self) -> None:
        """Send what is left, if the collector was there at all until now."""
        for name in tuple(self._later):
            self._later[name].cancel()
            self._take_up(name)
        if self._waiting and not self._failures:
            with suppress(TimeoutError):
                async with asyncio.timeout(FAREWELL):
                    await self._send_all(last=True)

    async def _send_all(self, last: bool = False) -> None:
        """Everything that waits now, but for what is still being delivered or cannot be sent."""
        for _ in range(0, len(self._waiting), BATCH):
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            try:
                found = [told for name in batch if (told := await self._read(name))]
                ready = found if last else [told for told in found if not self._put_off(told)]
                again = await self._post(ready) if ready else False
            except asyncio.CancelledError:  # the house closes: they are sent once more, and have the same ids
                self._waiting.extendleft(reversed(batch))
                raise
            except Exception:  # a fault here must end nothing but the trace
                _log.exception("the spans of %d turns cannot be told", len(batch))
                continue
            if again:
                self._waiting.extendleft(told.name for told in reversed(ready))
                return

    def _put_off(self, told: Told) -> bool:
        """Wait a little for an answer that is still on its way; once."""
        on_its_way = any(span.kind == "delivery" and span.end is None for span in told.turn.spans)
        if not on_its_way or told.name.late or len(self._later) >= MOST:
            return False
        self._later[told.name] = asyncio.get_running_loop().call_later(self._delivery, self._take_up, told.name)
        return True

    def _take_up(self, name: Ended) -> None:
        del self._later[name]
        self._add(structs.replace(name, late=True))

    async def _read(self, name: Ended) -> Told | None:
        """A turn with its spans, if it is one."""
        try:
            return await self._find(name)
        except StoreError as error:
            _log.warning("the spans of turn %s:%d cannot be read: %s", name.thread, name.turn, error)
            return None

    async def _find(self, name: Ended) -> Told | None:
        store, thread = self._store, name.thread
        for more in WIDER:
            after = max(0, name.turn - 1 - more)
            history = await store.history(thread, after, name.seq - after)
            if not more and not (history and isinstance(history[0].entry, UserSaid)):
                return None  # something was taken back, which is no turn
            turns = [turn for turn in turns_of(thread, history) if (turn.turn, turn.ended) == (name.turn, name.seq)]
            if turns:
                arrivals = await store.arrivals([turn.mail for turn in turns if turn.mail])
                deliver(thread, turns, arrivals, await store.deliveries(keys_of(thread, turns)))
                return Told(name, turns[0], contents_of(thread, turns[0], history) if self._content else {})
        return None

    async def _post(self, told: list[Told]) -> bool:
        """Send them; says whether it is to be tried again."""
        target = self._target
        content = {id: about for each in told for id, about in each.content.items()}
        body = request([each.turn for each in told], target.resource, self._version, content)
        headers = {"Content-Type": "application/x-protobuf", **target.headers}
        try:
            async with self._http.request("POST", target.url, body=body, headers=headers, seconds=SECONDS) as answer:
                status = answer.status
                await answer.read()
        except EverloopError as error:
            return self._fail(f"{error}", again=True)
        if status >= 300:
            return self._fail(f"the collector answers with {status}", again=status in AGAIN)
        self._succeed()
        return False

    def _fail(self, why: str, again: bool) -> bool:
        """One line for an outage, however long it lasts."""
        if not self._failures:
            _log.warning(
                "spans are not sent: %s%s", why, "" if again else "; check telemetry.otlp_headers and its address"
            )
        self._failures = min(self._failures + 1, 16)
        return again

    def _succeed(self) -> None:
        if self._failures or self._forgotten:
            _log.info("spans are sent again; those of %d turns were forgotten meanwhile", self._forgotten)
        self._failures = self._forgotten = 0
