"""All that is a person's, found and removed, written once for both databases. What each table means for a person stands
in belongings.py; in which order it is done, so that a kill costs nothing, in runtime/erasures.py.

Rows are deleted here for good, which deleting.py does with conversations: an erasure begins with that.
"""

import secrets
from abc import abstractmethod
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from ..core import log
from ..core.log import Entry
from ..core.mail import Address, Inbound, Stop
from ..core.people import ERASED, OWNER
from ..ports.audit import AuditLine, line_of
from ..ports.conversation import Leftovers
from ..ports.directory import Person
from ..ports.jobs import DELETE, ERASE
from ..ports.rows import ThreadRow
from ..readings.erasing import names
from .audit import note
from .belongings import BELONGINGS, Belonging
from .codec import THREAD, fold_in, list_of, read_outbound
from .database import Ask, Database
from .deleting import DELETED
from .directory import IS_ERASING
from .file_references import digits_in
from .jobs import ADD
from .letters import post

BATCH = 1000  # rows that are read at once: nothing else waits for long

_THEM = "IN (SELECT value FROM {each}($1{json}))"
_NAMES = "LIKE $1 ESCAPE '\\'"
_BESIDE = ("entries", "inbox", "outbox", "said", "timers", "usage")
_AT_ONCE = ("tokens", "logins", "web_sessions", "codes")  # by which they could come in, or become somebody else
_NOBODY = (
    "INSERT INTO users(id, name, role, created, blocked) VALUES($1, $2, $3, {now}, CAST($4 AS {int})) "
    "ON CONFLICT(id) DO UPDATE SET blocked = excluded.blocked WHERE users.role <> 'owner' RETURNING id"
)
_STANDS = "SELECT head, coalesce(holder, ''), expires > {elapsed}, begins FROM threads WHERE id = $1{lock}"
_MOVED = (
    "UPDATE threads SET head = $2, folded = CASE WHEN CAST($3 AS {int}) > 0 THEN $3 ELSE folded END, "
    "state = CASE WHEN CAST($4 AS {int}) = 1 THEN 'resting' ELSE state END, holder = NULL, epoch = epoch + 1, "
    "title = '', indexed = begins - 1 WHERE id = $1"
)
_APPEND = (
    "INSERT INTO entries(thread, seq, owner, at, body) "
    "SELECT id, CAST($2 AS {int}), owner, {now}, CAST($3 AS TEXT) FROM threads WHERE id = $1"
)


class ErasingRows(Database):
    """What a store knows of a person, and how it forgets them."""

    @abstractmethod
    async def _forget_words(self, ask: Ask, threads: Sequence[str]) -> None: ...

    async def belongings(self, people: Sequence[str]) -> dict[str, int]:
        found = {}
        for each in BELONGINGS:
            if each.told:
                only = f" AND {each.counts}" if each.counts else ""
                counted = f"SELECT count(*) FROM {each.table} WHERE {each.key} {_THEM}{only}"
                found[each.told] = int((await self._ask(counted, _keys(each, people)))[0][0])
        return {told: count for told, count in found.items() if count}

    def exported(self) -> Mapping[str, tuple[str, ...]]:
        return {each.table: each.export for each in BELONGINGS if each.export}

    async def rows_of(self, table: str, people: Sequence[str], skip: int, limit: int) -> Sequence[Sequence[Any]]:
        [belonging] = [each for each in BELONGINGS if each.table == table]
        whose = " OR ".join(f"{column} {_THEM}" for column in (belonging.key, belonging.also) if column)
        return await self._ask(
            f"SELECT {', '.join(belonging.export)} FROM {table} WHERE {whose} "
            f"ORDER BY {belonging.order or belonging.export[0]} LIMIT $2 OFFSET $3",
            _keys(belonging, people),
            limit,
            skip,
        )

    async def calls_made(self, after: int, limit: int) -> Sequence[Sequence[Any]]:
        columns = ", ".join(self.exported()["usage"])
        return await self._ask(
            f"SELECT id, CASE WHEN requester = '' THEN owner ELSE requester END, {columns} FROM usage "
            "WHERE id > $1 ORDER BY id LIMIT $2",
            after,
            limit,
        )

    async def facts_said(self, people: Sequence[str]) -> list[tuple[str, str]]:
        said = f"SELECT owner, id FROM facts WHERE person {_THEM} AND NOT owner {_THEM} ORDER BY owner, id"
        return [(owner, id) for owner, id in await self._ask(said, list_of(people))]

    async def threads_of(self, people: Sequence[str]) -> list[ThreadRow]:
        rows = await self._ask(f"SELECT {THREAD} FROM threads WHERE owner {_THEM} ORDER BY id", list_of(people))
        return [ThreadRow(*row) for row in rows]

    async def threads_naming(self, people: Sequence[str]) -> list[ThreadRow]:
        found = {thread async for thread in self._entries_naming(people)}
        rows = await self._ask(f"SELECT {THREAD} FROM threads WHERE id {_THEM} ORDER BY id", list_of(found))
        return [row for row in (ThreadRow(*each) for each in rows) if row.owner not in people]

    async def _entries_naming(self, people: Sequence[str]) -> AsyncIterator[str]:
        """Batch by batch through all that was ever said, as file_references.py goes."""
        likes = " OR ".join(f"body LIKE ${n} ESCAPE '\\'" for n in range(3, 3 + len(people)))
        read = (
            f"SELECT thread, seq, CASE WHEN {likes} THEN body ELSE '' END FROM entries "
            f"WHERE (thread, seq) > ($1, $2) ORDER BY thread, seq LIMIT {BATCH}"
        )
        after: tuple[object, ...] = ("", 0)
        while rows := [tuple(row) for row in await self._ask(read, *after, *map(_like, people))]:
            for thread, _, body in rows:
                if body and names(body, people):
                    yield thread
            after = rows[-1][:2]

    async def begin_erasing(self, person: Person, payload: str) -> str:
        return await self._do(partial(_begin, person, payload, line_of("person.erased", person.id)))

    async def hand_over(self, row: ThreadRow, person: str) -> None:
        async def work(ask: Ask) -> None:
            await ask("UPDATE sessions SET owner = $2 WHERE thread = $1", row.id, person)
            await ask("UPDATE threads SET owner = $2 WHERE id = $1", row.id, person)
            await ask("UPDATE reply_contexts SET owner = $2 WHERE session = $1", row.session, person)
            for table in _BESIDE:
                await ask(f"UPDATE {table} SET owner = $2 WHERE thread = $1", row.id, person)

        await self._do(work)

    async def stop_thread(self, row: ThreadRow, event: str, by: str) -> None:
        stop = Inbound(Address.parse(row.session), event, Stop(by), row.owner)
        await self._do(lambda ask: post(ask, stop, row.id, "stop"))

    async def rewrite(
        self, row: ThreadRow, changed: Mapping[int, Entry], closing: Sequence[Entry], mails: Sequence[int]
    ) -> bool:
        return await self._do(partial(self._rewrite, row, changed, closing, mails))

    async def _rewrite(
        self, row: ThreadRow, changed: Mapping[int, Entry], closing: Sequence[Entry], mails: Sequence[int], ask: Ask
    ) -> bool:
        stands = await ask(_STANDS, row.id)
        if not stands:
            return True  # it was deleted meanwhile
        head, holder, fresh, begins = stands[0]
        if head != row.head or (holder and fresh and self._alive(holder)):
            return False
        files: dict[str, float] = {}
        for seq, entry in changed.items():
            if seq >= begins:
                files |= await _replace(ask, row.id, seq, entry)
        if files:
            left = msgspec.json.encode(Leftovers((), files)).decode()
            await ask(ADD, f"{DELETE}:{secrets.token_hex(8)}", OWNER, DELETE, "", "", 0.0, left)
        for seq, entry in enumerate(closing, head + 1):
            await ask(_APPEND, row.id, seq, log.encode(entry).decode())
        fold = fold_in(closing)
        await ask(_MOVED, row.id, head + len(closing), fold and head + fold, int(bool(fold)))
        await self._forget_words(ask, [row.id])
        await _forget_answers(ask, row.id, changed, mails)
        await _blank_letters(ask, mails)
        return True

    async def erase_rows(self, people: Sequence[str], places: Sequence[str], job: str, payload: str) -> bool:
        return await self._do(partial(self._erase, people, places, job, payload))

    async def _erase(self, people: Sequence[str], places: Sequence[str], job: str, payload: str, ask: Ask) -> bool:
        threads = [id for (id,) in await ask(f"SELECT id FROM threads WHERE owner {_THEM}{{lock}}", list_of(people))]
        if threads and await ask(f"SELECT 1 FROM entries WHERE thread {_THEM} LIMIT 1", list_of(threads)):
            return False
        # What deleting has put off is the house's by now: it names files alone.
        await ask(f"UPDATE jobs SET owner = '{OWNER}' WHERE kind = '{DELETE}' AND owner {_THEM}", list_of(people))
        await ask("UPDATE jobs SET body = $2 WHERE id = $1", job, payload)
        await self._forget_words(ask, threads)
        for each in BELONGINGS:
            await _erase_in(ask, each, people, places)
        await ask(f"UPDATE memory_changes SET author = '' WHERE author {_THEM}", list_of(people))
        return True


# As deleting.py leaves them for a month; but for the event, which may be made of who they are.
_BLANK = (
    f"UPDATE inbox SET kind = '{DELETED}', body = '', reply = '', event = '{ERASED}:' || id, owner = '{ERASED}', "
    "thread = '', at = {now}, ended = -1, taken = 2 WHERE id IN (SELECT CAST(value AS {int}) FROM {each}($1{json}))"
)


async def _replace(ask: Ask, thread: str, seq: int, entry: Entry) -> dict[str, float]:
    """Put another entry there; the files that the old one had named, and when."""
    [(body, at)] = await ask("SELECT body, at FROM entries WHERE thread = $1 AND seq = $2", thread, seq)
    await ask("UPDATE entries SET body = $3 WHERE thread = $1 AND seq = $2", thread, seq, log.encode(entry).decode())
    return dict.fromkeys(digits_in(body), at)


async def _begin(person: Person, payload: str, line: AuditLine, ask: Ask) -> str:
    role = person.role.name.lower()
    if not await ask(_NOBODY, person.id, person.name, role, IS_ERASING):
        return ""
    for table in _AT_ONCE:
        await ask(f"DELETE FROM {table} WHERE owner {_THEM}", list_of(person.principals))
    waiting = await _naming(ask, "inbox", "body", person.principals, "AND taken = 0 AND ended = 0")
    await _blank_letters(ask, waiting)
    found = await ask(f"SELECT id, body FROM jobs WHERE kind = '{ERASE}' AND body {_NAMES}", _like(person.id))
    for id, body in found:
        if names(body, [person.id]):
            return str(id)
    id = f"{ERASE}:{secrets.token_hex(8)}"
    await ask(ADD, id, OWNER, ERASE, "", "", 0.0, payload)
    await note(ask, line)
    return id


async def _erase_in(ask: Ask, each: Belonging, people: Sequence[str], places: Sequence[str]) -> None:
    whose = list_of(places) if each.key == "place" else _keys(each, people)
    match each.erase:
        case "delete":
            await ask(f"DELETE FROM {each.table} WHERE {each.key} {_THEM}", whose)
            for id in await _naming(ask, each.table, each.names, people) if each.names else ():
                await ask(f"DELETE FROM {each.table} WHERE id = $1", id)
        case "blank":
            theirs = await ask(f"SELECT id FROM {each.table} WHERE {each.key} {_THEM}", whose)
            await _blank_letters(ask, {id for (id,) in theirs} | await _naming(ask, each.table, each.names, people))
        case "unname":
            for column in filter(None, (each.key, each.also)):
                await ask(f"UPDATE {each.table} SET {column} = '{ERASED}' WHERE {column} {_THEM}", whose)
        case "keep":
            pass


async def _naming(ask: Ask, table: str, column: str, people: Sequence[str], only: str = "") -> set[Any]:
    """The rows in whose stored text one of these people is named, whosever they are."""
    found = set()
    for person in people:
        rows = await ask(f"SELECT id, {column} FROM {table} WHERE {column} {_NAMES} {only}", _like(person))
        found |= {id for id, body in rows if names(body, [person])}
    return found


async def _blank_letters(ask: Ask, ids: Collection[int]) -> None:
    """With what was answered to commands among them."""
    await ask(_BLANK, list_of(sorted(ids)))
    await ask(f"DELETE FROM outbox WHERE key {_THEM}", list_of([f"command:{id}" for id in sorted(ids)]))


async def _forget_answers(ask: Ask, thread: str, changed: Mapping[int, Entry], mails: Sequence[int]) -> None:
    """What was to be said, or has been, at these places or to these letters."""
    for id, key, body in await ask("SELECT id, key, body FROM outbox WHERE thread = $1", thread):
        _, _, place = key.partition(f":{thread}:")
        seq = place.partition(":")[0]
        if (seq.isdecimal() and int(seq) in changed) or set(read_outbound(body).mails) & set(mails):
            await ask("DELETE FROM outbox WHERE id = $1", id)


def _keys(each: Belonging, people: Sequence[str]) -> str:
    return list_of([f"{each.prefix}{person}" for person in people])


def _like(person: str) -> str:
    quoted = msgspec.json.encode(person).decode()
    escaped = quoted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
