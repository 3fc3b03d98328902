"""Deleting conversations for good. Erasing a person is a loop over this.

The store forgets them in one transaction, and writes down with it what lies outside of its tables: that is removed
here, at once or by whichever process finds it, so that a kill in between costs time, and nothing else.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec
from msgspec import structs

from ..errors import MailRefused
from ..ports import Bus, Clock, FileShelves, Jobs, KeptFile, Removal
from ..ports.conversation import Conversation, Deletion, Leftovers
from ..ports.events import ConversationDeleted
from ..ports.jobs import DELETE, Job, JobRow
from .clock import MACHINE

AT_WORK = "something is still going on in this conversation; stop it first (/stop), then delete it"
CLAIM = 60.0  # seconds; whoever works longer at it does no harm beside another
SLACK = 5.0  # seconds between the clocks of the store and of the files
HOUR, DAY = 3600.0, 86_400.0

Forget = Callable[[str], Awaitable[None]]


class DeletionStore(Removal, Jobs, Protocol):
    """Conversations, and the work that deleting them leaves behind."""


class Deletions:
    """`forget` removes what the commands of a thread have left behind."""

    def __init__(
        self,
        store: DeletionStore,
        shelves: FileShelves,
        forget: Forget,
        bus: Bus | None = None,
        clock: Clock = MACHINE,
    ) -> None:
        self._store = store
        self._shelves = shelves
        self._forget = forget
        self._bus = bus
        self._clock = clock

    async def delete(self, owner: str, conversation: Conversation) -> Deletion:
        """Delete one of the owner's conversations; when this returns, nobody finds it any more. Raises MailRefused
        while a turn runs in it."""
        deletion = await self._store.delete(owner, [conversation.id])
        if deletion is None:
            raise MailRefused(AT_WORK)
        if self._bus is not None:
            for thread in deletion.threads:
                self._bus.publish(ConversationDeleted(thread, 0, conversation.session, owner))
        return deletion

    async def finish(self, owner: str = "", *, scrubs: bool = True) -> int:
        """Remove what deleted conversations have left, of one person or of all, as far as nobody else is at it; says
        how many files are gone. What cannot be removed yet is left to whoever runs next. Without `scrubs` the store is
        left to be written anew by whoever calls this. Raises StoreError."""
        gone = 0
        while rows := await self._store.claim_jobs([DELETE], CLAIM, owner, limit=1):
            gone += await self._clear(rows[0], scrubs)
        return gone

    async def work(self, row: JobRow) -> str:
        """As the scheduler has it done."""
        return f"{await self._clear(row)} files"

    async def _clear(self, row: JobRow, scrubs: bool = True) -> int:
        left = msgspec.json.decode(row.job.payload, type=Leftovers)
        for thread in left.threads:
            await self._forget(thread)
        gone, later = await self._remove(left.files)
        if scrubs and left.threads and not await self._is_followed(row):
            await self._store.scrub()
        if later:
            rest = msgspec.json.encode(Leftovers((), later)).decode()
            again = Job(f"{DELETE}:{secrets.token_hex(8)}", DELETE, self._clock.now() + HOUR, row.job.owner)
            await self._store.add_job(structs.replace(again, payload=rest))
        await self._store.drop_job(row.job.owner, row.job.id)  # nothing is left to say
        return len(gone)

    async def _remove(self, named: dict[str, float]) -> tuple[list[KeptFile], dict[str, float]]:
        """Remove what nothing names any more; what is gone, and what someone may be about to name."""
        now = self._clock.now()
        found = await self._shelves.beginning(named) if named else []
        still = await self._store.files_named() if found else set()
        at_work = await self._store.is_anyone_at_work() if found else False
        free = [file for file in found if digits_of(file, named) not in still]
        ripe = [file for file in free if _is_ripe(file, named[digits_of(file, named)], now, at_work)]
        gone = [file async for file in self._shelves.remove(ripe, now)]
        later = [digits_of(file, named) for file in free if file not in gone]
        return gone, {digits: named[digits] for digits in later}

    async def _is_followed(self, row: JobRow) -> bool:
        """Whether another such job begins after this one, and will write the database anew for both."""
        jobs: Sequence[JobRow] = await self._store.jobs(row.job.owner)
        return any(
            each.job.kind == DELETE and each.state == "waiting" and not each.attempts and each.job.due <= row.job.due
            for each in jobs
            if each.job.id != row.job.id
        )


def digits_of(file: KeptFile, named: dict[str, float]) -> str:
    """By which it is named."""
    digest = file.ref.removeprefix("file:")
    return next(digits for digits in named if digest.startswith(digits))


def _is_ripe(file: KeptFile, named: float, now: float, at_work: bool) -> bool:
    """Whether nobody can be about to name it: an upload that was put there again since waits for its message, and a
    turn names what it has kept only when it commits."""
    if file.at > named + SLACK:
        return file.at < now - DAY
    return not at_work or file.at < now - HOUR
