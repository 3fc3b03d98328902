"""Rows that hold no longer, written once for both databases: they are of no use to anyone, so they are forgotten.

What was said, sent and spent is not among them: that goes when a conversation is deleted (deleting.py). What is left of
its letters then is only their events, by which they are known again if they come again.
"""

from .database import Ask, Database

MONTH = 30 * 86400.0

# By what they are called when it is told. Where a person may still look for one, it stays for a month.
_EXPIRED = {
    "grants": "DELETE FROM grants WHERE until <= {now} - CAST($1 AS {real}) RETURNING id",
    "tokens": "DELETE FROM tokens WHERE until > 0 AND until <= {now} - CAST($1 AS {real}) RETURNING id",
    "jobs": "DELETE FROM jobs WHERE state IN ('done', 'failed') AND until <= {now} - CAST($1 AS {real}) RETURNING id",
    "schedules": "DELETE FROM schedules WHERE over_at > 0 AND over_at <= {now} - CAST($1 AS {real}) RETURNING id",
    "runs of schedules": "DELETE FROM schedule_runs WHERE state <> 'running' AND begun <= {now} - CAST($1 AS {real}) "
    "RETURNING schedule",
    "letters of deleted conversations": "DELETE FROM inbox WHERE kind = 'deleted' AND ended <> 0 "
    "AND at <= {now} - CAST($1 AS {real}) AND id < (SELECT max(id) FROM inbox) RETURNING id",  # no number comes twice
    "visits": "DELETE FROM web_sessions WHERE until <= {now} RETURNING id",
    "links": "DELETE FROM logins WHERE until > 0 AND until <= {now} RETURNING kind",
    "budgets of jobs": "DELETE FROM spending WHERE per = 'job' AND resets <= {now} AND held_tokens = 0 RETURNING scope",
}


class ExpiredRows(Database):
    """What a store forgets by itself."""

    async def forget_expired(self) -> dict[str, int]:
        """All of it in one transaction."""
        return await self._do(_forget)


async def _forget(ask: Ask) -> dict[str, int]:
    gone = {}
    for name, statement in _EXPIRED.items():
        gone[name] = len(await ask(statement, *([MONTH] if "$1" in statement else [])))
    return {name: count for name, count in gone.items() if count}
