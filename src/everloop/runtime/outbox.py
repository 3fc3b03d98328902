"""The one door out: answers leave in order, chat by chat, in the parts that their channel makes of them.

A row is marked `sending` before any I/O and has its receipt after it, and so has each part: what has a receipt is
never sent again. A send that broke off in between may have arrived: a channel that knows our key is simply asked
again, any other is told so in the message itself.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import structs

from ..core.mail import Outbound, ReplyTo
from ..errors import ChannelDown, StoreError, Undeliverable
from ..ports import Channel, Clock, Outgoing, Renders
from ..ports.channel import OutgoingFile, OutgoingPart, Rendered
from ..ports.failpoint import reach
from ..ports.rows import OutboxRow, OutboxState
from .clock import MACHINE
from .outgoing_files import FileGroup, OutgoingFiles
from .strangers import contained

_log = logging.getLogger("everloop.outbox")

POLL = 2.0
SEND = 60.0  # seconds for one send; less than the store gives us before it offers the message again
LASTS = 86_400.0  # seconds after which it is given up,
LEAST = 3  # after so many attempts at least
BLIND = 8  # sends of which each may have arrived, where nobody drops what came before
LONGEST = 300.0  # seconds between two attempts, unless the platform says otherwise
LATE = 15 * 60.0
FAREWELL = 3.0  # seconds for what is being sent when it is to end


class Drafts(Protocol):
    """The drafts that a channel shows of answers: Live."""

    async def claim(self, row: OutboxRow) -> str:
        """What the channel calls the draft that is to become this answer; "" if none is shown."""

    def settle(self, key: str, state: OutboxState, receipt: str = "") -> None:
        """What became of an attempt to send the answer with this key; it is `sent` when its first part is, and then has
        the receipt of that."""


class Outbox:
    """The sender of one channel; `run` it in a task and `nudge` it when something was queued."""

    def __init__(
        self,
        store: Outgoing,
        channel: Channel,
        patience: float = 0.5,
        lasts: float = LASTS,
        chance: Callable[[], float] = random.random,
        clock: Clock = MACHINE,
        files: OutgoingFiles | None = None,
        drafts: Drafts | None = None,
    ) -> None:
        """`files` reads those that go with answers, `drafts` has what is shown of them already."""
        self._store = store
        self._channel = channel
        self._manifest = channel.manifest
        self._patience = patience  # seconds before the first retry; each further one waits twice as long
        self._lasts = lasts
        self._chance = chance
        self._clock = clock
        self._files = files or OutgoingFiles(None, self._manifest.traits)
        self._drafts = drafts
        self._nudged = asyncio.Event()
        self._sending: set[asyncio.Future[None]] = set()

    @property
    def name(self) -> str:
        return self._manifest.name

    def nudge(self) -> None:
        self._nudged.set()

    async def run(self) -> None:
        """Send what is due, one message at a time in each chat. A chat whose platform hangs holds up no other."""
        async with asyncio.TaskGroup() as group:
            try:
                while True:
                    self._nudged.clear()
                    await self._begin(group)
                    napping = group.create_task(self._nudge_in(POLL))
                    await self._nudged.wait()
                    napping.cancel()
            finally:  # what is broken off in the middle may have arrived, and would have to be sent once more
                if self._sending:
                    await asyncio.wait(self._sending, timeout=FAREWELL)

    async def _begin(self, group: asyncio.TaskGroup) -> None:
        try:
            for row in await self._store.due(self.name):
                group.create_task(self._send(row))
        except StoreError as error:
            _log.warning("outbox of %s: %s", self.name, error)

    async def _nudge_in(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self.nudge()

    async def _send(self, row: OutboxRow) -> None:
        """An error that nobody expects is this message's alone: it waits until its claim has run out, no other does."""
        wait, sending = 0.0, asyncio.get_running_loop().create_future()
        self._sending.add(sending)
        try:
            wait = await self._attempt(row)
        except Exception:
            _log.exception("an answer to %s was not settled, and waits", row.outbound.address)
        finally:
            self._sending.discard(sending)
            sending.set_result(None)
        if wait:
            await self._clock.sleep(wait)
        self.nudge()  # the next one of this chat may go, or this one once more

    async def _attempt(self, row: OutboxRow) -> float:
        """Returns the seconds after which to look again."""
        try:
            receipt = await self._send_parts(row)
        except ChannelDown as error:
            return await self._try_again(row, "pending", str(error), error.retry_after)
        except Undeliverable as error:
            return await self._give_up(row, str(error))
        except Exception as error:  # the border to a channel's own code; it may have delivered before it failed
            _log.warning("sending on %s failed", self.name, exc_info=True)
            return await self._try_again(row, "unsure", f"{type(error).__name__}: {error}")
        if receipt is not None:
            await self._settle(row, "sent", receipt)
        return 0.0

    async def _send_parts(self, row: OutboxRow) -> str | None:
        """Send what has no receipt yet; returns that of the last part, or None when it is another's to send by now."""
        groups = await self._files.groups(row.outbound.files) if row.outbound.files else []
        parts, receipts = await self._parts(row, groups), [*row.parts]
        texts = len(parts) - max(len(groups), 1)  # the files begin with the last of them
        for part in parts[len(receipts) :]:
            group = groups[part.number - texts] if groups and part.number >= texts else ()
            receipts.append(await self._send_part(row, part, group))
            reach("outbox.delivered")
            if part is not parts[-1] and not await self._keep(row, receipts):
                return None
        return receipts[-1]

    async def _send_part(self, row: OutboxRow, part: OutgoingPart, group: FileGroup) -> str:
        """All of it within the time for which the row is ours."""
        until = asyncio.get_running_loop().time() + SEND
        if self._drafts and part.number == 0:
            part = structs.replace(part, draft=await self._drafts.claim(row))
        async with self._files.loaded(part, group, row.attempts) as part:
            reach("outbox.sending")
            async with asyncio.timeout_at(until):
                with contained():
                    receipt = await self._channel.send(part)
        if self._drafts and part.number == 0:
            self._drafts.settle(row.outbound.key, "sent", receipt)
        return receipt

    async def _parts(self, row: OutboxRow, groups: Sequence[FileGroup]) -> list[OutgoingPart]:
        try:
            reply_to = await self._store.reply_to(row.outbound)
        except StoreError as error:
            raise ChannelDown(str(error)) from error
        with contained():
            made = self._channel.render(row.outbound) if isinstance(self._channel, Renders) else (row.outbound.text,)
        if not made:
            raise Undeliverable(f"{self.name} makes nothing of it that could be sent")
        outbound = structs.replace(row.outbound, key=f"{row.salt}{row.outbound.key}")
        parts = parts_of(outbound, made, reply_to, [[each.file for each in group] for group in groups])
        first = min(len(row.parts), len(parts) - 1)
        parts[first] = _noted(parts[first], self._notes(row, first))
        return parts

    def _notes(self, row: OutboxRow, number: int) -> list[str]:
        """What has to be said with the next part."""
        repeated = ["(may be repeated)"] if row.unsure and not self._manifest.traits.once else []
        return repeated + (["(delayed)"] if row.age > LATE and number == 0 else [])

    async def _try_again(self, row: OutboxRow, state: OutboxState, why: str, after: float | None = None) -> float:
        """After as many seconds as the platform says, else after twice as many as the last time, more or less: those
        who were refused together do not come back together."""
        self._tell_drafts(row, state)
        blind = state == "unsure" and not self._manifest.traits.once and row.unsure + 1 >= BLIND
        wait = min(LONGEST, self._patience * 2 ** min(row.attempts - 1, 30)) * (0.5 + self._chance() / 2)
        wait = wait if after is None else after
        if blind:
            return await self._give_up(row, f"it may have arrived several times already ({why})")
        if row.attempts >= LEAST and row.trying + wait > self._lasts:
            return await self._give_up(row, f"it did not arrive within {self._lasts / 3600:g} hours ({why})")
        await self._settle(row, state, why, wait)
        return wait

    async def _give_up(self, row: OutboxRow, why: str) -> float:
        _log.warning(
            "an answer to %s was given up: %s; `everloop outbox retry %d` tries it again",
            row.outbound.address,
            why,
            row.id,
        )
        self._tell_drafts(row, "failed")
        await self._settle(row, "failed", why)
        return 0.0

    def _tell_drafts(self, row: OutboxRow, state: OutboxState) -> None:
        if self._drafts and not row.parts:
            self._drafts.settle(row.outbound.key, state)

    async def _settle(self, row: OutboxRow, state: OutboxState, receipt: str, again_in: float = 0.0) -> None:
        """Write what became of a send, however long that takes: forgetting it would send the message twice."""
        while True:
            try:
                await self._store.settle(row.id, state, receipt, again_in)
                reach("outbox.settled")
                return
            except StoreError as error:
                _log.warning("a receipt of %s cannot be written: %s", self.name, error)
            await asyncio.sleep(POLL)

    async def _keep(self, row: OutboxRow, receipts: list[str]) -> bool:
        while True:
            try:
                return await self._store.keep_parts(row.id, receipts)
            except StoreError as error:
                _log.warning("a receipt of %s cannot be written: %s", self.name, error)
            await asyncio.sleep(POLL)


def _noted(part: OutgoingPart, notes: list[str]) -> OutgoingPart:
    plain = " ".join([*notes, part.plain]) if part.plain else ""
    return structs.replace(part, text=" ".join([*notes, part.text]), plain=plain)


def parts_of(
    outbound: Outbound,
    made: Sequence[str | Rendered],
    reply_to: ReplyTo,
    files: Sequence[Sequence[OutgoingFile]] = (),
) -> list[OutgoingPart]:
    """An answer as the parts in which it leaves: one for each text that its channel makes of it, the last with the
    first group of files, then one for each further group."""
    rendered = [each if isinstance(each, Rendered) else Rendered(each) for each in made]
    along, *apart = files or [()]
    carried = [*[()] * (len(rendered) - 1), along, *apart]
    rendered += [Rendered("")] * len(apart)
    return [
        OutgoingPart(
            key=outbound.key if number == 0 else f"{outbound.key}/{number}",
            address=outbound.address,
            text=each.text,
            plain=each.plain,
            reply_to=reply_to,
            kind=outbound.kind,
            approval=outbound.approval,
            files=tuple(carried[number]),
            number=number,
            of=len(rendered),
        )
        for number, each in enumerate(rendered)
    ]
