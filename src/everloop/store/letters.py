"""Letters into inboxes and answers into the outbox, written once for both databases. The texts of the statements serve
the hot path of SQLite, too; that of PostgreSQL has its own, which write many at once (batch_function.py)."""

import secrets

from ..core.mail import Decision, Inbound, Outbound
from ..errors import MailRefused
from ..ports.channel import ASIDE
from ..ports.rows import Receipt
from .codec import body_of, kind_of
from .database import Ask

NOT_YOURS = "this session is not yours"
NO_LONGER = "this conversation was deleted"
PENDING = "ended = 0 AND taken = 0"
MAKE_TURNS = "kind IN ('said', 'undo', 'notice')"  # letters that do
POST = (
    "INSERT INTO inbox(channel, event, thread, owner, kind, body, at, taken, ended) "
    "VALUES($1, $2, $3, $4, $5, $6, {now}, $7, $8) ON CONFLICT DO NOTHING"
)
KNOWN = "SELECT id, thread, reply FROM inbox WHERE channel = $1 AND event = $2"
_SPAWN = (
    "UPDATE threads SET spawned_by = $1, title = $4, archived = 1 "
    "WHERE id = $2 AND owner = $3 AND head = 0 AND spawned_by = '' "
    "AND NOT EXISTS(SELECT 1 FROM inbox WHERE thread = $2 AND ended = 0)"
)
QUEUE = (
    "INSERT INTO outbox(key, thread, owner, channel, chat, body, at) VALUES($1, $2, $3, $4, $5, $6, {now}) "
    "ON CONFLICT DO NOTHING"
)


async def thread_of(ask: Ask, inbound: Inbound) -> str:
    """The thread that a decision names, else the session's, which is made if there is none. On PostgreSQL the session
    and the thread are locked until the transaction ends. Raises MailRefused."""
    thread = inbound.letter.thread if isinstance(inbound.letter, Decision) else await _thread_of_session(ask, inbound)
    if not await ask("SELECT 1 FROM threads WHERE id = $1{lock}", thread):
        raise MailRefused(NO_LONGER)
    return thread


async def new_thread(ask: Ask, inbound: Inbound) -> str:
    """Move a session to a new thread."""
    thread = secrets.token_hex(8)
    await _make_thread(ask, thread, inbound)
    await ask("UPDATE sessions SET thread = $1 WHERE key = $2", thread, str(inbound.address))
    return thread


async def post(ask: Ask, inbound: Inbound, thread: str, kind: str, *, taken: bool = False) -> Receipt:
    """Put a letter into an inbox, once per event. What is `taken` needs no turn."""
    rows = await ask(f"{POST} RETURNING id", *post_values(inbound, thread, kind, body_of(inbound.letter), taken))
    if rows:
        return Receipt(rows[0][0], thread, True)
    id, known_thread, reply = (await ask(KNOWN, inbound.address.channel, inbound.event))[0]
    return Receipt(id, known_thread, False, reply)


async def post_if_theirs(ask: Ask, inbound: Inbound, thread: str = "", spawned_by: str = "", title: str = "") -> str:
    """Post to this thread, or to that of the letter, which is a child's if nothing was said in it yet. The thread; ""
    when it is gone or another's."""
    named = bool(thread)
    try:
        thread = thread or await thread_of(ask, inbound)
    except MailRefused:
        return ""
    if not await ask("SELECT 1 FROM threads WHERE id = $1 AND owner = $2{lock}", thread, inbound.owner):
        return ""
    if spawned_by and not named:
        await ask(_SPAWN, spawned_by, thread, inbound.owner, title)
    await post(ask, inbound, thread, kind_of(inbound.letter))
    return thread


async def queue(ask: Ask, thread: str, owner: str, outbound: Outbound) -> None:
    await ask(QUEUE, *queue_values(thread, owner, outbound))


def post_values(inbound: Inbound, thread: str, kind: str, body: str, taken: bool = False) -> tuple[object, ...]:
    return (inbound.address.channel, inbound.event, thread, inbound.owner, kind, body, int(taken), -int(taken))


def queue_values(thread: str, owner: str, outbound: Outbound) -> tuple[object, ...]:
    return (outbound.key, thread, owner, outbound.address.channel, str(outbound.address), body_of(outbound))


async def _thread_of_session(ask: Ask, inbound: Inbound) -> str:
    fresh = secrets.token_hex(8)
    rows = await ask(
        "INSERT INTO sessions(key, owner, thread) VALUES($1, $2, $3) "
        "ON CONFLICT (key) DO UPDATE SET owner = sessions.owner RETURNING thread, owner",
        str(inbound.address),
        inbound.owner,
        fresh,
    )
    thread, owner = rows[0]
    if owner != inbound.owner:  # it has become another's since somebody has looked
        raise MailRefused(NOT_YOURS)
    if thread == fresh:
        await _make_thread(ask, fresh, inbound)
    return str(thread)


async def _make_thread(ask: Ask, thread: str, inbound: Inbound) -> None:
    key = str(inbound.address)
    await ask(
        "INSERT INTO threads(id, owner, session, created, archived) VALUES($1, $2, $3, {now}, $4)",
        thread,
        inbound.owner,
        key,
        int(key.startswith(ASIDE)),
    )
