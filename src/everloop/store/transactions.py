"""What is rarely written to PostgreSQL, in a transaction of plain statements: commands.

They take their locks in the order of batch_function.py: session, then threads by id.
"""

import secrets
from collections.abc import Sequence
from typing import Any

import msgspec

from ..core.channel import ASIDE
from ..core.conversation import Branch, Deed, ResumeThread
from ..core.errors import MailRefused
from ..core.mail import Inbound, Letter, Outbound
from ..core.rows import Action, Receipt
from . import schema
from .bodies import NOT_YOURS, body_of, kind_of
from .channel_rows import keep_more
from .deeds import Ask, do
from .server import Connection

NOW = schema.DIALECTS["postgres"]["now"]
PENDING = "ended = 0 AND taken = 0"


async def command(
    connection: Connection, inbound: Inbound, action: Action | Deed, reply: str, otherwise: str
) -> Receipt:
    """Do what a command says, and queue what it answers; a command that is known does nothing again."""
    thread = await _thread_of(connection, inbound)
    await keep_more(asking(connection), inbound)
    receipt = await _post(connection, inbound, thread, "command", taken=1)
    if not receipt.fresh:
        return receipt
    text = reply
    if not isinstance(action, str):
        done = await do(asking(connection), inbound.owner, str(inbound.address), action)
        text = reply if done else otherwise
        if done and isinstance(action, ResumeThread):
            thread = action.thread
        if done and isinstance(action, Branch):
            thread = action.id
            if action.letter:
                await _become(connection, receipt.id, thread, action.letter)
                return Receipt(receipt.id, thread, True)
    elif action == "new":
        thread = await _new_thread(connection, inbound)
    elif action == "stop":
        text = reply if await _stop(connection, inbound, thread) else otherwise
    elif action == "tell":
        told = msgspec.structs.replace(inbound, event=f"{inbound.event}/told")
        await _post(connection, told, thread, kind_of(inbound.letter))
    answer = Outbound(f"command:{receipt.id}", inbound.address, text, mails=(receipt.id,))
    await connection.execute("UPDATE inbox SET reply = $1, thread = $2 WHERE id = $3", text, thread, receipt.id)
    await connection.execute(
        f"INSERT INTO outbox(key, thread, owner, channel, chat, body, at) VALUES($1, $2, $3, $4, $5, $6, {NOW})",
        *(answer.key, thread, inbound.owner, inbound.address.channel, str(inbound.address), body_of(answer)),
    )
    return Receipt(receipt.id, thread, True, text)


async def receive(connection: Connection, inbound: Inbound) -> Receipt:
    """Post a letter, with what its channel keeps beside it."""
    thread = await _thread_of(connection, inbound)
    await keep_more(asking(connection), inbound)
    return await _post(connection, inbound, thread, kind_of(inbound.letter))


def asking(connection: Connection) -> Ask:
    async def ask(statement: str, *values: object) -> Sequence[Any]:
        rows: Sequence[Any] = await connection.fetch(in_postgres(statement), *values)
        return rows

    return ask


def in_postgres(statement: str) -> str:
    return statement.format_map(schema.DIALECTS["postgres"])


async def _thread_of(connection: Connection, inbound: Inbound) -> str:
    """The session's thread, made if there is none. Both are locked until the transaction ends."""
    key, fresh = str(inbound.address), secrets.token_hex(8)
    thread, owner = await connection.fetchrow(
        "INSERT INTO sessions(key, owner, thread) VALUES($1, $2, $3) "
        "ON CONFLICT (key) DO UPDATE SET owner = sessions.owner RETURNING thread, owner",
        *(key, inbound.owner, fresh),
    )
    if owner != inbound.owner:
        raise MailRefused(NOT_YOURS)
    if thread == fresh:
        await _make_thread(connection, thread, inbound)
    await connection.execute("SELECT 1 FROM threads WHERE id = $1 FOR UPDATE", thread)
    return str(thread)


async def _new_thread(connection: Connection, inbound: Inbound) -> str:
    thread = secrets.token_hex(8)
    await _make_thread(connection, thread, inbound)
    await connection.execute("UPDATE sessions SET thread = $1 WHERE key = $2", thread, str(inbound.address))
    return thread


async def _make_thread(connection: Connection, thread: str, inbound: Inbound) -> None:
    await connection.execute(
        f"INSERT INTO threads(id, owner, session, created, archived) VALUES($1, $2, $3, {NOW}, $4)",
        *(thread, inbound.owner, str(inbound.address), int(str(inbound.address).startswith(ASIDE))),
    )


async def _post(connection: Connection, inbound: Inbound, thread: str, kind: str, taken: int = 0) -> Receipt:
    channel, event = inbound.address.channel, inbound.event
    id = await connection.fetchval(
        "INSERT INTO inbox(channel, event, thread, owner, kind, body, at, taken, ended) "
        f"VALUES($1, $2, $3, $4, $5, $6, {NOW}, $7, $8) ON CONFLICT DO NOTHING RETURNING id",
        *(channel, event, thread, inbound.owner, kind, body_of(inbound.letter), taken, -taken),
    )
    if id is not None:
        return Receipt(id, thread, True)
    known = await connection.fetchrow(
        "SELECT id, thread, reply FROM inbox WHERE channel = $1 AND event = $2", channel, event
    )
    return Receipt(known["id"], known["thread"], False, known["reply"])


async def _become(connection: Connection, id: int, thread: str, letter: Letter) -> None:
    """Make a letter of a command: it lies in the thread's inbox, and its turn is the answer."""
    await connection.execute(
        "UPDATE inbox SET thread = $1, kind = $2, body = $3, taken = 0, ended = 0 WHERE id = $4",
        *(thread, kind_of(letter), body_of(letter), id),
    )


async def _stop(connection: Connection, inbound: Inbound, thread: str) -> bool:
    busy = await connection.fetchval(
        "SELECT EXISTS(SELECT 1 FROM threads WHERE id = $1 AND state <> 'resting') "
        f"OR EXISTS(SELECT 1 FROM inbox WHERE thread = $1 AND {PENDING})",
        thread,
    )
    if busy:
        letter = msgspec.structs.replace(inbound, event=f"{inbound.event}/stop")
        await _post(connection, letter, thread, "stop")
    return bool(busy)
