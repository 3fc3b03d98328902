"""A pooler between us and the server, such as pgbouncer: it must give a connection of ours one session for itself.

Ours keep a function and settings, and locks that are held by a transaction. With pgbouncer's transaction or statement
pooling the next question is answered by a session that knows nothing of them, and other programs get ours.
"""

from typing import Any

import asyncpg

from .batch_function import NAME

Connection = Any

SHARED = (
    "a pooler before it (such as pgbouncer) hands one session to several connections in turn, and everloop needs its "
    "own: set pool_mode = session for this database, or give the address of the server itself"
)
_ROUNDS = 3
_PGBOUNCER = "statement pooling mode"  # in which it allows no transaction
_FORGOTTEN = (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)


async def share_sessions(one: Connection, other: Connection) -> bool:
    """Whether they are not told apart: both on one session, or one of them on another session each time.

    A pooler takes the session that was used last, or the one that has rested longest: one way or the other it shows, if
    nobody else comes in between; so it is looked at a few times.
    """
    for _ in range(_ROUNDS):
        mine = await _session(one)
        async with other.transaction():
            if await other.fetchval("SELECT pg_backend_pid()") == mine or await _session(one) != mine:
                return True
    return False


def tells_of_sharing(error: Exception) -> bool:
    """What a session of ours was told is not there any more, or what another one was told is."""
    if isinstance(error, asyncpg.UndefinedFunctionError):
        return NAME in str(error)
    return _PGBOUNCER in str(error) or isinstance(error, _FORGOTTEN)


async def _session(connection: Connection) -> int:
    async with connection.transaction():  # else it could be prepared in one session and asked in the next
        return int(await connection.fetchval("SELECT pg_backend_pid()"))
