"""Schedules and their runs, written once for both databases. On PostgreSQL locks are taken in the order job, schedule,
session, thread."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from ..core.mail import Address, Inbound
from ..core.people import OWNER, Role, role_named
from ..errors import BadSchedule, MailRefused
from ..ports.failpoint import reach
from ..ports.jobs import Job
from ..ports.schedules import (
    COMMAND,
    POLL,
    RETRY,
    SCHEDULE,
    FiredSchedule,
    Schedule,
    ScheduledWork,
    ScheduleRow,
    ScheduleRun,
    ScheduleRunState,
)
from .codec import body_of
from .copy_mark import MAY_BEGIN
from .database import Ask, Database
from .firing import BLOCKED, NO_RIGHT, how_it_fires, letter_of, telling, whose
from .jobs import ADD, BATCH
from .letters import post_if_theirs
from .schedule import check_rule, check_times, event_of, next_due, next_ones, zone_of

DONE = "it has run as often as it was to"
EXPIRED = "its time is over"
UNREACHED = "its conversation is gone, or is not theirs"
HELD = "its condition held"
SHOWN = 500  # characters of what came of a run

_read: Callable[[str], Schedule] = msgspec.json.Decoder(Schedule).decode
_encode = msgspec.json.Encoder().encode

_ROW = (
    "SELECT s.body, s.enabled, j.due, s.fires, s.last, s.over FROM schedules s LEFT JOIN jobs j "
    "ON j.id = 'schedule:' || s.id AND j.state IN ('waiting', 'working')"
)
# Among the last letters of everyone's, those that became turns of theirs; and what these have cost.
_TURNS = (
    "SELECT count(*), min(at) FROM (SELECT owner, kind, ended, at FROM inbox ORDER BY id DESC LIMIT 5000) AS letters "
    "WHERE owner = $1 AND ended > 0 AND kind IN ('said', 'notice')"
)
_SPENT = (
    "SELECT sum(cost), sum(CASE WHEN cost IS NULL THEN 1 ELSE 0 END) FROM usage WHERE at >= $2 AND purpose = '' "
    "AND own = 0 AND CASE WHEN requester = '' THEN owner ELSE requester END = $1"
)
_RUN = "schedule, event, due, begun, state, result, thread, cost, ended"
# A turn that has ended, or whose conversation was deleted, while whoever was to say so was killed.
_OVER = (
    "state = 'running' AND channel <> '' AND EXISTS(SELECT 1 FROM inbox i WHERE i.channel = schedule_runs.channel "
    "AND i.event = schedule_runs.event AND i.ended <> 0)"
)
_SETTLED = f"CASE WHEN {_OVER} THEN 'done' ELSE state END"
_RIPE = (
    f"SELECT id FROM jobs WHERE state = 'waiting' AND due <= {{now}} AND kind = '{SCHEDULE}' "
    f"AND {MAY_BEGIN} AND CAST($1 AS TEXT) IN ('', owner) ORDER BY due, id LIMIT {BATCH}"
)
_NOTE = (
    "INSERT INTO schedule_runs(schedule, event, owner, due, begun, state, result, thread, channel, ended) "
    "VALUES($1, $2, $3, $4, {now}, $5, $6, $7, $8, CASE WHEN $5 = 'running' THEN 0 ELSE {now} END) "
    "ON CONFLICT DO NOTHING"
)


class ScheduleRows(Database):
    async def add_schedule(self, schedule: Schedule, due: float | None, most: int) -> bool:
        job = _job(schedule, due)
        return await self._do(partial(_add, schedule, job, most))

    async def change_schedule(self, schedule: Schedule, due: float | None, enabled: bool) -> bool:
        job = _job(schedule, due if enabled else None)
        return await self._do(partial(_change, schedule, job, enabled))

    async def drop_schedule(self, owner: str, id: str) -> bool:
        return await self._do(partial(_drop, owner, id))

    async def schedules(self, owner: str = "") -> list[ScheduleRow]:
        rows = await self._ask(
            f"{_ROW} WHERE CAST($1 AS TEXT) IN ('', s.owner) ORDER BY s.over <> '', j.due IS NULL, j.due, s.id", owner
        )
        return [_row(row) for row in rows]

    async def schedule(self, id: str) -> ScheduleRow | None:
        rows = await self._ask(f"{_ROW} WHERE s.id = $1", id)
        return _row(rows[0]) if rows else None

    async def schedule_runs(self, id: str, limit: int = 20) -> list[ScheduleRun]:
        columns = _RUN.replace("state", _SETTLED)
        rows = await self._ask(
            f"SELECT {columns} FROM schedule_runs WHERE schedule = $1 ORDER BY begun DESC, due DESC LIMIT $2", id, limit
        )
        return [ScheduleRun(*row) for row in rows]

    async def turn_cost(self, owner: str) -> float | None:
        [(turns, since)] = await self._ask(_TURNS, owner)
        if not turns:
            return None
        [(cost, unpriced)] = await self._ask(_SPENT, owner, since)
        return float(cost) / int(turns) if cost and not unpriced else None

    def next_times(self, rule: str, first: float, count: int) -> list[float]:
        return next_ones(rule, first, count)

    def first_time(self, rule: str, after: float) -> float:
        return next_due(rule, after, after) or after

    async def fire_schedules(self, owner: str = "") -> list[FiredSchedule]:
        fired = [await self._do(partial(_fire, id)) for (id,) in await self._ask(_RIPE, owner)]
        return [each for each in fired if each]

    async def run_schedule(self, id: str, key: str, least: float = 0.0) -> FiredSchedule | None:
        return await self._do(partial(_run_now, id, f"run:{id}:{key}", float(least)))

    async def note_look(self, id: str, result: str, holds: bool | None) -> FiredSchedule | None:
        return await self._do(partial(_note_look, id, result[:SHOWN], holds))

    async def finish_run(
        self, work: ScheduledWork, state: ScheduleRunState, result: str, tell: str = "", outside: bool = False
    ) -> str:
        return await self._do(partial(_finish, work, state, result[:SHOWN], tell, outside))

    async def settle_turn(
        self, mail: int, *, failed: bool, result: str, cost: float | None, pause: float = 60.0
    ) -> None:
        await self._do(partial(_settle, mail, failed, result[:SHOWN], cost, pause))


async def remove_schedule(ask: Ask, id: str) -> None:
    """With its runs, its job and the work on its commands, which counts for nothing; but who is at it has to end it."""
    await ask("DELETE FROM jobs WHERE id = $1", f"schedule:{id}")
    for (event,) in await ask("SELECT event FROM schedule_runs WHERE schedule = $1 AND state = 'running'", id):
        await ask("DELETE FROM jobs WHERE id = $1 AND state = 'waiting'", f"command:{event}")
        await ask("DELETE FROM jobs WHERE id = $1 AND kind = $2", _retry_of(event), RETRY)
    await ask("DELETE FROM schedule_runs WHERE schedule = $1", id)
    await ask("DELETE FROM schedules WHERE id = $1", id)


def _job(schedule: Schedule, due: float | None) -> Job | None:
    """Raises BadSchedule."""
    kind = POLL if schedule.polls else SCHEDULE
    job = Job(f"schedule:{schedule.id}", kind, due or 0.0, schedule.owner, schedule.rule, payload=schedule.id)
    check_times(job)
    return job if due is not None else None


async def _add(schedule: Schedule, job: Job | None, most: int, ask: Ask) -> bool:
    if await ask("SELECT 1 FROM schedules WHERE id = $1", schedule.id):
        return False
    await ask("SELECT 1 FROM users WHERE id = $1{lock}", schedule.owner)  # so that two at once are counted, too
    [(count,)] = await ask("SELECT count(*) FROM schedules WHERE owner = $1 AND over = ''", schedule.owner)
    if int(count) >= most:
        raise MailRefused(f"there are {count} schedules of yours already, and more than {most} nobody may have")
    added = await ask(
        "INSERT INTO schedules(id, owner, session, body, made) VALUES($1, $2, $3, $4, {now}) "
        "ON CONFLICT DO NOTHING RETURNING id",
        schedule.id,
        schedule.owner,
        schedule.session,
        _encode(schedule).decode(),
    )
    if added:
        await _plan(ask, job)
    return bool(added)


async def _change(schedule: Schedule, job: Job | None, enabled: bool, ask: Ask) -> bool:
    await ask("DELETE FROM jobs WHERE id = $1 AND owner = $2", f"schedule:{schedule.id}", schedule.owner)
    changed = await ask(
        "UPDATE schedules SET session = $3, body = $4, enabled = $5, over = '', over_at = 0 "
        "WHERE id = $1 AND owner = $2 RETURNING id",
        schedule.id,
        schedule.owner,
        schedule.session,
        _encode(schedule).decode(),
        int(enabled),
    )
    if changed:
        await _plan(ask, job)
    return bool(changed)


async def _plan(ask: Ask, job: Job | None) -> None:
    if job:
        await ask(ADD, job.id, job.owner, job.kind, "", job.schedule, float(job.due), job.payload)


async def _drop(owner: str, id: str, ask: Ask) -> bool:
    await ask("SELECT 1 FROM jobs WHERE id = $1{lock}", f"schedule:{id}")
    if not await ask("SELECT 1 FROM schedules WHERE id = $1 AND owner = $2{lock}", id, owner):
        return False
    await remove_schedule(ask, id)
    return True


async def _fire(job: str, ask: Ask) -> FiredSchedule | None:
    """None if another was quicker."""
    rows = await ask(
        "SELECT due, schedule, body, {now} FROM jobs WHERE id = $1 AND state = 'waiting' AND due <= {now}{skip}", job
    )
    if not rows:
        return None
    due, rule, id, now = rows[0]
    reach("schedule.claimed")
    row = await _locked(ask, id)
    if row is None:
        await ask("DELETE FROM jobs WHERE id = $1", job)
        return None
    schedule = row.schedule
    try:
        check_rule(rule)
        zone_of(schedule.zone)
    except BadSchedule as error:  # its time zone is not known any more: nothing else waits for that
        await _end(ask, id, str(error))
        return None
    if schedule.until and due > schedule.until:
        await _end(ask, id, EXPIRED)
        return None
    event = event_of(id, due)
    late = float(now) - due
    state, why = how_it_fires(schedule, late, await barred(ask, schedule.owner), await _is_running(ask, id))
    fired = await _begin(ask, schedule, event, due, float(now), state, why)
    reach("schedule.posted")
    counts = fired is None or fired.state in ("running", "done")
    await _go_on(ask, row, rule, due, float(now), fires=int(counts))
    return fired


async def _locked(ask: Ask, id: str) -> ScheduleRow | None:
    rows = await ask("SELECT body, enabled, 0, fires, last, over FROM schedules WHERE id = $1{lock}", id)
    return _row(rows[0]) if rows else None


async def barred(ask: Ask, owner: str) -> str:
    """Why nothing is done for somebody. Whom the store does not know, a program has introduced and answers for."""
    if owner == OWNER:
        return ""
    for role, blocked in await ask("SELECT role, blocked FROM users WHERE id = $1", owner):
        if blocked:
            return BLOCKED
        if role_named(role) < Role.USER:
            return NO_RIGHT
    return ""


async def _is_running(ask: Ask, id: str) -> bool:
    running = f"SELECT 1 FROM schedule_runs WHERE schedule = $1 AND state = 'running' AND NOT ({_OVER}) LIMIT 1"
    return bool(await ask(running, id))


async def _begin(
    ask: Ask, schedule: Schedule, event: str, due: float, now: float, state: ScheduleRunState, why: str
) -> FiredSchedule | None:
    """Write the run, and post its letter or give its command to be done; None if there is a run of this event."""
    if await ask("SELECT 1 FROM schedule_runs WHERE schedule = $1 AND event = $2", schedule.id, event):
        return None
    works = state == "running" and schedule.does == COMMAND
    speaks = state in ("running", "done", "asked") and not works
    thread = await post_if_theirs(ask, letter_of(schedule, event, due, now, state)) if speaks else ""
    if speaks and not thread:
        state, why = "failed", UNREACHED
    channel = Address.parse(schedule.session).channel if state == "running" and speaks else ""
    noted = (schedule.id, event, schedule.owner, due, state, why, thread, channel)
    await ask(_NOTE, *noted)
    if works:
        told = await ask("SELECT thread FROM sessions WHERE key = $1 AND owner = $2", schedule.session, whose(schedule))
        work = ScheduledWork(schedule.id, event, due, whose(schedule), told[0][0] if told else "")
        await ask(ADD, f"command:{event}", schedule.owner, COMMAND, "", "", now, _encode(work).decode())
    if why == UNREACHED:
        await _end(ask, schedule.id, UNREACHED)
    return FiredSchedule(schedule.id, schedule.name, schedule.owner, state, thread, why)


async def _go_on(ask: Ask, row: ScheduleRow, rule: str, due: float, now: float, fires: int) -> None:
    """To its next time, or to its end."""
    schedule, count = row.schedule, row.fires + fires
    await ask("UPDATE schedules SET fires = $2, last = $3 WHERE id = $1", schedule.id, count, now)
    later = next_due(rule, due, now)
    if later is None or (schedule.max_runs and count >= schedule.max_runs):
        await _end(ask, schedule.id, DONE)
    elif schedule.until and later > schedule.until:
        await _end(ask, schedule.id, EXPIRED)
    else:
        await ask("UPDATE jobs SET due = $2 WHERE id = $1", f"schedule:{schedule.id}", later)


async def _end(ask: Ask, id: str, why: str) -> None:
    await ask("UPDATE schedules SET over = $2, over_at = {now} WHERE id = $1 AND over = ''", id, why)
    await ask("DELETE FROM jobs WHERE id = $1", f"schedule:{id}")


async def _run_now(id: str, event: str, least: float, ask: Ask) -> FiredSchedule | None:
    row = await _locked(ask, id)
    if row is None or await ask("SELECT 1 FROM schedule_runs WHERE schedule = $1 AND event = $2", id, event):
        return None
    [(now,)] = await ask("SELECT {now}")
    due, schedule = float(now), row.schedule
    if least and (why := _why_not_now(row, due, least)):
        return FiredSchedule(id, schedule.name, schedule.owner, "skipped", "", why)
    is_running = bool(least) and await _is_running(ask, id)
    state, why = how_it_fires(schedule, 0.0, await barred(ask, schedule.owner), is_running)
    fired = await _begin(ask, schedule, event, due, due, state, why)
    counts = bool(least) and state in ("running", "done")
    await ask("UPDATE schedules SET last = $2, fires = fires + $3 WHERE id = $1", id, due, int(counts))
    if counts and schedule.max_runs and row.fires + 1 >= schedule.max_runs:
        await _end(ask, id, DONE)
    return fired


def _why_not_now(row: ScheduleRow, now: float, least: float) -> str:
    if not row.enabled:
        return "it is stopped"
    if row.over:
        return row.over
    if row.schedule.until and now > row.schedule.until:
        return EXPIRED
    return f"it ran less than {least:g} s ago" if now - row.last < least else ""


async def _note_look(id: str, result: str, holds: bool | None, ask: Ask) -> FiredSchedule | None:
    await ask("SELECT 1 FROM jobs WHERE id = $1{lock}", f"schedule:{id}")
    row = await _locked(ask, id)
    if row is None or row.over:
        return None
    [(now,)] = await ask("SELECT {now}")
    due, count = float(now), row.fires + 1
    await ask("UPDATE schedules SET fires = $2, last = $3 WHERE id = $1", id, count, due)
    if holds is None:
        await _note_failed_look(ask, row.schedule, due, result)
    if not holds:
        if row.schedule.max_runs and count >= row.schedule.max_runs:
            await _end(ask, id, DONE)
        elif row.schedule.until and due > row.schedule.until:
            await _end(ask, id, EXPIRED)
        return None
    said = structs.replace(row.schedule, text=f"{row.schedule.text}\n({result})") if _tells(row.schedule) else None
    state, why = how_it_fires(row.schedule, 0.0, await barred(ask, row.schedule.owner), False)
    fired = await _begin(ask, said or row.schedule, event_of(id, due), due, due, state, why)
    await _end(ask, id, HELD)
    return fired


async def _note_failed_look(ask: Ask, schedule: Schedule, at: float, why: str) -> None:
    """One row for all of them: a poll of what is not there goes on, and says so."""
    await ask(
        "INSERT INTO schedule_runs(schedule, event, owner, due, begun, state, result, ended) "
        "VALUES($1, $2, $3, $4, $4, 'failed', $5, $4) ON CONFLICT(schedule, event) DO UPDATE SET due = excluded.due, "
        "begun = excluded.begun, result = excluded.result, ended = excluded.ended",
        schedule.id,
        f"look:{schedule.id}",
        schedule.owner,
        at,
        why,
    )


def _tells(schedule: Schedule) -> bool:
    """Whether what was found is told with it: a command is what it is."""
    return schedule.does == "message"


async def _finish(work: ScheduledWork, state: ScheduleRunState, result: str, tell: str, outside: bool, ask: Ask) -> str:
    row = await _locked(ask, work.schedule)
    open_runs = "SELECT 1 FROM schedule_runs WHERE schedule = $1 AND event = $2 AND state = 'running'{lock}"
    if row is None or not await ask(open_runs, work.schedule, work.event):
        return ""
    thread = await post_if_theirs(ask, telling(row.schedule, work.event, tell, outside)) if tell else ""
    await ask(
        "UPDATE schedule_runs SET state = $3, result = $4, thread = $5, ended = {now} "
        "WHERE schedule = $1 AND event = $2",
        work.schedule,
        work.event,
        state,
        result,
        thread,
    )
    return thread


async def _settle(mail: int, failed: bool, result: str, cost: float | None, pause: float, ask: Ask) -> None:
    rows = await ask(
        "SELECT r.schedule, r.event, r.due, r.attempts, {now} FROM inbox i JOIN schedule_runs r "
        "ON r.channel = i.channel AND r.event = i.event WHERE i.id = $1 AND r.state = 'running'",
        mail,
    )
    if not rows:
        return
    id, event, due, attempts, now = rows[0]
    row = await _locked(ask, id)
    if failed and row and attempts < row.schedule.retries and not await barred(ask, row.schedule.owner):
        await _try_again(ask, row.schedule, event, attempts + 1, due, float(now) + pause * 2**attempts)
        return
    await ask(
        "UPDATE schedule_runs SET state = $3, result = $4, cost = $5, ended = {now} WHERE schedule = $1 AND event = $2",
        id,
        event,
        "failed" if failed else "done",
        result,
        cost,
    )


async def _try_again(ask: Ask, schedule: Schedule, event: str, attempt: int, due: float, then: float) -> None:
    """By a job of its own, whose letter is the run's from now on."""
    first = event.partition(":again")[0]
    id = f"{first.removeprefix('job:')}:again{attempt}"
    letter: Inbound = letter_of(schedule, "", due, then, "running")
    posted = (id, whose(schedule), RETRY, schedule.session, "", then, body_of(letter))
    await ask(ADD, *posted)
    await ask(
        "UPDATE schedule_runs SET event = $3, attempts = $4 WHERE schedule = $1 AND event = $2",
        schedule.id,
        event,
        event_of(id, then),
        attempt,
    )


def _retry_of(event: str) -> str:
    """The job that posts the letter of this event, where it is one of trying again."""
    return event.removeprefix("job:").rpartition(":")[0]


def _row(row: Sequence[Any]) -> ScheduleRow:
    body, enabled, due, fires, last, over = row
    return ScheduleRow(_read(body), bool(enabled), due, fires, last, over)
