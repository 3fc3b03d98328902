"""What a channel shows while a turn runs: that somebody is typing, and drafts of the answer.

All of it is advisory. What fails is not tried again in that turn, and the answer itself leaves through the outbox.
"""

import asyncio
import logging
from collections import OrderedDict
from contextlib import suppress

from ..core.mail import Address, ReplyTo
from ..ports import Channel, Previews, Signals
from ..ports.events import AnswerBegan, AnswerPiece, Event, PermissionAsked, TurnBegan, TurnEnded
from .strangers import contained

_log = logging.getLogger("everloop.channels")

SECONDS = 10.0  # for one call
REMEMBERED = 10_000  # threads


class _Turn:
    def __init__(self, address: Address, reply_to: ReplyTo) -> None:
        self.address = address
        self.reply_to = reply_to
        self.draft = ""
        self.over = asyncio.Event()


class Live:
    """Shows on one channel what happens in the conversations that it has heard of."""

    def __init__(self, channel: Channel) -> None:
        traits = channel.manifest.traits
        self._name = channel.manifest.name
        self._signals = channel if isinstance(channel, Signals) and traits.typing else None
        self._previews = channel if isinstance(channel, Previews) and traits.preview else None
        wanted = [(self._signals, traits.typing), (self._previews, traits.preview)]
        self._period = min((seconds for method, seconds in wanted if method), default=0.0)
        self._typing = traits.typing
        self._places: OrderedDict[str, tuple[Address, ReplyTo]] = OrderedDict()  # by thread
        self._turns: dict[str, _Turn] = {}

    def note(self, thread: str, address: Address, reply_to: ReplyTo) -> None:
        """A letter has come in."""
        if self._period:
            self._places[thread] = address, reply_to
            self._places.move_to_end(thread)
            while len(self._places) > REMEMBERED:
                self._places.popitem(last=False)

    def hear(self, event: Event, group: asyncio.TaskGroup) -> None:
        turn = self._turns.get(event.thread)
        match event:
            case TurnBegan() if turn is None and (place := self._places.get(event.thread)):
                self._turns[event.thread] = turn = _Turn(*place)
                group.create_task(self._show(turn))
            case AnswerBegan() if turn:
                turn.draft = ""
            case AnswerPiece(text=text) if turn:
                turn.draft += text
            case TurnEnded() | PermissionAsked() if turn:
                turn.over.set()
                del self._turns[event.thread]

    async def _show(self, turn: _Turn) -> None:
        try:
            with contained():
                await self._until_over(turn)
        except Exception as error:  # the border to a channel's own code
            _log.info("%s shows no more of this turn: %s: %s", self._name, type(error).__name__, error)

    async def _until_over(self, turn: _Turn) -> None:
        loop = asyncio.get_running_loop()
        shown, told, typed = "", "", -self._typing
        while not turn.over.is_set():
            if self._signals and loop.time() - typed >= self._typing:
                typed = loop.time()
                async with asyncio.timeout(SECONDS):
                    await self._signals.signal(turn.address, "typing", turn.reply_to)
            if self._previews and turn.draft and turn.draft != told:
                told = turn.draft
                async with asyncio.timeout(SECONDS):
                    shown = await self._previews.preview(turn.address, shown, told, turn.reply_to)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._period):
                    await turn.over.wait()
        async with asyncio.timeout(SECONDS):
            if self._previews and shown:
                await self._previews.preview(turn.address, shown, "", turn.reply_to)
            if self._signals:
                await self._signals.signal(turn.address, "done", turn.reply_to)
