"""What several transactions on SQLite have in common: letters, threads, entries, answers."""

import secrets

import msgspec

from ..core.channel import ASIDE
from ..core.errors import MailRefused
from ..core.mail import Decision, Inbound, Letter, Outbound
from ..core.rows import Receipt
from . import schema
from .bodies import NOT_YOURS, body_of, kind_of
from .writer import Execute

NOW, ELAPSED = schema.DIALECTS["sqlite"]["now"], schema.DIALECTS["sqlite"]["elapsed"]

PENDING = "inbox.thread = ?1 AND ended = 0 AND taken = 0"
_POST = (
    "INSERT INTO inbox(channel, event, thread, owner, kind, body, at, taken, ended) "
    f"VALUES(?, ?, ?, ?, ?, ?, {NOW}, ?, ?) ON CONFLICT DO NOTHING"
)


def thread_of(execute: Execute, inbound: Inbound) -> str:
    if isinstance(inbound.letter, Decision):
        return inbound.letter.thread
    key = str(inbound.address)
    rows = execute("SELECT thread, owner FROM sessions WHERE key = ?", (key,)).fetchall()
    if rows and rows[0][1] != inbound.owner:  # it has become another's since somebody has looked
        raise MailRefused(NOT_YOURS)
    return rows[0][0] if rows else new_thread(execute, inbound)


def new_thread(execute: Execute, inbound: Inbound) -> str:
    thread, key = secrets.token_hex(8), str(inbound.address)
    execute(
        f"INSERT INTO threads(id, owner, session, created, archived) VALUES(?, ?, ?, {NOW}, ?)",
        (thread, inbound.owner, key, int(key.startswith(ASIDE))),
    )
    execute(
        "INSERT INTO sessions VALUES(?, ?, ?) ON CONFLICT(key) DO UPDATE SET thread = excluded.thread",
        (key, inbound.owner, thread),
    )
    return thread


def post(execute: Execute, inbound: Inbound, thread: str, kind: str, body: str, taken: int = 0) -> Receipt:
    ended = -1 if kind == "command" else 0
    values = (inbound.address.channel, inbound.event, thread, inbound.owner, kind, body, taken, ended)
    database = execute(_POST, values).connection
    if database.changes():
        return Receipt(database.last_insert_rowid(), thread, True)
    known = execute("SELECT id, thread, reply FROM inbox WHERE channel = ? AND event = ?", values[:2]).fetchall()[0]
    return Receipt(known[0], known[1], False, known[2])


def become(execute: Execute, id: int, thread: str, letter: Letter) -> None:
    """Make a letter of a command: it lies in the thread's inbox, and its turn is the answer."""
    execute(
        "UPDATE inbox SET thread = ?, kind = ?, body = ?, taken = 0, ended = 0 WHERE id = ?",
        (thread, kind_of(letter), body_of(letter), id),
    )


def stop(execute: Execute, inbound: Inbound, thread: str) -> bool:
    busy = execute(
        "SELECT 1 FROM threads WHERE id = ?1 AND state != 'resting' UNION "
        "SELECT 1 FROM inbox WHERE thread = ?1 AND ended = 0 AND taken = 0",
        (thread,),
    ).fetchall()
    if busy:
        letter = msgspec.structs.replace(inbound, event=f"{inbound.event}/stop")
        post(execute, letter, thread, "stop", body_of(inbound.letter))
    return bool(busy)


def queue(execute: Execute, thread: str, owner: str, outbound: Outbound) -> None:
    execute(
        f"INSERT INTO outbox(key, thread, owner, channel, chat, body, at) VALUES(?, ?, ?, ?, ?, ?, {NOW}) "
        "ON CONFLICT DO NOTHING",
        (
            *(outbound.key, thread, owner, outbound.address.channel, str(outbound.address)),
            body_of(outbound),
        ),
    )
