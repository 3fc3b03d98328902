"""What a store keeps for channels beside letters and answers, written once for both databases: where each goes on
listening, how a conversation is replied to, which parts of an answer have arrived, what could not be sent."""

from collections.abc import Sequence

import msgspec

from ..core.mail import Inbound, Outbound, ReplyTo, Said
from ..ports.audit import line_of
from ..ports.channel import POLLED
from ..ports.rows import Undelivered
from .audit import AuditRows
from .codec import SENDING_SECONDS, read_letter, read_outbound
from .database import Ask

_RESUME = (
    "INSERT INTO resumes(channel, token, at) VALUES($1, $2, {now}) "
    "ON CONFLICT (channel) DO UPDATE SET token = excluded.token, at = excluded.at"
)
_REPLY_TO = (
    "INSERT INTO reply_contexts(session, owner, reply_to, account, at) VALUES($1, $2, $3, $4, {now}) "
    "ON CONFLICT (session) DO UPDATE SET at = excluded.at, "
    # a command has no context of its own, and must not take away the one by which its answer finds its thread
    "reply_to = CASE excluded.reply_to WHEN '' THEN reply_contexts.reply_to ELSE excluded.reply_to END, "
    "account = CASE excluded.account WHEN '' THEN reply_contexts.account ELSE excluded.account END"
)
_POLLED = f"channel IN ({', '.join(map(repr, POLLED))})"
# Answers that nobody has tried to send wait for someone to come and look: those of a terminal, for example.
_UNDELIVERED = (
    "SELECT id, channel, chat, state, attempts, at, due, receipt, body FROM outbox WHERE state = 'failed' "
    f"OR (state IN ('pending', 'sending') AND (attempts > 0 OR receipt <> '' OR {_POLLED})) ORDER BY id"
)
_KEEP = (
    "UPDATE outbox SET parts = $2, unsure = 0, due = {elapsed} + CAST($3 AS {real}) "
    "WHERE id = $1 AND state = 'sending' AND holder = $4 RETURNING id"
)
_WAITS = f"(state = 'failed' OR (state = 'pending' AND (attempts > 0 OR {_POLLED})))"
_AGAIN = (
    "UPDATE outbox SET state = 'pending', attempts = 0, due = {elapsed}, since = {now} "
    f"WHERE id = $1 AND {_WAITS} RETURNING id"
)
_DROP = f"UPDATE outbox SET state = 'dropped', due = {{now}} WHERE id = $1 AND {_WAITS} RETURNING id"


def has_more(inbound: Inbound) -> bool:
    """Whether something is kept with it beside the letter."""
    return bool(inbound.resume or inbound.account or (isinstance(inbound.letter, Said) and inbound.letter.reply_to))


async def keep_more(ask: Ask, inbound: Inbound) -> None:
    """Also for a letter that is known: that it came again says that its channel has not gone on yet."""
    if inbound.resume:
        await ask(_RESUME, inbound.address.channel, inbound.resume)
    reply_to = inbound.letter.reply_to if isinstance(inbound.letter, Said) else ""
    if reply_to or inbound.account:
        await ask(_REPLY_TO, str(inbound.address), inbound.owner, reply_to, inbound.account)


def receipts_in(parts: str) -> tuple[str, ...]:
    return msgspec.json.decode(parts, type=tuple[str, ...]) if parts else ()


class ChannelRows(AuditRows):
    """What a store knows of channels."""

    async def resume(self, channel: str) -> str:
        rows = await self._ask("SELECT token FROM resumes WHERE channel = $1", channel)
        return str(rows[0][0]) if rows else ""

    async def keep_resume(self, channel: str, token: str) -> None:
        await self._change(_RESUME, channel, token)

    async def reply_to(self, outbound: Outbound) -> ReplyTo:
        for mail in reversed(outbound.mails):
            for (body,) in await self._ask("SELECT body FROM inbox WHERE id = $1 AND body <> ''", mail):
                letter = read_letter(body)
                if isinstance(letter, Said) and letter.reply_to:
                    return letter.reply_to
        rows = await self._ask("SELECT reply_to FROM reply_contexts WHERE session = $1", str(outbound.address))
        return ReplyTo(rows[0][0]) if rows else ReplyTo("")

    async def account_at(self, session: str) -> str:
        rows = await self._ask("SELECT account FROM reply_contexts WHERE session = $1", session)
        return str(rows[0][0]) if rows else ""

    async def keep_parts(self, row: int, receipts: Sequence[str]) -> bool:
        kept = msgspec.json.encode(receipts).decode()
        return await self._changed_one(_KEEP, row, kept, SENDING_SECONDS, self.holder)

    async def undelivered(self) -> list[Undelivered]:
        rows = await self._ask(_UNDELIVERED)
        return [
            Undelivered(
                id, channel, chat, state, attempts, queued, due, why, read_outbound(body).text, channel in POLLED
            )
            for id, channel, chat, state, attempts, queued, due, why, body in rows
        ]

    async def send_again(self, row: int) -> bool:
        return await self._change_noted(line_of("outbox.retried", str(row)), _AGAIN, row)

    async def drop(self, row: int) -> bool:
        return await self._change_noted(line_of("outbox.dropped", str(row)), _DROP, row)
