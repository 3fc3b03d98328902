"""Answers that bots fetch by themselves, written once for both databases.

What is handed out is claimed by time alone: not by a process, for the bot that has it goes on when the gateway is
started anew, and nobody else is to have it meanwhile. The first open answer of each session is the only one that can be
had, so that they arrive in order.
"""

import secrets
from collections.abc import Collection, Sequence

from msgspec import structs

from ..core.mail import Outbound
from ..ports.polled import PolledAnswer, PolledPlaces, PolledState
from .codec import list_of, read_outbound
from .database import Database
from .outbox import OPEN

MANY = 500  # sessions that are looked at in one go
ASKED = ("said", "undo", "command")  # letters whose senders wait for what comes of them
LET_GO = 3  # of inbox.taken: whoever sent it waits no longer
_NUMBERS = "(SELECT CAST(value AS {int}) FROM {each}($1{json}))"
_RIPE = "due <= CASE state WHEN 'sending' THEN {elapsed} ELSE {now} END"
_THEIRS = (
    "s.owner = $3 AND EXISTS (SELECT 1 FROM {each}($4{json}) WHERE substr(o.chat, 1, length(value)) = value) "
    "AND o.channel = $2"
)
_FIRST = (
    "SELECT o.id, o.key, o.thread, o.body, o.at, {now} - {greatest}(o.at, o.since), {now} - o.at "
    "FROM outbox o JOIN sessions s ON s.key = o.chat "
    f"WHERE {_THEIRS} AND o.{OPEN} AND o.due <= CASE o.state WHEN 'sending' THEN {{elapsed}} ELSE {{now}} END "
    f"AND o.id = (SELECT min(id) FROM outbox WHERE channel = $2 AND chat = o.chat AND {OPEN}) "
    "ORDER BY o.id LIMIT $1"
)
_LETTERS = f"SELECT id, kind, event, taken FROM inbox WHERE id IN {_NUMBERS}"
# One that two bots want goes to the first; the other skips it, or sees that it is no longer due.
_CLAIM = (
    f"WITH ripe(number) AS (SELECT id FROM outbox WHERE id IN {_NUMBERS} AND {OPEN} AND {_RIPE} ORDER BY id{{skip}}) "
    "UPDATE outbox SET state = 'sending', holder = '', claim = $2, due = {elapsed} + CAST($3 AS {real}), "
    "attempts = attempts + 1, unsure = CASE WHEN state = 'sending' THEN 1 ELSE unsure END "
    "FROM ripe WHERE id = number RETURNING id, attempts, unsure"
)
_PUT_BACK = (
    "UPDATE outbox SET state = 'pending', due = 0, attempts = attempts - 1 "
    f"WHERE id IN {_NUMBERS} AND state = 'sending' AND claim = $2 RETURNING id"
)
_FIND = f"SELECT o.id, o.key FROM outbox o JOIN sessions s ON s.key = o.chat WHERE {_THEIRS} AND o.id IN {_NUMBERS}"
_SETTLE = (
    "UPDATE outbox SET state = $2, receipt = $3, due = {now} + CAST($4 AS {real}) "
    f"WHERE id = $1 AND ({OPEN} OR (state = 'failed' AND CAST($2 AS TEXT) = 'sent')) RETURNING id"
)
# Beside where channels go on listening: no channel's name has a : in it.
_NOTE = (
    "INSERT INTO resumes(channel, token, at) VALUES($1, '', {now}) "
    "ON CONFLICT (channel) DO UPDATE SET at = excluded.at RETURNING channel"
)
_IS_POLLED = (
    "SELECT 1 FROM resumes WHERE channel LIKE '%:%' AND at > {now} - CAST($2 AS {real}) "
    "AND substr(CAST($1 AS TEXT), 1, length(channel)) = channel LIMIT 1"
)
_LET_GO = f"UPDATE inbox SET taken = {LET_GO} WHERE id IN {_NUMBERS} AND taken = 1 RETURNING id"


class PolledRows(Database):
    """What a store does with answers that nobody sends."""

    async def poll(
        self, places: PolledPlaces, *, limit: int, seconds: float, grace: float, spare: Collection[int] = ()
    ) -> list[PolledAnswer]:
        rows = await self._ask(_FIRST, MANY, places.channel, places.owner, list_of(places.prefixes))
        if not rows:
            return []
        read = [(row, read_outbound(row[3])) for row in rows]
        letters = await self._letters([outbound for _, outbound in read])
        kept_for = {id for id, (kind, _, taken) in letters.items() if kind in ASKED and taken != LET_GO}
        claim, found = secrets.token_hex(8), dict[int, PolledAnswer]()
        for (id, key, thread, _, at, trying, age), outbound in read:
            mails = set(outbound.mails)
            if mails & set(spare) or (age < grace and mails & kept_for) or len(found) >= limit:
                continue
            found[id] = PolledAnswer(
                row=id,
                key=key,
                thread=thread,
                outbound=outbound,
                claim=claim,
                at=float(at),
                trying=float(trying),
                attempts=0,
                unsure=bool(mails & kept_for),
                events=tuple(letters[mail][1] for mail in outbound.mails if mail in letters),
            )
        claimed = await self._change(_CLAIM, list_of(list(found)), claim, seconds) if found else ()
        return [
            structs.replace(found[id], attempts=attempts, unsure=bool(unsure) or found[id].unsure)
            for id, attempts, unsure in sorted(claimed)
        ]

    async def _letters(self, outbound: Sequence[Outbound]) -> dict[int, tuple[str, str, int]]:
        mails = [mail for each in outbound for mail in each.mails]
        rows = await self._ask(_LETTERS, list_of(mails)) if mails else ()
        return {id: (kind, event, taken) for id, kind, event, taken in rows}

    async def put_back(self, rows: Sequence[PolledAnswer]) -> None:
        for claim in {each.claim for each in rows}:
            await self._change(_PUT_BACK, list_of([each.row for each in rows if each.claim == claim]), claim)

    async def find_polled(self, places: PolledPlaces, rows: Collection[int]) -> dict[int, str]:
        found = await self._ask(_FIND, list_of(rows), places.channel, places.owner, list_of(places.prefixes))
        return {int(id): str(key) for id, key in found}

    async def settle_polled(self, row: int, state: PolledState, why: str = "", again_in: float = 0.0) -> None:
        await self._change(_SETTLE, row, state, why, again_in)

    async def note_polled(self, prefixes: Sequence[str]) -> None:
        for prefix in prefixes:
            await self._change(_NOTE, prefix)

    async def is_polled(self, session: str, seconds: float) -> bool:
        return bool(await self._ask(_IS_POLLED, session, seconds))

    async def let_askers_go(self, mails: Sequence[int]) -> None:
        await self._change(_LET_GO, list_of(mails))
