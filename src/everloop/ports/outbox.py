"""What is to be delivered."""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from ..core.mail import Address, Outbound, ReplyTo
from .rows import OutboxRow, OutboxState, Undelivered


class Delivery(Struct, frozen=True, gc=False):
    """What has become of an answer: when it was put into the outbox, and when it was sent, shown or given up."""

    key: str
    channel: str
    state: Literal["pending", "sending", "sent", "failed", "dropped"]
    queued: float
    settled: float | None = None  # None while nobody has it
    attempts: int = 0


class SentAnswer(Struct, frozen=True, gc=False):
    """An answer that was sent, and what its channel calls each part of it."""

    key: str
    address: Address
    text: str
    receipts: tuple[str, ...]


class Outgoing(Protocol):
    """Raises StoreError."""

    async def due(self, channel: str, limit: int = 100) -> list[OutboxRow]:
        """Claim what may be sent now, in order, one row a chat; each is marked `sending` before any I/O."""

    async def settle(self, row: int, state: OutboxState, receipt: str = "", again_in: float = 0.0) -> None:
        """Say what became of a claimed row."""

    async def keep_parts(self, row: int, receipts: Sequence[str]) -> bool:
        """So many parts of a claimed row have arrived; there is time for the next. False: it is another's by now."""

    async def reply_to(self, outbound: Outbound) -> ReplyTo:
        """What its channel said of the letter that is answered, or of the last one of that conversation."""

    async def undelivered(self) -> list[Undelivered]:
        """What could not be sent, in order: given up, or to be tried again."""

    async def send_again(self, row: int) -> bool:
        """Try again, now and as long as anything, what was given up or waits to be tried. Whether there was such a
        one."""

    async def drop(self, row: int) -> bool:
        """Never send what has been given up, or waits to be tried again. Whether there was such a one."""

    async def unshown(self, chat: str) -> list[Outbound]:
        """What waits for someone at this address (a session key) and has not been sent, in order."""

    async def acknowledge(self, keys: Sequence[str], given: Sequence[int] = ()) -> None:
        """Say that these answers have been shown: they need not be sent any more. `given` are letters whose own senders
        have what came of them."""

    async def deliveries(self, keys: Sequence[str]) -> dict[str, Delivery]:
        """What has become of the answers with these keys, as far as they were put into the outbox."""


class SentAnswers(Protocol):
    """Raises StoreError."""

    async def sent_answers(self, keys: Sequence[str]) -> list[SentAnswer]:
        """Those with these keys that were sent."""
