"""What has been shown to whoever waited for it; the store is told in no hurry, and of many at once."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Protocol

from ..errors import StoreError
from ..ports import Outgoing, Polled

LAZY = 0.05  # seconds for which acknowledgements are gathered

_log = logging.getLogger("everloop.acknowledgements")


class ShownStore(Outgoing, Polled, Protocol):
    """What is kept of answers, and of who waits for them."""


class Acknowledgements:
    def __init__(self, store: ShownStore) -> None:
        self._store = store
        self._shown: dict[str, None] = {}  # in their order
        self._given: list[int] = []
        self._gone: list[int] = []  # letters whose senders wait no longer
        self._timer: asyncio.TimerHandle | None = None
        self._acknowledging: set[asyncio.Task[None]] = set()

    def note(self, key: str, mail: int = 0) -> None:
        """The answer with this key has been shown; `mail` is the letter of whoever has been given it."""
        self._shown[key] = None
        if mail:
            self._given.append(mail)
        self._begin()

    def let_go(self, mail: int) -> None:
        """Whoever sent this letter waits for its answer no longer, and has none."""
        self._gone.append(mail)
        self._begin()

    def _begin(self) -> None:
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
        gone, self._gone = self._gone, []
        if shown:
            self._tell(self._store.acknowledge(shown, given), len(shown))
        if gone:
            self._tell(self._store.let_askers_go(gone), len(gone))

    def _tell(self, writing: Awaitable[None], count: int) -> None:
        task = asyncio.ensure_future(self._write(writing, count))
        self._acknowledging.add(task)
        task.add_done_callback(self._acknowledging.discard)

    async def _write(self, writing: Awaitable[None], count: int) -> None:
        try:
            await writing
        except StoreError as error:  # they will be shown once more, or later, which is better than not at all
            _log.warning("what became of %d answers could not be kept: %s", count, error)
