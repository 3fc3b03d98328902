"""What the doors that take letters over HTTP need of the house. `everloop.Agent` is one."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ..core.events import Answer, Event
from ..core.mail import Inbound
from ..core.message import Part
from ..core.ports import Store
from ..core.rows import Receipt

Again = Callable[[], Awaitable[Inbound | None]]


class Desk(Protocol):
    @property
    def store(self) -> Store: ...

    def answering(self, inbound: Inbound, again: Again | None = None) -> AbstractAsyncContextManager[Answer]:
        """The answer; it counts as given when the block ends well. `again` is asked when this letter has come before:
        for another letter in its place, or None to go on with that one. Raises TurnFailed, MailRefused, StoreError.
        """
        ...

    def watch(self, inbound: Inbound, again: Again | None = None, beat: float = 0.0) -> AsyncGenerator[Event | None]:
        """The events of a turn, from LetterTaken to AnswerGiven; None whenever nothing has come for `beat` seconds.
        Whoever asks for more after the last has given it. Raises what `answering` raises.
        """
        ...

    async def post(self, inbound: Inbound) -> Receipt:
        """Commit a letter and wake nobody yet; `answer` or `watch` goes on with it."""
        ...

    def models(self) -> list[str]: ...

    async def find_model(self, name: str) -> str:
        """Raises ModelMissing."""
        ...

    async def enclose(self, name: str, data: bytes, owner: str) -> Part:
        """Raises MailRefused."""
        ...

    async def fetch(self, url: str, limit: int) -> bytes:
        """Raises MailRefused."""
        ...
