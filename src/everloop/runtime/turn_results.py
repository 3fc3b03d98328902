"""Keeps how the turns have ended that nobody has asked for: those of schedules, and of the heartbeat."""

import asyncio
import logging
from typing import Protocol

from ..core.turn import Finished
from ..errors import StoreError
from ..ports.heartbeat import HEARTBEAT_SOURCE, Heartbeats
from ..ports.schedules import CRON_SOURCE, Firing

_log = logging.getLogger("everloop.schedules")


class ResultStore(Firing, Heartbeats, Protocol):
    """What it asks of the store."""


class TurnResults:
    """`note` the turns that end, and `run` it under a supervisor."""

    def __init__(self, store: ResultStore) -> None:
        self._store = store
        self._ended: asyncio.Queue[Finished] = asyncio.Queue()

    def note(self, thread: str, turn: Finished) -> None:
        """A turn has ended, in memory: nobody waits for what comes of it."""
        if turn.source.startswith((CRON_SOURCE, HEARTBEAT_SOURCE)):
            self._ended.put_nowait(turn)

    async def run(self) -> None:
        """What is lost by a crash in between is only what is shown of it."""
        while True:
            turn = await self._ended.get()
            for mail in turn.mails:
                try:
                    await self._settle(mail, turn)
                except StoreError as error:
                    _log.warning("how a turn of %s has ended cannot be written: %s", turn.source, error)

    async def _settle(self, mail: int, turn: Finished) -> None:
        result = turn.reason or turn.text or ""
        if turn.source.startswith(HEARTBEAT_SOURCE):
            await self._store.settle_beat(mail, result, turn.cost)
        else:
            await self._store.settle_turn(mail, failed=bool(turn.reason), result=result, cost=turn.cost)
