"""Answers that bots fetch by themselves."""

from collections.abc import Collection, Sequence
from typing import Protocol

from ..polled import PolledAnswer, PolledPlaces, PolledState


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
