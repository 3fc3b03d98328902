"""Deleting conversations for good, written once for both databases.

All that was kept of a thread goes in one transaction, which also leaves a job behind: to remove what lies outside of
the tables, in files and in the pages of the database, even if this process ends now (runtime/deletions.py).

A branch reads what stands before its own entries in its parent. When the parent goes, that part is handed on to the
branch that needs most of it, and the others read it there: it goes with the last of them.

What stays holds nothing that was said: the numbers of what was spent, by which budgets are kept; for a month the events
of letters, so that one that comes again is not worked on again; and while which calls strangers' words may have been
written into a workspace, whose files are still there.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from ..ports.audit import Authority, acting, line_of
from ..ports.conversation import Deletion, Leftovers
from ..ports.jobs import DELETE
from .audit import note
from .budgets import settle_lost
from .codec import list_of
from .database import Ask, Database
from .file_references import digits_in
from .jobs import ADD
from .schedules import remove_schedule

GONE = "This conversation was deleted."  # what a letter is answered that was sent into it before, and comes again
DELETED = "deleted"  # the kind of such a letter

_THEM = "IN (SELECT value FROM {each}($1{json}))"
# With the versions that it stands for (what was edited, answered again or taken back), and what worked for it.
_WITH_IT = f"""WITH RECURSIVE gone(id) AS (
    SELECT id FROM threads WHERE id {_THEM} AND owner = $2
    UNION
    SELECT t.id FROM gone g JOIN threads t ON t.owner = $2
        AND (t.replaced = g.id OR substr(t.spawned_by, 1, length(g.id) + 1) = g.id || ':'))
    SELECT id FROM gone ORDER BY id"""
_HELD = f"SELECT coalesce(holder, ''), expires > {{elapsed}} FROM threads WHERE id {_THEM} ORDER BY id{{lock}}"
_SESSIONS = f"SELECT key FROM sessions WHERE thread {_THEM} ORDER BY key{{lock}}"
_ALIKE = "body LIKE '%file%'"
_NAMING = (
    f"SELECT body, at FROM entries WHERE thread {_THEM} AND {_ALIKE}",
    f"SELECT body || coalesce(reply, ''), at FROM inbox WHERE thread {_THEM}",
    f"SELECT body, at FROM outbox WHERE thread {_THEM} AND {_ALIKE}",
)
_KEEP_EVENTS = (
    f"UPDATE inbox SET kind = '{DELETED}', body = '', reply = $2, at = {{now}}, ended = -1, "
    f"taken = CASE WHEN taken = 2 THEN 2 ELSE 1 END WHERE thread {_THEM}"
)
_OF_THREADS = (
    f"DELETE FROM outbox WHERE thread {_THEM}",
    f"DELETE FROM snapshots WHERE thread {_THEM}",
    f"DELETE FROM hidden_entries WHERE thread {_THEM}",
    f"DELETE FROM timers WHERE thread {_THEM}",
    f"UPDATE usage SET thread = '' WHERE thread {_THEM}",
    f"DELETE FROM sessions WHERE thread {_THEM}",
    f"DELETE FROM jobs WHERE session = '' AND body {_THEM}",  # work on it, such as finding a title
    f"UPDATE threads SET replaced = '' WHERE replaced {_THEM}",
)
# Earlier versions made a session for every timer, in which nothing was ever said.
_OF_TIMERS = (f"DELETE FROM sessions WHERE key {_THEM}", f"DELETE FROM threads WHERE session {_THEM} AND head = 0")
_OF_SESSIONS = f"DELETE FROM reply_contexts WHERE session {_THEM}"
_JOBS = f"DELETE FROM jobs WHERE session {_THEM} AND state IN ('waiting', 'working') RETURNING body"
_JOBS_OVER = f"DELETE FROM jobs WHERE session {_THEM}"
_SCHEDULES = f"SELECT id FROM schedules WHERE session {_THEM}"
# Also one that holds elsewhere, if it was given with a call of this conversation: its like is then asked about again.
_GRANTS = "DELETE FROM grants WHERE body LIKE $1 OR body LIKE $2"
_BRANCHES = "SELECT id, begins FROM threads WHERE parent = $1 ORDER BY begins DESC, id{lock}"
_GO_ON = "UPDATE threads SET begins = $2, parent = $3, parent_seq = $4, indexed = $4 WHERE id = $1"
_HAND_ON = (
    "UPDATE entries SET thread = $2, owner = (SELECT owner FROM threads WHERE id = $2) WHERE thread = $1 AND seq < $3"
)


class DeletedRows(Database):
    """What a store does to forget conversations."""

    @abstractmethod
    async def _forget_words(self, ask: Ask, threads: Sequence[str]) -> None:
        """Take all of these threads out of the index."""
        ...

    async def delete(self, owner: str, threads: Sequence[str]) -> Deletion | None:
        return await self._do(partial(self._delete, owner, threads, acting.get()))

    async def is_anyone_at_work(self) -> bool:
        return bool(await self._ask("SELECT 1 FROM threads WHERE state = 'running' LIMIT 1"))

    async def _delete(self, owner: str, threads: Sequence[str], by: Authority, ask: Ask) -> Deletion | None:
        ids, sessions = await _locked(ask, owner, threads)
        if not ids:
            return Deletion()
        held = await ask(_HELD, list_of(ids))
        if any(holder and fresh and self._alive(holder) for holder, fresh in held):
            return None
        files = await _files_in(ask, ids)
        [[entries]] = await ask(f"SELECT count(*) FROM entries WHERE thread {_THEM}", list_of(ids))
        handed = [each for id in ids for each in await self._remove(ask, id)]
        await self._forget_words(ask, ids)
        jobs = await _forget_beside(ask, ids, sessions)
        files |= {digits: files.get(digits, 0.0) for body in jobs for digits in digits_in(body)}
        left = msgspec.json.encode(Leftovers(tuple(ids), files)).decode()
        await ask(ADD, f"{DELETE}:{ids[0]}", owner, DELETE, "", "", 0.0, left)
        detail = {"owner": owner, "entries": int(entries)}
        await note(
            ask,
            *(line_of("conversation.deleted", id, detail, by) for id in threads if id in ids),
        )
        return Deletion(
            threads=tuple(ids),
            sessions=tuple(sessions),
            entries=int(entries),
            jobs=len(jobs),
            branches=tuple(dict.fromkeys(id for id in handed if id not in ids)),
        )

    async def _remove(self, ask: Ask, thread: str) -> list[str]:
        """Remove a thread and its entries, but for what its branches have to read; those branches."""
        [[parent, begins]] = await ask("SELECT parent, begins FROM threads WHERE id = $1", thread)
        branches = [(id, first) for id, first in await ask(_BRANCHES, thread)]
        # What was indexed for a branch there is indexed for itself, when someone next looks for something.
        await self._forget_words(ask, [id for id, _ in branches])
        heir = branches[0][0] if branches and branches[0][1] > 1 else ""
        for id, first in branches:
            if id == heir:
                await ask(_HAND_ON, thread, heir, first)
                first, above = min(first, begins), parent
            else:
                above = heir
            await ask(_GO_ON, id, first, above if first > 1 else "", first - 1)
        await ask("DELETE FROM entries WHERE thread = $1", thread)
        await ask("DELETE FROM threads WHERE id = $1", thread)
        return [id for id, _ in branches]


async def _locked(ask: Ask, owner: str, threads: Sequence[str]) -> tuple[list[str], list[str]]:
    """What goes, and the sessions that are at it. On PostgreSQL another may have branched before it was locked."""
    ids: list[str] = []
    while True:
        found = [id for (id,) in await ask(_WITH_IT, list_of(threads), owner)]
        sessions = [key for (key,) in await ask(_SESSIONS, list_of(found))]
        await ask(_HELD, list_of(found))
        if found == ids:
            return ids, sessions
        ids = found


async def _files_in(ask: Ask, threads: Sequence[str]) -> dict[str, float]:
    """The files that are named there, and when each was named last."""
    named: dict[str, float] = {}
    for statement in _NAMING:
        for text, at in await ask(statement, list_of(threads)):
            named.update((digits, max(at, named.get(digits, 0.0))) for digits in digits_in(text))
    return named


async def _forget_beside(ask: Ask, threads: Sequence[str], sessions: Sequence[str]) -> list[str]:
    """Forget what was kept beside the log; the jobs that were still to speak."""
    await ask(_KEEP_EVENTS, list_of(threads), GONE)
    for statement in _OF_THREADS:
        await ask(statement, list_of(threads))
    await settle_lost(ask, threads)
    await ask(f"DELETE FROM spending WHERE per = 'session' AND scope {_THEM}", list_of(threads))
    await ask(_OF_SESSIONS, list_of(sessions))
    for thread in threads:
        await ask(_GRANTS, f'%"thread":"{thread}"%', f'%"call":"{thread}:%')
    timers = list_of([f"timer:{thread}" for thread in threads])
    await ask(_JOBS_OVER, timers)
    for statement in _OF_TIMERS:
        await ask(statement, timers)
    jobs: Sequence[Any] = await ask(_JOBS, list_of(sessions))
    await ask(_JOBS_OVER, list_of(sessions))
    for (id,) in await ask(_SCHEDULES, list_of(sessions)):
        await remove_schedule(ask, id)
    return [body for (body,) in jobs]
