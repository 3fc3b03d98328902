"""What the doors that take letters over HTTP need of the house. `everloop.Agent` is one."""

from collections.abc import AsyncGenerator
from typing import Protocol

from ..core.mail import Inbound
from ..core.message import Made, Part
from ..core.ports import Event, Store
from ..core.prompt import Finish, Usage
from ..core.rows import Receipt
from ..core.tool import ToolCall


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

    async def answer(self, inbound: Inbound) -> Answer:
        """Raises TurnFailed, MailRefused, StoreError."""
        ...

    def watch(self, inbound: Inbound) -> AsyncGenerator[Event]:
        """The events of a turn: the first is named `taken`, with the number of the letter as `mail`; the last `answer`.

        Raises what `answer` raises.
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
