"""Tasks as rows, and stopping all that works for a thread, written once for both databases."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import structs

from ..core.log import GaveUp, ModelSaid, decode
from ..core.mail import Inbound
from ..ports.tasks import TaskRow, TaskStage
from .codec import list_of
from .database import Ask, Database
from .letters import PENDING, post

# A thread, and all that works for it. There are few children, and an index of them.
_TREE = """WITH RECURSIVE tree(id) AS (
    SELECT id FROM threads WHERE id = $1
    UNION
    SELECT t.id FROM tree g JOIN threads t ON t.spawned_by <> ''
        AND substr(t.spawned_by, 1, length(g.id) + 1) = g.id || ':')"""
_LOCK = "SELECT id, state FROM threads WHERE id IN (SELECT value FROM {each}($1{json})) ORDER BY id{lock}"
_MAIL = f"SELECT DISTINCT thread FROM inbox WHERE thread IN (SELECT value FROM {{each}}($1{{json}})) AND {PENDING}"
# What a turn in the background has used is counted from when it began: its conversation may be older.
_BEGAN = "CASE WHEN t.since > 0 THEN t.since ELSE t.created END"
_SINCE = "u.thread = t.id AND u.at >= t.since"
_COLUMNS = f"""SELECT t.id, t.owner, t.spawned_by, t.title, t.state, {_BEGAN}, t.head,
    (SELECT e.body FROM entries e WHERE e.thread = t.id AND e.seq = t.head),
    (SELECT e.at FROM entries e WHERE e.thread = t.id AND e.seq = t.head),
    (SELECT count(*) FROM inbox i WHERE i.thread = t.id AND {PENDING}),
    (SELECT count(*) FROM usage u WHERE {_SINCE}),
    (SELECT sum(u.cost) FROM usage u WHERE {_SINCE}),
    (SELECT count(*) FROM usage u WHERE {_SINCE} AND u.cost IS NULL)
    FROM threads t WHERE t.spawned_by <> '' """
_ORDER = f" ORDER BY {_BEGAN}, t.id"
_UNDER = f"{_TREE} {_COLUMNS} AND t.id <> $1 AND t.id IN (SELECT id FROM tree) {_ORDER}"
_IS_OPEN = (
    "SELECT count(*) FROM threads t WHERE t.spawned_by <> '' AND t.owner = $1 AND (t.state <> 'resting' "
    f"OR EXISTS(SELECT 1 FROM inbox i WHERE i.thread = t.id AND {PENDING}))"
)


class TaskRows(Database):
    async def tasks(self, owner: str = "", under: str = "", id: str = "") -> list[TaskRow]:
        if under:
            rows = await self._ask(_UNDER, under)
        else:
            these = " AND CAST($1 AS TEXT) IN ('', t.owner) AND substr(t.id, 1, length(CAST($2 AS TEXT))) = $2"
            rows = await self._ask(f"{_COLUMNS}{these}{_ORDER}", owner, id)
        found = [_row(row) for row in rows]
        return [each for each in found if (not owner or each.owner == owner) and each.thread.startswith(id)]

    async def open_tasks(self, owner: str) -> int:
        [[count]] = await self._ask(_IS_OPEN, owner)
        return int(count)

    async def stop_task(self, inbound: Inbound, thread: str) -> tuple[str, ...]:
        return await self._do(partial(_stop_task, inbound, thread))


async def _stop_task(inbound: Inbound, thread: str, ask: Ask) -> tuple[str, ...]:
    return await stop_tree(ask, inbound, thread)


async def tasks_under(ask: Ask, thread: str) -> list[TaskRow]:
    """All that works for it."""
    return [_row(row) for row in await ask(_UNDER, thread)]


async def stop_tree(ask: Ask, inbound: Inbound, thread: str) -> tuple[str, ...]:
    """Write a stop to the thread and to all that works for it; those whose work is not over. Nothing starts there after
    this has committed, and so nothing is handed on any more."""
    busy = [each for each, works in (await _locked(ask, thread)).items() if works]
    for each in busy:
        more = f"/{each}" if each != thread else ""
        await post(ask, structs.replace(inbound, event=f"{inbound.event}/stop{more}"), each, "stop")
    return tuple(busy)


async def lock_family(ask: Ask, session: str) -> None:
    """Lock the session, then its thread and all that works for it by their ids: so does whoever reports there."""
    for (thread,) in await ask("SELECT thread FROM sessions WHERE key = $1{lock}", session):
        await _locked(ask, thread)


async def _locked(ask: Ask, thread: str) -> dict[str, bool]:
    """All of them, and whether each has something to do. Until they are locked, another may have been handed on."""
    ids: list[str] = []
    while True:
        found = [id for (id,) in await ask(f"{_TREE} SELECT id FROM tree ORDER BY id", thread)]
        states = await ask(_LOCK, list_of(found))
        if found == ids:
            waits = {each for (each,) in await ask(_MAIL, list_of(found))}
            return {id: state != "resting" or id in waits for id, state in states}
        ids = found


def _row(row: Sequence[Any]) -> TaskRow:
    id, owner, spawned_by, title, state, created, head, body, at, mail, steps, cost, unpriced = row
    stage: TaskStage = _stage(state, head, mail, body)
    paid = None if unpriced else float(cost or 0.0)
    return TaskRow(id, owner, spawned_by, title, stage, created, at or created, int(steps), paid)


def _stage(state: str, head: int, mail: int, body: str | None) -> TaskStage:
    if state == "running" or (head and mail):
        return "running"
    if state == "waiting":
        return "waiting"
    if not head or body is None:
        return "queued" if mail else "stopped"
    last = decode(body)
    if isinstance(last, ModelSaid):
        return "done"
    return "failed" if isinstance(last, GaveUp) else "stopped"
