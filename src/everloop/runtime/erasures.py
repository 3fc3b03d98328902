"""Erasing a person: all that is theirs goes, everywhere, and what goes is told.

It begins with one commit: from then on they are nobody, and a job is there to remove what is theirs. What follows can
be done again at any point: their turns are stopped, their conversations deleted, their words in the logs of others made
blank (readings/erasing.py), their files and folders removed, then their rows; at last the database is written anew. A
kill in between costs time: whoever starts next claims the job.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct, structs

from ..core.people import OWNER, Role, is_chat
from ..errors import EverloopError, MailRefused
from ..ports import Bus, Clock, Erasing, HomeFolders, Jobs, Log, Removal
from ..ports.directory import Person
from ..ports.events import ConversationDeleted
from ..ports.failpoint import reach
from ..ports.jobs import ERASE, JobRow
from ..ports.rows import ThreadRow
from ..readings.erasing import author_of, blanked_log, is_of_theirs_alone
from .clock import MACHINE
from .deletions import Deletions
from .membership import Membership

_log = logging.getLogger("everloop.erasures")

CLAIM = 60.0  # seconds; whoever works longer at it does no harm beside another
PATIENCE = 60.0  # seconds for which turns are waited for, that are to end or are others'
PAUSE = 0.1
AGAIN = 30.0  # seconds after which it is tried again
TRIES = 20
ELSEWHERE = "messages in groups"
REMEMBERED = "facts in the memory of groups"
COPIES = "copies of the store"  # which hold something of everybody, so that they count for nobody
AT_WORK = "something is still going on in a conversation, which cannot be erased before it ends; this is tried again"


Forgets = Callable[[str, str, Sequence[str]], Awaitable[object]]
"""Whose memory, who has it done, which facts."""


class Erasure(Struct, frozen=True):
    """What the job of an erasure knows: whom it is about, and the words by which their conversations are known. When
    the rows are gone, so is all of that, and `is_over` says what is left to do: to write the database anew."""

    person: str = ""
    people: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    is_over: bool = False


class ErasureStore(Erasing, Removal, Jobs, Log, Protocol):
    """What it asks of the store."""


class Erasures:
    def __init__(
        self,
        store: ErasureStore,
        folders: HomeFolders,
        deletions: Deletions,
        members: Membership,
        bus: Bus | None = None,
        clock: Clock = MACHINE,
        patience: float = PATIENCE,
        forgets: Forgets | None = None,
    ) -> None:
        """`forgets` has forgotten what is remembered of their words for others."""
        self._forgets = forgets
        self._store = store
        self._folders = folders
        self._deletions = deletions
        self._members = members
        self._bus = bus
        self._clock = clock
        self._patience = patience

    async def find(self, who: str, by: Role) -> Person:
        """Somebody who may be erased by someone of this role: one who is known, or a stranger of whom something is
        kept, whom only the owner erases. Raises MailRefused."""
        person = await self.somebody(who)
        if person.role is Role.OWNER or person.id == OWNER:
            raise MailRefused("the owner cannot be erased")
        if by is not Role.OWNER and (by < Role.ADMIN or person.role >= by or not person.at):
            raise MailRefused(f"only the owner erases {person.name}")
        return person

    async def somebody(self, who: str) -> Person:
        """One who is known, or somebody whom nobody has introduced and of whom something is kept under this very id
        (`at` is 0 then). Raises MailRefused."""
        try:
            return await self._members.find(who)
        except MailRefused:
            stranger = Person(who, who, Role.GUEST)
            if ":" not in who or is_chat(who) or not await self.belongings(stranger):
                raise
            return stranger

    async def belongings(self, person: Person) -> dict[str, int]:
        """What is theirs, by kind."""
        people = person.principals
        kept, lying = await self._store.belongings(people), await self._folders.count(people)
        for row in await self._store.threads_naming(people):
            written = await self._store.history(row.id)
            if is_of_theirs_alone(row.session, written, people):
                more = {"conversations": 1, "entries": len(written)}
            else:
                more = {ELSEWHERE: sum(author_of(each.entry) in people for each in written)}
            kept |= {what: kept.get(what, 0) + count for what, count in more.items() if count}
        if said := sum(map(len, (await self._said(people)).values())):
            kept[REMEMBERED] = said
        return kept | {what: count for what, count in lying.items() if kept or what != COPIES}

    async def erase(self, person: Person) -> dict[str, int]:
        """Erase one whom `find` has found; what was removed, by kind. Raises MailRefused when it has begun, and has to
        wait for something; StoreError, HomeError."""
        gone = await self.belongings(person)
        rows = [*await self._store.threads_of(person.principals), *await self._spoken_alone(person.principals)]
        words = {word for row in rows for word in (row.id, row.session)}
        erasure = Erasure(person.id, person.principals, tuple(sorted({*person.principals, *words})))
        job = await self._store.begin_erasing(person, _encoded(erasure))
        if not job:
            raise MailRefused("the owner cannot be erased")
        reach("erasure.begun")
        await self._see_it_done(job)
        return gone

    async def _spoken_alone(self, people: Sequence[str]) -> list[ThreadRow]:
        """Conversations that are another's by name, as of the owner's bot, in which they alone have spoken."""
        rows = await self._store.threads_naming(people)
        return [row for row in rows if is_of_theirs_alone(row.session, await self._store.history(row.id), people)]

    async def work(self, row: JobRow) -> str:
        """As the scheduler has it done."""
        await self._clear(row)
        return ""

    async def _see_it_done(self, job: str) -> None:
        """Here, or by another process that was quicker to claim it."""
        waited = 0.0
        while any(row.job.id == job for row in await self._store.jobs(OWNER)):
            rows = await self._store.claim_jobs([ERASE], CLAIM, OWNER)
            for row in rows:
                await self._try(row)
            if not rows:
                await self._clock.sleep(PAUSE)
                waited += PAUSE
            if waited > 2 * self._patience:
                raise MailRefused(AT_WORK)

    async def _try(self, row: JobRow) -> None:
        try:
            await self._clear(row)
        except EverloopError as error:
            await self._store.settle_job(row, str(error), AGAIN)
            raise

    async def _clear(self, row: JobRow) -> None:
        erasure = msgspec.json.decode(row.job.payload, type=Erasure)
        if not erasure.is_over:
            await self._remove(row.job.id, erasure)
        reach("erasure.rows")
        await self._folders.forget_copies()
        reach("erasure.copies")
        await self._store.scrub()
        reach("erasure.scrubbed")
        await self._store.drop_job(OWNER, row.job.id)
        _log.info("somebody was erased, as the job %s had it", row.job.id)

    async def _remove(self, job: str, erasure: Erasure) -> None:
        people, over = erasure.people, _encoded(Erasure(is_over=True))
        for _ in range(TRIES):
            for person in people:
                await self._delete_conversations(job, person)
            reach("erasure.conversations")
            await self._blank_words(job, people)
            await self._forget_said(people)
            reach("erasure.blanked")
            for person in (*people, OWNER):
                await self._deletions.finish(person, scrubs=False)
            reach("erasure.files")
            await self._folders.remove(people, erasure.words)
            reach("erasure.folders")
            if await self._store.erase_rows(people, self._folders.places(people), job, over):
                return
        raise MailRefused(AT_WORK)

    async def _delete_conversations(self, job: str, person: str) -> None:
        for row in await self._store.threads_of([person]):
            await self._delete(job, row, person)

    async def _delete(self, job: str, row: ThreadRow, by: str) -> None:
        """Once its turn is over, if one runs."""
        waited = 0.0
        while await self._store.delete(row.owner, [row.id]) is None:
            await self._stop(row, job, by)
            waited = await self._wait(waited)
        if self._bus is not None:
            self._bus.publish(ConversationDeleted(row.id, 0, row.session, row.owner))

    async def _blank_words(self, job: str, people: Sequence[str]) -> None:
        """Until nobody names them: something may be said while another is at work."""
        unchanged = set[str]()
        while rows := [row for row in await self._store.threads_naming(people) if row.id not in unchanged]:
            for row in rows:
                if not await self._blank(job, row, people):
                    unchanged.add(row.id)

    async def _blank(self, job: str, row: ThreadRow, people: Sequence[str]) -> bool:
        """Whether there was anything to blank."""
        waited = 0.0
        while written := await self._store.history(row.id):
            if is_of_theirs_alone(row.session, written, people):
                await self._store.hand_over(row, people[0])  # and it is deleted as theirs, in the next round
                return True
            changed, blanking = blanked_log(written, people)
            if not changed:
                return False
            closing = blanking.closing() if blanking.touched else []
            now = structs.replace(row, head=written[-1].seq)
            if await self._store.rewrite(now, changed, closing, sorted(blanking.mails)):
                return True
            if blanking.is_theirs:
                await self._stop(row, job, people[0])
            waited = await self._wait(waited)
        return False

    async def _forget_said(self, people: Sequence[str]) -> None:
        """In the memory of others, as of a group, with its lines and earlier versions."""
        if self._forgets:
            for owner, facts in (await self._said(people)).items():
                await self._forgets(owner, "", facts)

    async def _said(self, people: Sequence[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for owner, id in await self._store.facts_said(people):
            found.setdefault(owner, []).append(id)
        return found

    async def _stop(self, row: ThreadRow, job: str, by: str) -> None:
        await self._store.stop_thread(row, f"{job}:{row.id}", by)
        if self._bus is not None:
            self._bus.cancel(row.id)

    async def _wait(self, waited: float) -> float:
        """Raises MailRefused when it was long enough."""
        if waited > self._patience:
            raise MailRefused(AT_WORK)
        await self._clock.sleep(PAUSE)
        return waited + PAUSE


def _encoded(erasure: Erasure) -> str:
    return msgspec.json.encode(erasure).decode()
