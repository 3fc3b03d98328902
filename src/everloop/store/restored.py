"""What the rows of a restored store become, written once for both databases; docs/why.md tells why, table by table."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from ..core.people import OWNER
from ..ports.audit import line_of
from ..ports.backup import BACKUP, RESTORED, Adopted, Generation, HeldBack, RestoredCopy
from ..ports.channel import DOORS
from ..ports.heartbeat import HEARTBEAT
from ..ports.schedules import COMMAND, POLL, SCHEDULE
from .audit import note
from .belongings import BELONGINGS
from .database import Ask, Database
from .outbox import OPEN
from .schedule import next_due

ADOPTED = "adopted"  # of the mark, which stays
ASIDE = "held:"  # before the names of logins in the vault that a copy does not use
FROM_A_BACKUP = "from a backup of {when} UTC: it may have been sent since. Send it with `retry`, or `drop` it"
MISSED = "its only time passed while this was a backup"
CUT_OFF = "cut off: this is restored from a backup"
_INDEX = ("said", "said_words", "everloop_schema", "simulated_time")

# What goes out by itself: of the doors of the house, only what bots fetch. Others show it to whoever comes.
_SHOWN = ", ".join(f"'{name}'" for name, traits in DOORS.items() if not traits.polled)
_SPEAKS = f"(session <> '' OR kind IN ('{SCHEDULE}', '{COMMAND}', '{POLL}', '{HEARTBEAT}', '{BACKUP}'))"
_LOGIN = "(name LIKE 'login:%' OR name LIKE 'mcp:%')"
_HOLD_ANSWERS = (
    "UPDATE outbox SET state = 'failed', receipt = $1, holder = NULL, claim = '', due = {now}, "
    "unsure = unsure + CASE state WHEN 'sending' THEN 1 ELSE 0 END "
    f"WHERE {OPEN} AND channel NOT IN ({_SHOWN}) RETURNING id"
)
_NOBODY_HOLDS = (
    "DELETE FROM leases",
    "DELETE FROM listening",
    "DELETE FROM mcp_questions",
    "DELETE FROM web_sessions",
    "DELETE FROM codes",
    "UPDATE threads SET holder = NULL, expires = 0, epoch = epoch + 1",
    "UPDATE jobs SET state = 'waiting', holder = NULL, claim = '', until = 0, epoch = epoch + 1 "
    "WHERE state = 'working'",
)
_MOVED = (
    "UPDATE {table} SET place = CAST($2 AS TEXT) || substr(place, length(CAST($1 AS TEXT)) + 1) "
    "WHERE place = $1 OR substr(place, 1, length(CAST($1 AS TEXT)) + 1) = CAST($1 AS TEXT) || '/'"
)
# Which files strangers may have written in is known by when each was written: in a restored home that is now.
_TAINT = (
    "INSERT INTO taints(key, owner, place, began, ended, outside) "
    "SELECT 'restored:' || place, min(owner), place, {now} - 86400, {now} + 60, 1 FROM taints "
    "WHERE outside = 1 GROUP BY place ON CONFLICT DO NOTHING"
)
_MARK = (
    "INSERT INTO jobs(id, owner, kind, session, schedule, due, body, state) "
    f"VALUES('{RESTORED}', '{OWNER}', '{RESTORED}', '', '', 0, $1, $2)"
)
# What was held, and what has come to wait since: a first heartbeat, or a schedule that somebody has made in the copy.
_HELD = (
    f"SELECT id, kind, schedule, due, {{now}} FROM jobs WHERE state = 'held' AND kind <> '{RESTORED}' "
    f"OR state = 'waiting' AND kind IN ('{SCHEDULE}', '{POLL}', '{HEARTBEAT}', '{BACKUP}')"
)


class RestoredRows(Database):
    async def restored(self) -> RestoredCopy | None:
        rows = await self._ask(f"SELECT body FROM jobs WHERE id = '{RESTORED}' AND state = 'held'")
        return msgspec.json.decode(rows[0][0], type=RestoredCopy) if rows else None

    async def hold_back(self, copy: RestoredCopy, places: Sequence[tuple[str, str]]) -> HeldBack:
        return await self._do(partial(_hold_back, copy, places))

    async def hold_answers(self, copy: RestoredCopy) -> int:
        return len(await self._change(_HOLD_ANSWERS, _why(copy)))

    async def succeed(self, copy: RestoredCopy, places: Sequence[tuple[str, str]]) -> None:
        return await self._do(partial(_succeed, copy, places))

    async def adopt(self) -> Adopted | None:
        return await self._do(_adopt)

    async def owners(self) -> list[str]:
        tables = ("threads", "files", "memories", "schedules")
        rows = await self._ask(" UNION ".join(f"SELECT owner FROM {table}" for table in tables) + " ORDER BY 1")
        return [str(owner) for (owner,) in rows if owner]

    async def table_counts(self) -> Mapping[str, int]:
        tables = [each.table for each in BELONGINGS if each.table not in _INDEX]
        return {table: int((await self._ask(f"SELECT count(*) FROM {table}"))[0][0]) for table in tables}


async def _settle_in(places: Sequence[tuple[str, str]], ask: Ask) -> None:
    """Nobody holds anything, and folders are where they are now."""
    for statement in _NOBODY_HOLDS:
        await ask(statement)
    for before, now in places:
        if before and before != now:
            for table in ("taints", "watched"):
                await ask(_MOVED.replace("{table}", table), before, now)
    await ask(_TAINT)


async def _hold_back(copy: RestoredCopy, places: Sequence[tuple[str, str]], ask: Ask) -> HeldBack:
    await _settle_in(places, ask)
    answers = await ask(_HOLD_ANSWERS, _why(copy))
    jobs = await ask(f"UPDATE jobs SET state = 'held' WHERE state = 'waiting' AND {_SPEAKS} RETURNING id")
    await ask(
        f"UPDATE schedule_runs SET state = 'failed', result = '{CUT_OFF}', ended = {{now}} WHERE state = 'running'"
    )
    logins = await ask(f"UPDATE vault SET name = '{ASIDE}' || name WHERE {_LOGIN} RETURNING name")
    await ask("DELETE FROM resumes")
    await _begin_generation(copy, "held", ask)
    await note(ask, line_of("backup.restored", copy.name))
    return HeldBack(len(answers), len(jobs), len(logins))


async def _begin_generation(copy: RestoredCopy, state: str, ask: Ask) -> None:
    """A backup may itself be of a store that was restored."""
    before = await ask(f"SELECT body FROM jobs WHERE id = '{RESTORED}'")
    known = msgspec.json.decode(before[0][0], type=RestoredCopy).generations if before else ()
    [(last,)] = await ask("SELECT coalesce(max(id), 0) FROM outbox")
    fresh = Generation(int(last), f"{secrets.token_hex(4)}:")
    await ask(f"DELETE FROM jobs WHERE id = '{RESTORED}'")
    copy = msgspec.structs.replace(copy, generations=(*known, fresh))
    await ask(_MARK, msgspec.json.encode(copy).decode(), state)


async def _succeed(copy: RestoredCopy, places: Sequence[tuple[str, str]], ask: Ask) -> None:
    await _settle_in(places, ask)
    await _adopt(ask)  # what it is a backup of may be a copy itself, which nobody could adopt any more
    await _begin_generation(copy, ADOPTED, ask)
    await ask(
        "UPDATE outbox SET state = 'pending', holder = NULL, claim = '', due = 0, unsure = unsure + 1 "
        f"WHERE {OPEN} AND channel NOT IN ({_SHOWN})"
    )
    await note(ask, line_of("backup.restored", copy.name, {"same_place": True}))


async def _adopt(ask: Ask) -> Adopted | None:
    if not await ask(f"UPDATE jobs SET state = '{ADOPTED}' WHERE id = '{RESTORED}' AND state = 'held' RETURNING id"):
        return None
    jobs = await ask(_HELD)
    missed = [row[0] for row in jobs if not await _go_on(ask, *row)]
    length = len(ASIDE) + 1
    await ask(  # who has logged in anew meanwhile stays so
        f"DELETE FROM vault WHERE name LIKE '{ASIDE}%' AND EXISTS(SELECT 1 FROM vault v WHERE v.owner = vault.owner "
        f"AND v.name = substr(vault.name, {length}))"
    )
    await ask(f"UPDATE vault SET name = substr(name, {length}) WHERE name LIKE '{ASIDE}%'")
    held = await ask("SELECT count(*) FROM outbox WHERE state = 'failed' AND receipt LIKE 'from a backup of %'")
    await note(ask, line_of("backup.adopted", ""))
    return Adopted(len(jobs) - len(missed), len(missed), int(held[0][0]))


async def _go_on(ask: Ask, id: str, kind: str, schedule: str, due: float, now: Any) -> bool:
    """At its next time. False: it had one, and that is over."""
    then = due if due > float(now) else next_due(schedule, due, float(now))
    if then is not None:
        await ask("UPDATE jobs SET state = 'waiting', due = $2 WHERE id = $1", id, then)
        return True
    await ask("UPDATE jobs SET state = 'failed', result = $2, until = {now} WHERE id = $1", id, MISSED)
    if kind == SCHEDULE:
        over = "UPDATE schedules SET over = $2, over_at = {now} WHERE 'schedule:' || id = $1 AND over = ''"
        await ask(over, id, MISSED)
    return False


def _why(copy: RestoredCopy) -> str:
    return FROM_A_BACKUP.format(when=datetime.fromtimestamp(copy.made, UTC).strftime("%Y-%m-%d %H:%M"))
