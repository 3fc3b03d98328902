"""Heartbeats, written once for both databases. On PostgreSQL locks are taken in the order job, heartbeat, session,
thread."""

from collections.abc import Callable
from functools import partial

import msgspec

from ..core.mail import Inbound
from ..ports.failpoint import reach
from ..ports.heartbeat import AT_ONCE, HEARTBEAT, HeartbeatRow, HeartbeatState
from .copy_mark import IS_ADOPTED
from .database import Ask, Database
from .jobs import ADD
from .letters import post_if_theirs
from .schedules import SHOWN, barred

_read: Callable[[str], HeartbeatState] = msgspec.json.Decoder(HeartbeatState).decode
_encode = msgspec.json.Encoder().encode

_OPEN = "state IN ('waiting', 'working')"
_ROW = (
    "SELECT h.body, h.version, h.result, h.cost, CASE WHEN j.state = 'waiting' AND j.until > j.due THEN j.until "
    f"ELSE j.due END FROM heartbeats h LEFT JOIN jobs j ON j.id = $2 AND j.{_OPEN} WHERE h.owner = $1"
)
# A claim on one that is being looked at holds as it did.
_HASTEN = (
    "UPDATE jobs SET due = {now}, until = CASE state WHEN 'waiting' THEN 0 ELSE until END, body = $2 "
    f"WHERE id = $1 AND {_OPEN} AND {IS_ADOPTED} RETURNING id"
)
_LETTER = "SELECT 1 FROM inbox WHERE channel = $1 AND event = $2 AND ended = 0"


class HeartbeatRows(Database):
    async def plan_heartbeat(self, owner: str, every: float) -> None:
        await self._do(partial(_plan, owner, float(every)))

    async def drop_heartbeat(self, owner: str) -> None:
        await self._change("DELETE FROM jobs WHERE id = $1", _job(owner))

    async def beating(self) -> list[str]:
        rows = await self._ask(f"SELECT owner FROM jobs WHERE kind = '{HEARTBEAT}' AND {_OPEN} ORDER BY owner")
        return [owner for (owner,) in rows]

    async def heartbeat(self, owner: str) -> HeartbeatRow:
        why = await barred(self._ask, owner)
        rows = await self._ask(_ROW, owner, _job(owner))
        if not rows:
            return HeartbeatRow(owner, barred=why)
        body, version, result, cost, due = rows[0]
        state = _read(body)
        busy = bool(state.event and await self._ask(_LETTER, state.channel, state.event))
        return HeartbeatRow(owner, state, version, due, busy, why, result, cost)

    async def keep_beat(
        self, owner: str, version: int, state: HeartbeatState, letter: Inbound | None, otherwise: HeartbeatState
    ) -> str | None:
        return await self._do(partial(_keep, owner, version, state, letter, otherwise))

    async def hasten_heartbeat(self, owner: str) -> bool:
        return bool(await self._change(_HASTEN, _job(owner), AT_ONCE))

    async def settle_beat(self, mail: int, result: str, cost: float | None) -> None:
        await self._do(partial(_settle, mail, result[:SHOWN], cost))


def _job(owner: str) -> str:
    return f"{HEARTBEAT}:{owner}"


async def _plan(owner: str, every: float, ask: Ask) -> None:
    id, rule = _job(owner), f"every {every:.15g}"
    rows = await ask("SELECT schedule FROM jobs WHERE id = $1{lock}", id)
    await ask("INSERT INTO heartbeats(owner, version, body) VALUES($1, 1, '{{}}') ON CONFLICT DO NOTHING", owner)
    [(now,)] = await ask("SELECT {now}")
    if not rows:
        await ask(ADD, id, owner, HEARTBEAT, "", rule, float(now), "")
    elif rows[0][0] != rule:
        later = float(now) + every
        change = "UPDATE jobs SET schedule = $2, due = CASE WHEN due < $3 THEN due ELSE $3 END WHERE id = $1"
        await ask(change, id, rule, later)


async def _keep(
    owner: str, version: int, state: HeartbeatState, letter: Inbound | None, otherwise: HeartbeatState, ask: Ask
) -> str | None:
    await ask("SELECT 1 FROM jobs WHERE id = $1{lock}", _job(owner))
    rows = await ask("SELECT version FROM heartbeats WHERE owner = $1{lock}", owner)
    if not rows or rows[0][0] != version:
        return None
    thread = await post_if_theirs(ask, letter) if letter else ""
    reach("heartbeat.posted")
    kept = state if thread or not letter else otherwise
    write = "UPDATE heartbeats SET version = version + 1, body = $2 WHERE owner = $1"
    await ask(write, owner, _encode(kept).decode())
    await ask("UPDATE jobs SET body = '' WHERE id = $1", _job(owner))
    return thread


async def _settle(mail: int, result: str, cost: float | None, ask: Ask) -> None:
    letters = await ask("SELECT owner, channel, event FROM inbox WHERE id = $1", mail)
    for owner, channel, event in letters:
        rows = await ask("SELECT body FROM heartbeats WHERE owner = $1{lock}", owner)
        state = _read(rows[0][0]) if rows else None
        if state and (state.channel, state.event) == (channel, event):
            await ask("UPDATE heartbeats SET result = $2, cost = $3 WHERE owner = $1", owner, result, cost)
