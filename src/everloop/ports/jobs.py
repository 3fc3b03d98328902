"""What is to happen later, as a row that is due once or over and over; and what runs for long, as it can be seen."""

from collections.abc import Collection
from typing import Literal, Protocol

from msgspec import Struct

from ..core.mail import Inbound

JobState = Literal["waiting", "working", "done", "failed", "held", "adopted"]  # these two of a copy
DELETE = "delete"  # the kind of work that removes what is left of deleted conversations
ERASE = "erase"  # that which removes all that is a person's
TITLE = "title"  # that which finds a conversation a name
CONSOLIDATE = "consolidate"  # that which makes a conversation part of the memory


class Job(Struct, frozen=True):
    """With a `letter` it speaks: when it is due, the letter is posted to its address, with an event of the job's
    own. Without one it is work of its `kind`, on its `payload`: it is claimed, and tried until it is done.

    `owner` is the principal that it belongs to; `due` is Unix time by the store's clock; `schedule` says how it goes on
    after that.
    """

    id: str
    kind: str
    due: float
    owner: str = "owner"
    schedule: str = ""
    letter: Inbound | None = None
    payload: str = ""


class JobRow(Struct, frozen=True):
    """A job as it stands. `epoch` is that of its last claim; `result` is what came of it, or why it did not."""

    job: Job
    state: JobState = "waiting"
    attempts: int = 0  # of the work that is due now
    epoch: int = 0
    result: str = ""


RunState = Literal["running", "standby", "waiting", "ended", "failed"]


class TaskState(Struct, frozen=True):
    """How a long-running task stands: `standby` while another process does it, `waiting` to be begun again, `ended` by
    itself, or `failed` for good."""

    name: str
    state: RunState
    since: float  # Unix time
    restarts: int = 0
    error: str = ""  # the last one, also when it runs again


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

    async def hold(self, name: str, seconds: float, under: str = "", *, in_copy: bool = False) -> bool:
        """Take or prolong the lease; not while another holds `under`, and in a restored copy that nobody has adopted
        only with `in_copy`: for what begins nothing by itself."""

    async def let_go(self, name: str) -> None:
        """Give it back, if it is ours."""
