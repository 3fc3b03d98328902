"""What is to happen later, written once for both databases.

A job that speaks is claimed, posted and put off to its next time in one transaction, so that each of its times is one
letter, whoever is killed. On PostgreSQL locks are taken in the order job, session, thread, and nobody who holds one of
the latter waits for a job.
"""

import math
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from msgspec import structs

from ..core.mail import Letter, Notice, Said, Telling
from ..ports.failpoint import reach
from ..ports.jobs import Job, JobRow
from ..ports.schedules import RETRY
from .claims import Claims
from .codec import body_of, list_of, read_inbound
from .copy_mark import IS_ADOPTED, MAY_BEGIN
from .database import Ask, Database
from .expired import MONTH
from .letters import post_if_theirs
from .schedule import check_times, event_of, next_due

KEPT = MONTH  # for which a job that is over is known, and not taken in again
BATCH = 100  # that are fired in one go
WORK = "work"  # what claims on jobs are noted under
UNREACHED = "its conversation is gone, or is not theirs"
BLOCKED = "whoever it is for is blocked"

_COLUMNS = "id, kind, due, owner, schedule, session, body, state, attempts, epoch, result"
ADD = (
    "INSERT INTO jobs(id, owner, kind, session, schedule, due, body, epoch) "
    # It begins with the time, so that no claim on one of this name that was dropped before is taken for one on this.
    "VALUES($1, $2, $3, $4, $5, $6, $7, CAST({now} * 1000 AS {int})) ON CONFLICT DO NOTHING RETURNING id"
)
_RIPE = (
    "SELECT id FROM jobs WHERE state = 'waiting' AND due <= {now} AND session <> '' "
    f"AND CAST($1 AS TEXT) IN ('', owner) ORDER BY due, id LIMIT {BATCH}"
)
# A claim is elapsed time; what waits to be tried again waits by the clock.
_FREE = "until <= CASE state WHEN 'working' THEN {elapsed} ELSE {now} END"
# What another is at may have been left: that is looked at more closely when it is claimed.
_DUE = (
    "SELECT 1 FROM jobs WHERE state IN ('waiting', 'working') AND due <= {now} "
    f"AND ({_FREE} OR holder <> CAST($2 AS TEXT)) AND (session <> '' OR kind IN ('schedule', KINDS)) "
    f"AND {MAY_BEGIN} AND CAST($1 AS TEXT) IN ('', owner) LIMIT 1"
)
_OPEN = f"state IN ('waiting', 'working') AND due <= {{now}} AND session = '' AND {MAY_BEGIN}"
_UNHEARD = "state = 'working' AND holder = $2 AND claim IN (SELECT value FROM {each}($3{json}))"  # see claims.py
_WORK = (
    f"SELECT id, kind, {_FREE} OR ({_UNHEARD}), coalesce(holder, '') FROM jobs WHERE {_OPEN} "
    "AND CAST($1 AS TEXT) IN ('', owner) ORDER BY due, id"
)
_CLAIM = (
    "UPDATE jobs SET state = 'working', holder = $2, epoch = epoch + 1, until = {elapsed} + CAST($4 AS {real}), "
    f"claim = $6, attempts = attempts + CASE WHEN {_UNHEARD} THEN 0 ELSE 1 END "
    f"WHERE id = (SELECT id FROM jobs WHERE id = $1 AND {_OPEN} "
    f"AND ({_FREE} OR holder = $5 OR ({_UNHEARD})){{skip}}) RETURNING {_COLUMNS}"
)
_PROLONG = (
    "UPDATE jobs SET until = {elapsed} + CAST($4 AS {real}) WHERE id = $1 AND epoch = $2 AND holder = $3 "
    "AND state = 'working' AND until > {elapsed} RETURNING id"
)
_SETTLE = (
    "UPDATE jobs SET state = $2, due = $3, until = $4, result = $5, attempts = $6, holder = NULL WHERE id = $1 "
    "RETURNING id"
)
_STANDING = "SELECT name, holder, until - {elapsed} FROM leases WHERE name IN ($1, $2) AND until > {elapsed}"
_HOLD = (
    "INSERT INTO leases(name, holder, epoch, until) VALUES($1, $2, 1, {elapsed} + CAST($3 AS {real})) "
    "ON CONFLICT(name) DO UPDATE SET holder = excluded.holder, until = excluded.until, "
    "epoch = leases.epoch + CASE WHEN leases.holder = excluded.holder THEN 0 ELSE 1 END "
    "WHERE leases.holder = $2 OR leases.until <= {elapsed} OR leases.holder = $4 RETURNING epoch"
)
_IS_ADOPTED = f"SELECT 1 WHERE {IS_ADOPTED}"
_IS_RUNNING = "SELECT 1 FROM schedule_runs WHERE event = $1 AND state = 'running' LIMIT 1"


class JobRows(Database):
    """What a store does with jobs, and with leases on what one process does for all."""

    _claims: Claims

    async def add_job(self, job: Job) -> bool:
        check_times(job)
        session, body = (str(job.letter.address), body_of(job.letter)) if job.letter else ("", job.payload)
        due = math.floor(job.due * 1000) / 1000  # as SQLite tells the time: what is due now is due at once there, too
        values = (job.id, job.owner, job.kind, session, job.schedule, due, body)
        return bool(await self._change(ADD, *values))

    async def jobs(self, owner: str) -> list[JobRow]:
        rows = await self._ask(f"SELECT {_COLUMNS} FROM jobs WHERE owner = $1 ORDER BY due, id", owner)
        return [_row(row) for row in rows]

    async def drop_job(self, owner: str, id: str) -> bool:
        return bool(await self._change("DELETE FROM jobs WHERE id = $2 AND owner = $1 RETURNING id", owner, id))

    async def is_due(self, kinds: Collection[str], owner: str = "") -> bool:
        if self._claims.are_unheard(WORK):
            return True
        places = "".join(f", ${n}" for n in range(3, 3 + len(kinds)))
        return bool(await self._ask(_DUE.replace(", KINDS", places), owner, self.holder, *kinds))

    async def fire(self, owner: str = "") -> list[str]:
        ripe = await self._ask(_RIPE, owner)
        fired = [await self._do(partial(_fire, id)) for (id,) in ripe]
        if fired:
            await self._change(
                "DELETE FROM jobs WHERE state IN ('done', 'failed') AND until < {now} - CAST($1 AS {real})", KEPT
            )
        return [thread for thread in fired if thread]

    async def claim_jobs(self, kinds: Collection[str], seconds: float, owner: str = "", limit: int = 1) -> list[JobRow]:
        claimed: list[JobRow] = []
        with self._claims.keys(WORK) as keys:
            ours = (self.holder, list_of(keys))
            for id, kind, free, holder in await self._ask(_WORK, owner, *ours):
                if len(claimed) == limit:
                    break
                gone = holder if holder and not free and not self._alive(holder) else ""
                if kind in kinds and (free or gone):
                    rows = await self._change(_CLAIM, id, *ours, float(seconds), gone, keys[0])
                    claimed += [_row(row) for row in rows]
        return claimed

    async def prolong_job(self, row: JobRow, seconds: float) -> bool:
        return bool(await self._change(_PROLONG, row.job.id, row.epoch, self.holder, float(seconds)))

    async def settle_job(self, row: JobRow, result: str, again_in: float | None = None) -> bool:
        return await self._do(lambda ask: _settle(ask, row, self.holder, result, again_in))

    async def hold(self, name: str, seconds: float, under: str = "", *, in_copy: bool = False) -> bool:
        if not in_copy and not await self._ask(_IS_ADOPTED):
            return False
        rows = await self._ask(_STANDING, name, under)
        others = {of: holder for of, holder, _ in rows if holder != self.holder}
        if any(self._alive(holder) for holder in others.values()):
            return False
        if any(of == name and left > seconds / 2 for of, holder, left in rows if holder == self.holder):
            return True
        gone = others.get(name, "")
        return bool(await self._change(_HOLD, name, self.holder, float(seconds), gone))

    async def let_go(self, name: str) -> None:
        await self._change("UPDATE leases SET until = 0 WHERE name = $1 AND holder = $2", name, self.holder)


async def _fire(id: str, ask: Ask) -> str:
    """The thread to which a job has posted; "" if another was quicker, or it could not."""
    rows = await ask(
        "SELECT owner, schedule, due, body, {now}, kind FROM jobs "
        "WHERE id = $1 AND state = 'waiting' AND due <= {now}{skip}",
        id,
    )
    if not rows:
        return ""
    owner, schedule, due, body, now, kind = rows[0]
    reach("job.claimed")
    if kind == RETRY and not await ask(_IS_RUNNING, event_of(id, due)):  # its schedule is gone, or whose it was
        await ask("DELETE FROM jobs WHERE id = $1", id)
        return ""
    inbound = read_inbound(body)
    if await _is_blocked(ask, owner, inbound.letter):
        await _go_on(ask, id, schedule, due, float(now), BLOCKED)
        return ""
    thread = await post_if_theirs(ask, structs.replace(inbound, event=event_of(id, due), owner=owner))
    reach("job.posted")
    if not thread:
        await ask(_SETTLE, id, "failed", due, float(now), UNREACHED, 0)
        return ""
    await _go_on(ask, id, schedule, due, float(now))
    return thread


async def _is_blocked(ask: Ask, owner: str, letter: Letter) -> bool:
    """Whether a letter would begin something for somebody who is blocked: it is theirs, or with their rights in a
    group. That a question of theirs has run out is told all the same, for it only ends what waits."""
    match letter:
        case Said(author=by) | Notice(by=by) | Telling(by=by):
            return bool(await ask("SELECT 1 FROM users WHERE id IN ($1, $2) AND blocked = 1", owner, by))
    return False


async def _settle(ask: Ask, row: JobRow, holder: str, result: str, again_in: float | None) -> bool:
    rows = await ask(
        "SELECT schedule, due, attempts, {now} FROM jobs WHERE id = $1 AND epoch = $2 AND holder = $3 "
        "AND state = 'working'{lock}",
        row.job.id,
        row.epoch,
        holder,
    )
    if not rows:
        return False
    schedule, due, attempts, now = rows[0]
    if again_in is not None:
        await ask(_SETTLE, row.job.id, "waiting", due, float(now) + again_in, result, attempts)
        return True
    await _go_on(ask, row.job.id, schedule, due, float(now), result)
    return True


async def _go_on(ask: Ask, id: str, schedule: str, due: float, now: float, result: str = "") -> None:
    """To its next time, or to its end: `until` is then when that was."""
    if (later := next_due(schedule, due, now)) is not None:
        await ask(_SETTLE, id, "waiting", later, 0.0, result, 0)
    else:
        await ask(_SETTLE, id, "done", due, now, result, 0)


def _row(row: Sequence[Any]) -> JobRow:
    id, kind, due, owner, schedule, session, body, state, attempts, epoch, result = row
    letter = read_inbound(body) if session else None
    job = Job(id, kind, due, owner, schedule, letter, "" if session else body)
    return JobRow(job, state, attempts, epoch, result)
