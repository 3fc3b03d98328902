"""What a turn does while its database is away: it keeps what it has, and waits for as long as it holds its lease.

An answer that has been paid for, or the result of a tool, is not thrown away because the commit found nobody home.
Nothing here looks at a clock: the lanes end a turn whose lease is about to run out (see lanes.py).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..errors import Fenced, StoreBroken, StoreFull, StoreUnreachable
from ..ports import Log
from ..ports.rows import Commit, Committed, Lease, Opened

Result = TypeVar("Result")

_log = logging.getLogger("everloop.lanes")

AWAY = (StoreUnreachable, StoreFull)  # what may pass by itself
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


async def patiently(ask: Callable[[], Awaitable[Result]]) -> Result:
    """Ask until the store answers; for those who hold a lease, and are cancelled when they do no longer."""
    pause = FIRST_PAUSE
    while True:
        try:
            return await ask()
        except StoreBroken:
            raise
        except AWAY as error:
            level = logging.WARNING if pause == FIRST_PAUSE else logging.DEBUG
            _log.log(level, "a turn waits for the database: %s", error)
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


async def commit_again(store: Log, lease: Lease, commit: Commit) -> Committed:
    """Send a commit once more of which nobody knows whether it has arrived. Raises Fenced.

    It cannot happen twice: if it has arrived, the log has grown, or the lease is given back, and the second is refused.
    """
    try:
        return await patiently(lambda: store.commit(lease, commit))
    except Fenced:
        opened = await patiently(lambda: store.open(lease.thread, lease.head))
        if not _has_arrived(lease, commit, opened):
            raise
    row = opened.row
    started = bool(commit.starts) and row.head == lease.head + len(commit.entries) + len(commit.starts)
    return Committed(row.head, row.epoch, started, not row.holder, max((mail.id for mail in opened.mail), default=0))


def _has_arrived(lease: Lease, commit: Commit, opened: Opened) -> bool:
    """Nobody else has written under this epoch, so whatever is new there is this."""
    row = opened.row
    return row.epoch == lease.epoch and (row.head > lease.head or (commit.release and not row.holder))
