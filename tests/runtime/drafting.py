"""A channel that shows drafts, and knows what people see of them and of what is sent."""

import asyncio

from everloop.core.mail import Address
from everloop.errors import ChannelDown
from everloop.ports import Deliver
from everloop.ports.channel import Incoming, Manifest, OutgoingPart, Traits
from everloop.testing import RecordingChannel
from everloop.testing.script import Tally


def incoming(event: str, **more) -> Incoming:
    return Incoming(**{"event": event, "chat": "room", "account": "anna", "text": "hi", **more})


class Drafting(RecordingChannel):
    def __init__(self, *, once: bool = True, preview: float = 0.01) -> None:
        super().__init__("fake", once=once)
        self.listens: asyncio.Queue[Deliver] = asyncio.Queue()
        self.drafts: list[tuple[str, str]] = []  # each call of preview
        self.replies: list[str] = []  # to which letter each was
        self.parts: list[OutgoingPart] = []
        self.visible: dict[str, str] = {}
        self.signals: list[str] = []
        self.refused: list[float | None] = []  # what the next previews are refused with
        self.called = Tally()
        self._preview = preview

    @property
    def manifest(self) -> Manifest:
        return Manifest("fake", Traits(once=self.once, preview=self._preview, typing=60.0))

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.listens.put_nowait(deliver)

    async def preview(self, address: Address, shown: str, text: str, reply_to: str) -> str:
        self.drafts.append((shown, text))
        self.replies.append(reply_to)
        self.called.add()
        if self.refused:
            raise ChannelDown("too many drafts", self.refused.pop(0))
        draft = shown or f"draft {len(self.drafts)}"
        self.visible[draft] = text
        if not text:
            del self.visible[draft]
        return draft

    async def signal(self, address: Address, what: str, reply_to: str) -> None:
        self.signals.append(what)

    async def send(self, part: OutgoingPart) -> str:
        self.parts.append(part)
        receipt = await super().send(part)
        self.visible.pop(part.draft, None)
        self.visible[part.draft or receipt] = part.text
        return receipt

    async def until(self, text: str) -> None:
        """Wait until a draft says so."""
        async with asyncio.timeout(30):
            while (self.drafts or [("", "")])[-1][1] != text:
                await self.called.reached(self.called.count + 1)
