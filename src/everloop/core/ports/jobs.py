"""What is to happen later, and who alone sees to it."""

from collections.abc import Collection
from typing import Protocol

from ..jobs import Job, JobRow


class Jobs(Protocol):
    """What is to happen later. Times are those of the store's clock. Raises StoreError."""

    async def add_job(self, job: Job) -> bool:
        """Keep it, unless there is one of this id, or was one in the last month. Raises BadSchedule."""

    async def jobs(self, owner: str) -> list[JobRow]:
        """The owner's, in the order in which they are due."""

    async def drop_job(self, owner: str, id: str) -> bool:
        """Whether there was one to drop. Work on it that has begun counts for nothing."""

    async def is_due(self, kinds: Collection[str], owner: str = "") -> bool:
        """Whether a job that speaks is to be fired, or work of these kinds to be claimed; of one owner or of all."""

    async def fire(self, owner: str = "") -> list[str]:
        """Have each job that speaks and is due post its letter, in one transaction that also sets its next time; those
        of one owner or of all. Returns the threads to wake."""

    async def claim_jobs(self, kinds: Collection[str], seconds: float, owner: str = "", limit: int = 1) -> list[JobRow]:
        """Take work that is due, for so long: nobody else has it until then, unless this process is gone."""

    async def prolong_job(self, row: JobRow, seconds: float) -> bool:
        """False when the claim has run out, or the job was dropped: whoever works on it has to stop."""

    async def settle_job(self, row: JobRow, result: str, again_in: float | None = None) -> bool:
        """Say what came of a claimed job, which is done with that, or is to be tried `again_in` so many seconds. False
        when another has claimed it since, or it was dropped: then nothing was written."""

    async def forget_expired(self) -> dict[str, int]:
        """Forget grants, tokens, visits and jobs that hold no longer; how many of each."""


class Leases(Protocol):
    """What one process does for all, by a name. Raises StoreError."""

    async def hold(self, name: str, seconds: float, under: str = "") -> bool:
        """Take or prolong the lease; not while another holds `under`."""

    async def let_go(self, name: str) -> None:
        """Give it back, if it is ours."""
