"""A channel with reactions, on which what was sent can be changed."""

import asyncio

from everloop.core.mail import Address, Outbound, ReplyTo
from everloop.ports import Deliver
from everloop.ports.channel import Manifest, Rendered, Traits
from everloop.testing import RecordingChannel


class Board(RecordingChannel):
    """With `error` its platform refuses all of that."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__("board")
        self.done: list[tuple[str, ...]] = []
        self.listens: asyncio.Queue[Deliver] = asyncio.Queue()
        self._error = error

    @property
    def manifest(self) -> Manifest:
        return Manifest("board", Traits(once=True, edits=True))

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.listens.put_nowait(deliver)

    def render(self, outbound: Outbound) -> tuple[Rendered, ...]:
        return tuple(Rendered(f"<{page}>", page) for page in outbound.text.split("\f"))

    async def react(self, address: Address, to: ReplyTo, emoji: str) -> None:
        self._do("react", to, emoji)

    async def replace(self, address: Address, sent: str, text: Rendered) -> None:
        self._do("replace", sent.rpartition("-reply:")[2].partition(":")[2], text.text, text.plain)

    async def withdraw(self, address: Address, sent: str) -> None:
        self._do("withdraw", sent.rpartition("-reply:")[2].partition(":")[2])

    def _do(self, *what: str) -> None:
        if self._error:
            raise self._error
        self.done.append(what)
