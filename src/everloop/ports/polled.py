"""Answers that a bot fetches by itself, as values: which are meant for it, what it was given, what became of them."""

from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Literal, Protocol

from msgspec import Struct

from ..core.mail import Outbound

PolledState = Literal["sent", "failed", "pending"]  # pending: it comes again


class PolledPlaces(Struct, frozen=True):
    """The sessions of one owner in a channel whose keys begin in one of these ways."""

    channel: str
    owner: str
    prefixes: tuple[str, ...]


class PolledAnswer(Struct, frozen=True, kw_only=True):
    """One that was handed out, and is nobody else's until its claim has run out.

    `events` are those of the letters that it answers, `attempts` the times that it was handed out, this one included,
    and `unsure` says that whoever had it before may have delivered it, or whoever asked may have been given it."""

    row: int
    key: str
    thread: str
    outbound: Outbound
    claim: str
    at: float  # when it was said
    trying: float  # seconds since then, or since a person has had it tried again
    attempts: int
    unsure: bool
    events: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return polled_id(self.row, self.key)


class PolledReceipt(Struct, frozen=True):
    """What became of an answer, as its bot says; `seconds` are those after which it comes again."""

    id: str
    state: PolledState = "sent"
    why: str = ""
    seconds: float = 0.0


def polled_id(row: int, key: str) -> str:
    """The same whenever it is handed out, and no other's, also when the number of a row has been given anew."""
    return f"{row}-{sha256(key.encode()).hexdigest()[:16]}"


class Polled(Protocol):
    """Raises StoreError."""

    async def poll(
        self, places: PolledPlaces, *, limit: int, seconds: float, grace: float, spare: Collection[int] = ()
    ) -> list[PolledAnswer]:
        """Claim the first open answer of each session, for so many seconds, whoever else asks and whatever becomes of
        this process. What answers a message comes only `grace` seconds after it was said, for its sender may wait for
        it, unless they were let go; `spare` are messages whose senders surely wait."""

    async def put_back(self, rows: Sequence[PolledAnswer]) -> None:
        """Nobody has been given these."""

    async def find_polled(self, places: PolledPlaces, rows: Collection[int]) -> dict[int, str]:
        """The keys of those rows that are answers at these places, whatever became of them."""

    async def settle_polled(self, row: int, state: PolledState, why: str = "", again_in: float = 0.0) -> None:
        """What has arrived stays so."""

    async def note_polled(self, prefixes: Sequence[str]) -> None:
        """A bot fetches what is said where keys begin so."""

    async def is_polled(self, session: str, seconds: float) -> bool:
        """Whether a bot has fetched what is said there within so many seconds."""

    async def let_askers_go(self, mails: Sequence[int]) -> None:
        """Whoever sent these messages does not wait for their answers any more."""
