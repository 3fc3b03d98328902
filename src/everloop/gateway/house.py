"""What the gateway needs of the house it stands in front of. An open `everloop.Agent` is one; tests may bring another.

The gateway does not know how turns are driven: it puts letters in, listens to what happens, and reads the store.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from ..core.channel import Hook
from ..core.events import Answer
from ..core.jobs import TaskState
from ..core.mail import Inbound
from ..core.message import Part
from ..core.permission import Allowance, Approval, Grant
from ..core.ports import Feed, Files, Store
from ..core.rows import Receipt


class House(Protocol):
    """An open everloop. What it raises is an EverloopError, whose text is a sentence for the person."""

    model: str  # provider/model that answers where nothing else was chosen

    @property
    def unused(self) -> Sequence[str]:
        """What is set and does nothing yet, in sentences."""
        ...

    @property
    def hooks(self) -> Mapping[str, Sequence[Hook]]:
        """What the platforms of channels call, by the channel's name."""
        ...

    @property
    def store(self) -> Store: ...

    @property
    def files(self) -> Files: ...

    def tasks(self) -> Sequence[TaskState]:
        """What runs for as long as the house is open: channels, the scheduler, the exporter of spans."""
        ...

    async def tell(self, inbound: Inbound) -> Receipt:
        """Commit a letter and wake its thread, without waiting for what comes of it."""
        ...

    async def put_down(self) -> None:
        """End what runs, now: it goes on at the next start, and whoever waits for it is told."""
        ...

    async def post(self, inbound: Inbound) -> Receipt:
        """Commit a letter and wake nobody yet: whoever wants to say so first calls `wake` afterwards."""
        ...

    async def begin(self, inbound: Inbound) -> Receipt:
        """As `post`; but where its thread rests, the turn begins with the same commit (the receipt says so)."""
        ...

    def wake(self, receipt: Receipt, inbound: Inbound) -> None: ...

    async def outcome(self, receipt: Receipt, inbound: Inbound) -> Answer:
        """Wake the thread of a posted letter and wait for the answer. Raises TurnFailed."""
        ...

    async def enclose(self, name: str, data: bytes, owner: str) -> Part:
        """Keep a file that comes with a message, and make the part that names it. Raises MailRefused."""
        ...

    async def approvals(self, session: str = "") -> Sequence[Approval]:
        """What waits for a person's permission, in one session or in all."""
        ...

    async def decide(
        self, approval: str, allow: bool, by: str = "owner", allowance: Allowance | None = None
    ) -> Approval:
        """Allow or deny a call; with an allowance, allow the like of it ahead. Raises MailRefused when it waits no
        longer, is not theirs to decide, or the allowance would not fit it."""
        ...

    async def grants(self) -> Sequence[Grant]:
        """What is allowed ahead."""
        ...

    async def revoke(self, grant: str, by: str = "owner") -> Grant:
        """Take back what was allowed ahead. Raises MailRefused."""
        ...

    async def acknowledge(self, keys: Sequence[str]) -> None:
        """Say that these answers have been shown: nobody else needs to."""
        ...

    def note_shown(self, key: str) -> None:
        """As `acknowledge`, in no hurry."""
        ...

    def events(self, thread: str = "") -> AbstractContextManager[Feed]:
        """What happens in one thread, or in all, from now on. A reader that is too slow is cut off."""
        ...
