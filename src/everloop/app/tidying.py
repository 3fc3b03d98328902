"""The house's own work. Once a day what has expired is forgotten, and what killed processes had begun is removed: that
belongs to nobody, so that only `gateway` and `worker` see to it. What deleted conversations have left is removed by any
process that acts for whose they were.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from ..files.folder import HALF_WRITTEN, sweep
from ..ports.backup import BACKUP
from ..ports.heartbeat import HEARTBEAT
from ..ports.importing import EXPORTS
from ..ports.jobs import DELETE, ERASE, TITLE, Job, JobRow
from ..ports.schedules import COMMAND, POLL
from ..runtime.scheduler import Worker
from .home_folders import sweep_copies

if TYPE_CHECKING:
    from .house import House

_log = logging.getLogger("everloop.tidying")

DAY = 86400


def daily(now: float) -> Job:
    """Due at once, then every day; a house that has it already keeps its own."""
    return Job("tidy", "tidy", now, owner="", schedule=f"every {DAY}")


def work_of(house: "House") -> dict[str, Worker]:
    """Who does the work of each kind of job. What takes more than a turn does is made with the first such job."""

    async def tidy(row: JobRow) -> str:
        await asyncio.to_thread(sweep_copies, house.opened.home)
        gone = await house.store.forget_expired()
        await asyncio.to_thread(sweep, house.opened.home / "files" / HALF_WRITTEN)
        await asyncio.to_thread(sweep, house.opened.home / EXPORTS, DAY)
        told = ", ".join(f"{count} {name}" for name, count in gone.items())
        if told:
            _log.info("forgotten, for it has expired: %s", told)
        return told or "nothing"

    anyones: dict[str, Worker] = {
        DELETE: lambda row: house.deletions.work(row),
        ERASE: lambda row: house.erasures.work(row),
        COMMAND: lambda row: house.deeds.run_command(row),
        POLL: lambda row: house.deeds.look(row),
        HEARTBEAT: lambda row: house.heartbeats.look(row),
    }
    if house.given.whose:
        return anyones
    return {
        **anyones,
        "tidy": tidy,
        BACKUP: lambda row: house.scheduled_backups.work(row),
        TITLE: lambda row: house.titles.work(row),
    }
