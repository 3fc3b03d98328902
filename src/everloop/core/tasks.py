"""What runs for as long as the house is open, as it can be seen."""

from typing import Literal

from msgspec import Struct

RunState = Literal["running", "standby", "waiting", "ended", "failed"]


class TaskState(Struct, frozen=True):
    """How a long-running task stands: `standby` while another process does it, `waiting` to be begun again, `ended` by
    itself, or `failed` for good."""

    name: str
    state: RunState
    since: float  # Unix time
    restarts: int = 0
    error: str = ""  # the last one, also when it runs again
