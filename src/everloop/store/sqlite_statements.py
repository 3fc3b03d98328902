"""Statements on SQLite: how those that are written once are asked there, and the hot ones on letters and answers.

INSERTs that return what they made cost more, since SQLite makes a table of its own for every RETURNING.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..core.mail import Decision, Inbound, Outbound
from ..errors import MailRefused
from ..ports.rows import Receipt
from . import letters, schema
from .database import Ask, run_at_once
from .letters import NOT_YOURS, post_values, queue_values
from .writer import Execute


@lru_cache(maxsize=256)
def in_sqlite(statement: str) -> str:
    return statement.format_map(schema.DIALECTS["sqlite"]).replace("$", "?")


NOW, ELAPSED = schema.DIALECTS["sqlite"]["now"], schema.DIALECTS["sqlite"]["elapsed"]
_POST, _KNOWN, _QUEUE = in_sqlite(letters.POST), in_sqlite(letters.KNOWN), in_sqlite(letters.QUEUE)


def asking(execute: Execute) -> Ask:
    async def ask(statement: str, *values: object) -> Sequence[Any]:
        rows: Sequence[Any] = execute(in_sqlite(statement), values).fetchall()
        return rows

    return ask


def thread_of(execute: Execute, inbound: Inbound) -> str:
    if isinstance(inbound.letter, Decision):
        return run_at_once(letters.thread_of(asking(execute), inbound))
    rows = execute("SELECT thread, owner FROM sessions WHERE key = ?", (str(inbound.address),)).fetchall()
    if not rows:
        return run_at_once(letters.thread_of(asking(execute), inbound))
    if rows[0][1] != inbound.owner:  # it has become another's since somebody has looked
        raise MailRefused(NOT_YOURS)
    return str(rows[0][0])


def post(execute: Execute, inbound: Inbound, thread: str, kind: str, body: str) -> Receipt:
    database = execute(_POST, post_values(inbound, thread, kind, body)).connection
    if database.changes():
        return Receipt(database.last_insert_rowid(), thread, True)
    known = execute(_KNOWN, (inbound.address.channel, inbound.event)).fetchall()[0]
    return Receipt(known[0], known[1], False, known[2])


def queue(execute: Execute, thread: str, owner: str, outbound: Outbound) -> None:
    execute(_QUEUE, queue_values(thread, owner, outbound))
