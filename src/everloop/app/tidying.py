"""The house's own work. Once a day what has expired is forgotten, and what killed processes had begun is removed: that
belongs to nobody, so that only `gateway` and `worker` see to it. What deleted conversations have left is removed by any
process that acts for whose they were.
"""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

from ..files.folder import HALF_WRITTEN, sweep
from ..ports import Store
from ..ports.backup import BACKUP
from ..ports.jobs import DELETE, ERASE, Job, JobRow
from ..runtime.deletions import Deletions
from ..runtime.erasures import Erasures
from ..runtime.scheduler import Worker
from .scheduled_backups import ScheduledBackups

_log = logging.getLogger("everloop.tidying")

DAY = 86400


def daily(now: float) -> Job:
    """Due at once, then every day; a house that has it already keeps its own."""
    return Job("tidy", "tidy", now, owner="", schedule=f"every {DAY}")


def workers(
    store: Store, home: Path, deletions: Deletions, erasures: Erasures, backups: ScheduledBackups
) -> Mapping[str, Worker]:
    async def tidy(row: JobRow) -> str:
        gone = await store.forget_expired()
        await asyncio.to_thread(sweep, home / "files" / HALF_WRITTEN)
        told = ", ".join(f"{count} {name}" for name, count in gone.items())
        if told:
            _log.info("forgotten, for it has expired: %s", told)
        return told or "nothing"

    return {"tidy": tidy, DELETE: deletions.work, ERASE: erasures.work, BACKUP: backups.work}
