"""What is to happen later, as a row that is due once or over and over; and what runs for long, as it can be seen."""

from typing import Literal

from msgspec import Struct

from .mail import Inbound

JobState = Literal["waiting", "working", "done", "failed"]
DELETE = "delete"  # the kind of work that removes what is left of deleted conversations
ERASE = "erase"  # that which removes all that is a person's


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
