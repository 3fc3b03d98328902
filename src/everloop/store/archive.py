"""Conversations as people find them, written once for both databases. They are counted when the list is asked for."""

from typing import Any

from ..core.log import MANY, UserSaid
from ..core.people import OWNER
from ..ports.conversation import Conversation, Deed, Snapshot
from ..ports.rows import ThreadRow
from ..readings.spoken import name_of
from .background import perform
from .codec import NOT_ASIDE, THREAD
from .conversations import IS_MESSAGE, is_kind
from .database import Ask, Database
from .file_references import files_named
from .words import title_in

UNCOUNTED = 200  # entries that are counted each time anew, rather than written down

_LIST = f"""SELECT t.id, t.session, t.title, t.created,
    coalesce((SELECT {{greatest}}(e.at, t.created) FROM entries e WHERE e.thread = t.id AND e.seq = t.head), t.created)
        AS active,
    t.messages + (SELECT count(*) FROM entries e WHERE e.thread = t.id AND e.seq > t.counted AND {IS_MESSAGE}),
    t.head, t.archived, t.parent, t.parent_seq,
    EXISTS(SELECT 1 FROM sessions s WHERE s.key = t.session AND s.thread = t.id),
    (SELECT e.body FROM entries e WHERE e.thread = t.id AND e.seq < t.begins + 20
        AND {is_kind(name_of(UserSaid))} ORDER BY e.seq LIMIT 1), t.state
    FROM threads t WHERE t.owner = $1 AND t.head > 0 AND (CAST($2 AS TEXT) = '' OR t.session = $2)
    AND substr(t.id, 1, length(CAST($3 AS TEXT))) = $3 AND t.archived <= $4
    ORDER BY t.archived < 0 DESC, active DESC, t.id LIMIT $5"""

_COUNT = f"""UPDATE threads SET counted = head, messages = messages + (SELECT count(*) FROM entries e
    WHERE e.thread = threads.id AND e.seq > threads.counted AND e.seq <= threads.head AND {IS_MESSAGE})
    WHERE owner = $1 AND head - counted > $2"""
_LATEST = (
    "SELECT i.thread FROM inbox i JOIN threads t ON t.id = i.thread "
    f"JOIN sessions s ON s.key = t.session AND s.thread = t.id WHERE i.owner = $1 {NOT_ASIDE} "
    "ORDER BY i.id DESC LIMIT 1"
)


class ArchiveRows(Database):
    """What a store does with conversations."""

    async def session(self, key: str) -> ThreadRow | None:
        return await self._thread("SELECT thread FROM sessions WHERE key = $1", key)

    async def latest(self, owner: str) -> ThreadRow | None:
        return await self._thread(_LATEST, owner)

    async def named(self, beginning: str, limit: int = 2) -> list[str]:
        named = "SELECT id FROM threads WHERE substr(id, 1, length(CAST($1 AS TEXT))) = $1 ORDER BY id LIMIT $2"
        return [id for (id,) in await self._ask(named, beginning, limit)]

    async def session_of(self, thread: str, owner: str = OWNER) -> str:
        rows = await self._ask("SELECT session FROM threads WHERE id = $1 AND owner = $2", thread, owner)
        return str(rows[0][0]) if rows else ""

    async def perform(self, owner: str, session: str, deed: Deed) -> bool:
        return bool(await self._do(lambda ask: perform(ask, owner, session, deed)))

    async def conversations(
        self, owner: str, *, session: str = "", id: str = "", archived: bool = False, limit: int = MANY
    ) -> list[Conversation]:
        uncounted = "SELECT 1 FROM threads WHERE owner = $1 AND head - counted > $2 LIMIT 1"
        if await self._ask(uncounted, owner, UNCOUNTED):
            await self._do(lambda ask: _count(ask, owner))
        rows = await self._ask(_LIST, owner, session, id, int(archived), limit)
        return [_conversation(row) for row in rows]

    async def snapshots(self, owner: str) -> list[Snapshot]:
        rows = await self._ask(
            "SELECT name, thread, seq, at FROM snapshots WHERE owner = $1 ORDER BY at DESC, name", owner
        )
        return [Snapshot(*row) for row in rows]

    async def files_named(self) -> set[str]:
        return await files_named(self._ask)

    async def _thread(self, which: str, value: str) -> ThreadRow | None:
        rows = await self._glance(f"SELECT {THREAD} FROM threads WHERE id = ({which})", value)
        return ThreadRow(*rows[0]) if rows else None


async def _count(ask: Ask, owner: str) -> None:
    await ask(_COUNT, owner, UNCOUNTED)


def _conversation(row: Any) -> Conversation:
    id, session, title, created, active, messages, head, archived, parent, parent_seq, current, first, state = row
    return Conversation(
        id=id,
        session=session,
        title=title or title_in(first or ""),
        created=created,
        active=active,
        messages=messages,
        head=head,
        archived=archived > 0,
        pinned=archived < 0,
        named=bool(title),
        state=state,
        parent=parent,
        parent_seq=parent_seq,
        current=bool(current),
    )
