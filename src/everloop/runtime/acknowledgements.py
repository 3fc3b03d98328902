"""What has been shown to whoever waited for it; the store is told in no hurry, and of many at once."""

import asyncio
import logging

from ..core.errors import StoreError
from ..core.ports import Outgoing

LAZY = 0.05  # seconds for which acknowledgements are gathered

_log = logging.getLogger("everloop.acknowledgements")


class Acknowledgements:
    def __init__(self, store: Outgoing) -> None:
        self._store = store
        self._shown: dict[str, None] = {}  # in their order
        self._given: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._acknowledging: set[asyncio.Task[None]] = set()

    def note(self, key: str, mail: int = 0) -> None:
        """The answer with this key has been shown; `mail` is the letter of whoever has been given it."""
        self._shown[key] = None
        if mail:
            self._given.append(mail)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LAZY, self._flush)

    async def settle(self) -> None:
        """Tell the store at once."""
        if self._timer is not None:
            self._timer.cancel()
        self._flush()
        if self._acknowledging:
            await asyncio.gather(*self._acknowledging)

    def _flush(self) -> None:
        self._timer = None
        shown, self._shown = [*self._shown], {}
        given, self._given = self._given, []
        if shown:
            task = asyncio.ensure_future(self._acknowledge(shown, given))
            self._acknowledging.add(task)
            task.add_done_callback(self._acknowledging.discard)

    async def _acknowledge(self, shown: list[str], given: list[int]) -> None:
        try:
            await self._store.acknowledge(shown, given)
        except StoreError as error:  # they will be shown once more, which is better than not at all
            _log.warning("%d answers could not be marked as shown: %s", len(shown), error)
