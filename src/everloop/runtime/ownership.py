"""What one process at a time does for all, by a lease: listening at a channel and sending what goes out by it.

The lease is looked at several times while it holds, and is left half its time before others may take it: whatever the
store does, and also after the process was frozen, nothing runs here that another may have begun. Leases are elapsed
time, so nothing here goes by the clock that is handed to everything else.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ..errors import StoreError
from ..ports import Leases

_log = logging.getLogger("everloop.ownership")

LOOKS = 6  # in the time of a lease, at least
SELDOM = 1.0  # seconds between two of them, at most: who was killed on this machine is succeeded that soon

Work = Callable[[], Awaitable[object]]


class Ownership:
    """`run` holds the lease whenever it can be had; `during` runs something while it is held."""

    def __init__(self, store: Leases, name: str, seconds: float = 30.0) -> None:
        self._store = store
        self._name = name
        self._seconds = seconds
        self._gained, self._lost = asyncio.Event(), asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._told = ""

    @property
    def is_elsewhere(self) -> bool:
        """Whether it was looked for, and is not here."""
        return self._lost.is_set()

    async def run(self) -> None:
        """`run` it under a supervisor."""
        try:
            while True:
                await self._look()
                await asyncio.sleep(min(SELDOM, self._seconds / LOOKS))
        finally:
            held = self._gained.is_set()
            self._lose()
            if held:
                await asyncio.shield(self._leave())

    async def during(self, work: Work) -> None:
        """Have it run whenever the lease is held, until it ends by itself. Raises what it raises."""
        while True:
            await self._gained.wait()
            running, lost = asyncio.ensure_future(work()), asyncio.ensure_future(self._lost.wait())
            try:
                await asyncio.wait([running, lost], return_when=asyncio.FIRST_COMPLETED)
            finally:
                ended = running.done()
                running.cancel()
                lost.cancel()
                await asyncio.wait([running, lost])
            if ended:
                running.result()
                return
            if not running.cancelled() and (error := running.exception()):
                raise error

    async def _look(self) -> None:
        began = asyncio.get_running_loop().time()
        try:
            held = await self._store.hold(self._name, self._seconds)
        except StoreError as error:
            self._tell_once(error)
            return
        self._told = ""
        if held:
            self._gain(began + self._seconds / 2)  # for so long at least, whether it was prolonged now or before
        else:
            self._lose()

    def _gain(self, until: float) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(until, self._lose)
        if not self._gained.is_set():
            _log.info("%s is seen to here", self._name)
        self._lost.clear()
        self._gained.set()

    def _lose(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._gained.is_set():
            _log.info("%s is left to others", self._name)
        self._gained.clear()
        self._lost.set()

    def _tell_once(self, error: StoreError) -> None:
        """One line for an outage, however long it lasts."""
        if str(error) != self._told:
            _log.warning("the lease on %s cannot be had or prolonged, which is tried again: %s", self._name, error)
        self._told = str(error)

    async def _leave(self) -> None:
        try:
            await self._store.let_go(self._name)
        except StoreError as error:
            _log.warning("the lease on %s is left to run out: %s", self._name, error)
