"""What the doors that take letters over HTTP need of the house. `everloop.Agent` is one."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ..core.mail import Inbound
from ..core.message import Made, Part
from ..core.ports import Event, Store
from ..core.prompt import Finish, Usage
from ..core.rows import Receipt
from ..core.tool import ToolCall

Again = Callable[[], Awaitable[Inbound | None]]


class Answer(Protocol):
    """What came of a letter. `turn` is `thread:seq`, or empty when a command was answered at once."""

    @property
    def content(self) -> str: ...
    @property
    def session(self) -> str: ...
    @property
    def turn(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def usage(self) -> Usage: ...
    @property
    def finish(self) -> Finish: ...
    @property
    def calls(self) -> tuple[ToolCall, ...]: ...
    @property
    def files(self) -> tuple[Made, ...]: ...
    @property
    def unknown(self) -> tuple[str, ...]: ...
    @property
    def told(self) -> str:
        """The content, and what nobody knows of what was done."""
        ...


class Desk(Protocol):
    @property
    def store(self) -> Store: ...

    def answering(self, inbound: Inbound, again: Again | None = None) -> AbstractAsyncContextManager[Answer]:
        """The answer; it counts as given when the block ends well. `again` is asked when this letter has come before:
        for another letter in its place, or None to go on with that one. Raises TurnFailed, MailRefused, StoreError.
        """
        ...

    def watch(self, inbound: Inbound, again: Again | None = None) -> AsyncGenerator[Event]:
        """The events of a turn: the first is named `taken`, with the number of the letter as `mail`; the last `answer`.
        Whoever asks for more after that has given it. Raises what `answering` raises.
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
