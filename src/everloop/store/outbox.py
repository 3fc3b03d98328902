"""Answers on their way out, written once for both databases."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ..core.mail import Outbound
from ..ports.backup import RESTORED, Generation, RestoredCopy
from ..ports.outbox import Delivery, SentAnswer
from ..ports.rows import OutboxRow
from .channel_rows import receipts_in
from .claims import Claims
from .codec import SENDING_SECONDS, list_of, read_outbound
from .copy_mark import IS_ADOPTED
from .database import Database

OPEN = "state IN ('pending', 'sending')"
_KEYS = "SELECT value FROM {each}($1{json})"
# Claimed by us, while nobody was told: nothing has been sent.
_UNHEARD = f"state = 'sending' AND holder = $2 AND claim IN ({_KEYS})"
_RIPE = "due <= CASE state WHEN 'sending' THEN {elapsed} ELSE {now} END"  # a claim runs out by elapsed time
_IS_HEAD = f"id = (SELECT min(id) FROM outbox WHERE channel = $3 AND chat = o.chat AND {OPEN})"
_SENDING = (
    f"SELECT coalesce(holder, ''), {_RIPE} OR ({_UNHEARD}) FROM outbox o "
    f"WHERE channel = $3 AND {OPEN} AND ({_RIPE} OR state = 'sending') AND {_IS_HEAD}"
)
# The first open row of each chat, read in the order of the index, unless it has to wait. What is being sent may have
# lost its sender. One that two processes want goes to the first; the other skips it, or sees that it is no longer due.
_CLAIM = (
    f"WITH ripe(number) AS (SELECT id FROM outbox o WHERE channel = $3 AND {OPEN} AND ({_RIPE} OR ({_UNHEARD}) "
    f"OR state = 'sending' AND holder IN (SELECT value FROM {{each}}($4{{json}}))) AND {_IS_HEAD} AND {IS_ADOPTED} "
    "ORDER BY chat, id LIMIT $5{skip}) "
    "UPDATE outbox SET state = 'sending', holder = $2, claim = $6, due = {elapsed} + CAST($7 AS {real}), "
    f"attempts = attempts + CASE WHEN {_UNHEARD} THEN 0 ELSE 1 END, "
    f"unsure = CASE WHEN state = 'sending' AND NOT ({_UNHEARD}) THEN unsure + 1 ELSE unsure END "
    "FROM ripe WHERE id = number "
    "RETURNING id, thread, body, attempts, unsure, {now} - at, parts, {now} - {greatest}(at, since)"
)
_UNSHOWN = f"SELECT body FROM outbox WHERE channel = $1 AND chat = $2 AND {OPEN} ORDER BY id"


class OutboxRows(Database):
    """What a store does with answers, but for their receipts (`settle`, `acknowledge`), which are hot."""

    _claims: Claims
    _known_generations: tuple[Generation, ...] | None = None

    async def _generations(self) -> tuple[Generation, ...]:
        """Read once: a store is restored while nobody has it open."""
        if self._known_generations is None:
            rows = await self._ask(f"SELECT body FROM jobs WHERE id = '{RESTORED}'")
            copy = msgspec.json.decode(rows[0][0], type=RestoredCopy) if rows else None
            self._known_generations = copy.generations if copy else ()
        return self._known_generations

    async def due(self, channel: str, limit: int = 100) -> list[OutboxRow]:
        with self._claims.keys(f"outbox {channel}") as keys:
            ours = (list_of(keys), self.holder, channel)
            gone: set[str] = set()
            if self.SEES_HOLDERS:
                sending = await self._ask(_SENDING, *ours)
                gone = {holder for holder, ripe in sending if not ripe and not self._alive(holder)}
                if not any(ripe or holder in gone for holder, ripe in sending):
                    return []
            rows = await self._change(_CLAIM, *ours, list_of(gone), limit, keys[0], SENDING_SECONDS)
        known = await self._generations() if rows else ()
        return sorted((_outbox_row(row, known) for row in rows), key=lambda row: row.id)

    async def unshown(self, chat: str) -> list[Outbound]:
        rows = await self._ask(_UNSHOWN, chat.partition(":")[0], chat)
        return [read_outbound(body) for (body,) in rows]

    async def sent_answers(self, keys: Sequence[str]) -> list[SentAnswer]:
        rows = await self._ask(
            f"SELECT body, parts, receipt FROM outbox WHERE state = 'sent' AND key IN ({_KEYS})", list_of(keys)
        )
        return [_sent_answer(*row) for row in rows]

    async def deliveries(self, keys: Sequence[str]) -> dict[str, Delivery]:
        rows = await self._ask(
            f"SELECT key, channel, state, at, due, attempts FROM outbox WHERE key IN ({_KEYS})", list_of(keys)
        )
        return {row[0]: _delivery(*row) for row in rows}


def _outbox_row(row: Any, generations: Sequence[Generation] = ()) -> OutboxRow:
    id, thread, body, attempts, unsure, age, parts, trying = row
    return OutboxRow(
        id=id,
        thread=thread,
        outbound=read_outbound(body),
        attempts=attempts,
        unsure=unsure,
        age=float(age),
        parts=receipts_in(parts),
        trying=float(trying),
        salt=next((each.salt for each in reversed(generations) if id > each.after), ""),
    )


def _sent_answer(body: str, parts: str, receipt: str) -> SentAnswer:
    """The receipt of the last part stands by itself; one that was shown in another way has none."""
    outbound = read_outbound(body)
    receipts = tuple(each for each in (*receipts_in(parts), receipt) if each)
    return SentAnswer(outbound.key, outbound.address, outbound.text, receipts)


def _delivery(key: str, channel: str, state: Any, queued: float, due: float, attempts: int) -> Delivery:
    """A row that is no longer open is due when it was settled; those of older versions may not say so."""
    over = state in ("sent", "failed", "dropped")
    return Delivery(key, channel, state, queued, max(queued, due) if over else None, attempts)
