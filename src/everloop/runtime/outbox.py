"""The one door out: answers leave in order, chat by chat, through the channel they came from.

A row is marked `sending` before any I/O and has its receipt after it. A send that broke off in between may have
arrived: a channel that knows our key is simply asked again, any other is told so in the message itself.
"""

import asyncio
import logging
from contextlib import suppress

from msgspec import structs

from ..core.errors import ChannelDown, StoreError
from ..core.failpoint import reach
from ..core.ports import Channel, Store
from ..core.rows import OutboxRow, OutboxState
from .strangers import contained

_log = logging.getLogger("everloop.outbox")

POLL = 2.0
SEND = 60.0  # seconds for one send; less than the store gives us before it offers the message again
ATTEMPTS = 8
LATE = 15 * 60.0


class Outbox:
    """The sender of one channel; `run` it in a task and `nudge` it when something was queued."""

    def __init__(self, store: Store, channel: Channel, patience: float = 0.5) -> None:
        self._store = store
        self._channel = channel
        self._patience = patience  # seconds before the first retry; each further one waits twice as long
        self._nudged = asyncio.Event()

    def nudge(self) -> None:
        self._nudged.set()

    async def run(self) -> None:
        """Send what is due, one message at a time in each chat. A chat whose platform hangs holds up no other."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._nudged.clear()
                try:
                    for row in await self._store.due(self._channel.name):
                        group.create_task(self._send(row))
                except StoreError as error:
                    _log.warning("outbox of %s: %s", self._channel.name, error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL):  # wait_for may lose a cancellation that meets a nudge
                        await self._nudged.wait()

    async def _send(self, row: OutboxRow) -> None:
        try:
            reach("outbox.sending")
            async with asyncio.timeout(SEND):
                with contained():
                    receipt = await self._channel.send(self._marked(row))
            reach("outbox.delivered")
        except ChannelDown as error:
            await self._try_again(row, "pending", str(error))
        except Exception as error:  # the border to a channel's own code; it may have delivered before it failed
            _log.warning("sending on %s failed", self._channel.name, exc_info=True)
            await self._try_again(row, "unsure", f"{type(error).__name__}: {error}")
        else:
            await self._settle(row, "sent", receipt)
            self.nudge()  # the next one of this chat may go

    async def _try_again(self, row: OutboxRow, state: OutboxState, why: str) -> None:
        last = row.attempts >= ATTEMPTS
        wait = 0.0 if last else min(60.0, self._patience * 2 ** (row.attempts - 1))
        await self._settle(row, "failed" if last else state, why, wait)
        if not last:
            asyncio.get_running_loop().call_later(wait, self.nudge)

    async def _settle(self, row: OutboxRow, state: OutboxState, receipt: str, again_in: float = 0.0) -> None:
        """Write what became of a send, however long that takes: forgetting it would send the message twice."""
        while True:
            try:
                await self._store.settle(row.id, state, receipt, again_in)
                reach("outbox.settled")
                return
            except StoreError as error:
                _log.warning("a receipt of %s cannot be written: %s", self._channel.name, error)
            await asyncio.sleep(POLL)

    def _marked(self, row: OutboxRow) -> OutboxRow:
        notes = []
        if row.unsure and not self._channel.once:
            notes.append("(may be repeated)")
        if row.age > LATE:
            notes.append("(delayed)")
        if not notes:
            return row
        text = " ".join([*notes, row.outbound.text])
        return structs.replace(row, outbound=structs.replace(row.outbound, text=text))
