"""What lies in inboxes, and commands, written once for both databases."""

from collections.abc import Sequence
from functools import partial

import msgspec

from ..core.mail import Inbound, Letter, Mail, Outbound
from ..ports.conversation import (
    BackgroundDeed,
    BeginInBackground,
    Branch,
    BringToFront,
    Deed,
    ResumeThread,
    SendToBackground,
)
from ..ports.rows import COUNT, Action, Receipt, ThreadRow, Whose
from .amending import amend
from .background import perform
from .channel_rows import keep_more
from .codec import THREAD, body_of, kind_of, list_of, read_letter
from .conversations import carry_over
from .database import Ask, Database
from .letters import MAKE_TURNS, PENDING, new_thread, post, queue, thread_of
from .tasks import lock_family, stop_tree

# Where holders can be seen, those of fresh leases are looked at one by one.
_WAITING = (
    "SELECT DISTINCT t.id, coalesce(t.holder, ''), t.expires > {elapsed} "
    "FROM inbox i JOIN threads t ON t.id = i.thread WHERE i.ended = 0 AND (i.taken = 0 OR t.state = 'running') "
    "AND (CAST($1 AS {int}) = 1 OR t.holder IS NULL OR t.expires <= {elapsed})"
)
_THEIRS = (
    " AND (t.owner IN (SELECT value FROM {each}($2{json})) "
    "OR EXISTS (SELECT 1 FROM {each}($3{json}) "
    "WHERE substr(t.session, 1, length(value) + 1) = value || ':' AND replace(value, ':', '') = value))"
)
_STOPPING = (
    f"SELECT DISTINCT thread FROM inbox WHERE {PENDING} AND kind = 'stop' "
    "AND thread IN (SELECT value FROM {each}($1{json}))"
)
_ASKING = (
    f"SELECT {THREAD} FROM threads WHERE state = 'waiting' "
    "AND (CAST($1 AS TEXT) IN ('', session) OR spawned_by <> '') ORDER BY created, id"
)

_MOVING = (Branch, ResumeThread, BackgroundDeed)  # deeds that move a session, with what is in its background


class InboxRows(Database):
    """What a store does with letters, but for `receive` of those that come alone, which is hot."""

    async def command(self, inbound: Inbound, action: Action | Deed, reply: str, otherwise: str = "") -> Receipt:
        return await self._do(lambda ask: _command(ask, inbound, action, reply, otherwise))

    async def amend(self, inbound: Inbound, event: str) -> Receipt | None:
        return await self._do(lambda ask: amend(ask, inbound, event))

    async def mail(self, thread: str) -> list[Mail]:
        rows = await self._ask(f"SELECT id, body FROM inbox WHERE thread = $1 AND {PENDING} ORDER BY id", thread)
        return [Mail(id, read_letter(body)) for id, body in rows]

    async def ended(self, mail: int) -> int:
        rows = await self._ask("SELECT ended FROM inbox WHERE id = $1", mail)
        return int(rows[0][0]) if rows else 0

    async def unfinished(self, thread: str) -> list[int]:
        unfinished = f"SELECT id FROM inbox WHERE thread = $1 AND ended = 0 AND {MAKE_TURNS} ORDER BY id"
        return [id for (id,) in await self._ask(unfinished, thread)]

    async def waiting(self, whose: Whose | None = None) -> list[str]:
        seen = int(self.SEES_HOLDERS)
        if whose is None:
            rows = await self._ask(_WAITING, seen)
        else:
            rows = await self._ask(_WAITING + _THEIRS, seen, list_of(whose.principals), list_of(whose.channels))
        return [id for id, holder, fresh in rows if not (holder and fresh and self._alive(holder))]

    async def stopping(self, threads: Sequence[str]) -> list[str]:
        return [thread for (thread,) in await self._ask(_STOPPING, list_of(threads))] if threads else []

    async def asking(self, session: str = "") -> list[ThreadRow]:
        return [ThreadRow(*row) for row in await self._ask(_ASKING, session)]

    async def _receive_with_more(self, inbound: Inbound) -> Receipt:
        return await self._do(partial(_receive, inbound))


async def _receive(inbound: Inbound, ask: Ask) -> Receipt:
    """Post a letter, with what its channel keeps beside it."""
    thread = await thread_of(ask, inbound)
    await keep_more(ask, inbound)
    return await post(ask, inbound, thread, kind_of(inbound.letter))


async def _command(ask: Ask, inbound: Inbound, action: Action | Deed, reply: str, otherwise: str) -> Receipt:
    """Do what a command says, and queue what it answers; a command that is known does nothing again."""
    if action in ("stop", "new") or isinstance(action, _MOVING):
        await lock_family(ask, str(inbound.address))
    thread = await thread_of(ask, inbound)
    await keep_more(ask, inbound)
    receipt = await post(ask, inbound, thread, "command", taken=True)
    if not receipt.fresh:
        return receipt
    done: int
    if isinstance(action, str):
        done, thread = await _act(ask, inbound, action, thread)
        reply = reply.replace(COUNT, str(done))
    elif done := await perform(ask, inbound.owner, str(inbound.address), action):
        thread = _thread_after(action, thread)
        if isinstance(action, Branch) and action.letter:
            await _become(ask, receipt.id, thread, action.letter)
            return Receipt(receipt.id, thread, True)
        if isinstance(action, SendToBackground | BeginInBackground):
            reply = reply.replace(COUNT, str(done), 1)
    text = reply if done else otherwise
    await ask("UPDATE inbox SET reply = $1, thread = $2 WHERE id = $3", text, thread, receipt.id)
    answer = Outbound(f"command:{receipt.id}", inbound.address, text, mails=(receipt.id,))
    await queue(ask, thread, inbound.owner, answer)
    return Receipt(receipt.id, thread, True, text)


async def _act(ask: Ask, inbound: Inbound, action: Action, thread: str) -> tuple[int, str]:
    """Whether it could be done, or how often, and the thread that the session has then."""
    match action:
        case "new":
            fresh = await new_thread(ask, inbound)
            await carry_over(ask, thread, fresh)
            return True, fresh
        case "stop":
            return len(await stop_tree(ask, inbound, thread)), thread
        case "tell":
            told = msgspec.structs.replace(inbound, event=f"{inbound.event}/told")
            await post(ask, told, thread, kind_of(inbound.letter))
            return True, thread
        case "none":
            return True, thread


def _thread_after(deed: Deed, thread: str) -> str:
    match deed:
        case ResumeThread() | BringToFront():
            return deed.thread
        case SendToBackground():
            return deed.front.id
        case Branch():
            return deed.id
        case _:
            return thread


async def _become(ask: Ask, id: int, thread: str, letter: Letter) -> None:
    """Make a letter of a command: it lies in the thread's inbox, and its turn is the answer."""
    await ask(
        "UPDATE inbox SET thread = $1, kind = $2, body = $3, taken = 0, ended = 0 WHERE id = $4",
        thread,
        kind_of(letter),
        body_of(letter),
        id,
    )
