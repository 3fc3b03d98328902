"""How a channel stands while it listens, as others are told: what is said is a row, written when it changes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ..errors import StoreError
from ..ports import Clock, ListeningStates
from ..ports.listening import ListeningState

_log = logging.getLogger("everloop.channels")

SETTLED = 2.0  # seconds without a failure, after which it is said that it listens
CALM = 45.0  # after it has failed: a platform that cannot be reached takes its time to say so

Work = Callable[[], Awaitable[object]]
Hide = Callable[[str], str]


def lease_of(channel: str) -> str:
    return f"channel:{channel}"


def unopened_lease_of(channel: str) -> str:
    """Of whoever says that a channel cannot be opened."""
    return f"unopened:{channel}"


class ToldListening:
    """`run` listens, and tells how that goes. Whoever calls it holds the lease of the channel."""

    def __init__(self, store: ListeningStates, channel: str, clock: Clock, hide: Hide = str) -> None:
        """`hide` takes out of a sentence what nobody may see: a channel ought to, and others read what is told here."""
        self._store = store
        self._lease = lease_of(channel)
        self._clock = clock
        self._hide = hide
        self._failed = False

    async def run(self, work: Work) -> None:
        """Raises what the work raises. What returns has nothing to listen to, as one that the platform calls."""
        if not self._failed:
            await self._tell("starting")
        settling = asyncio.ensure_future(self._settle())
        try:
            await work()
        except Exception as error:  # the border to the channel: it is told, and whoever runs it begins it again
            await _ended(settling)
            self._failed = True
            await self._tell("failed", self._hide(" ".join(f"{error}".split())) or type(error).__name__)
            raise
        finally:
            await _ended(settling)
        await self._listen()

    async def _settle(self) -> None:
        await self._clock.sleep(CALM if self._failed else SETTLED)
        await self._listen()

    async def _listen(self) -> None:
        self._failed = False
        await self._tell("listening")

    async def _tell(self, state: ListeningState, why: str = "") -> None:
        try:
            await self._store.keep_listening(self._lease, state, why)
        except StoreError as error:
            _log.warning("how %s stands could not be kept: %s", self._lease, error)


async def _ended(task: asyncio.Future[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
