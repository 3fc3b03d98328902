"""What a channel shows while a turn runs: that somebody is typing, and drafts of the answer.

All of it is advisory, and no turn waits for it. The answer itself leaves through the outbox, which asks here for the
draft that is to become it. A draft that becomes no answer is taken away.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from ..core.mail import Address, ReplyTo, reply_key
from ..core.turn import Finished
from ..errors import ChannelDown
from ..ports import Channel, Previews, Signals
from ..ports.events import AnswerBegan, Event, PermissionAsked, TurnBegan, TurnEnded, TurnMoved
from ..ports.rows import OutboxRow, OutboxState, Receipt
from .sketch import Sketch
from .strangers import contained

_log = logging.getLogger("everloop.channels")

SECONDS = 10.0  # for one call
FAREWELL = 2.0  # for the one that takes a draft away as the process ends
REMEMBERED = 10_000  # threads
LETTERS = 20  # of each
IN_FLIGHT = 3.0  # seconds that an answer waits for the call that shows its draft
UNCLAIMED = 60.0  # seconds for which a draft waits for its answer to be sent
CLAIMED = 900.0  # and after each attempt to send it


class _Turn:
    """What is shown of one turn. `key` is that of its answer, once there is one; `shown` is what the channel calls the
    draft."""

    def __init__(self, began: int, address: Address, reply_to: ReplyTo, sketch: Sketch) -> None:
        self.began = began
        self.address = address
        self.reply_to = reply_to
        self.sketch = sketch
        self.news = asyncio.Event()
        self.over = asyncio.Event()
        self.key = ""
        self.shown = ""
        self.settled = asyncio.Event()  # no call is in flight any more
        self.is_given = False  # to the outbox
        self.may_be_answer = False
        self.until = 0.0  # when it is taken away if nobody has used it
        self.answered = asyncio.Event()
        self.receipt = ""  # of the answer

    def stays(self, now: float) -> bool:
        """Whether what is shown is the answer by now, or may be, or is about to be. A channel may have found a draft
        itself whose call nobody had heard the end of."""
        is_answer = bool(self.receipt) and self.receipt == self.shown
        return is_answer or self.may_be_answer or (self.is_given and (self.answered.is_set() or now < self.until))


class _ChatPlace:
    """Where a conversation takes place, and how its last letters are replied to. An answer is to the last letter of its
    turn: others may have come meanwhile."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.letters: dict[int, ReplyTo] = {}
        self.reply_to = ReplyTo("")

    def is_told_of(self, mails: Sequence[int]) -> bool:
        """Whether a turn that answers these letters can be shown here, as a reply to the last of them. One that another
        process has begun may have a draft there already, which only the answer finds."""
        known = [self.letters[mail] for mail in mails if mail in self.letters]
        self.reply_to = known[-1] if known else ReplyTo("")
        return bool(known) or not mails


class Live:
    """Shows on one channel what happens in the conversations that it has heard of; the Drafts of its outbox."""

    def __init__(self, channel: Channel, *, progress: bool = False, reasoning: bool = False) -> None:
        """With `progress` drafts tell which tools are called, with `reasoning` what the model thinks."""
        traits = channel.manifest.traits
        self._name = channel.manifest.name
        self._signals = channel if isinstance(channel, Signals) and traits.typing else None
        self._previews = channel if isinstance(channel, Previews) and traits.preview else None
        self._traits = traits
        self._progress = progress
        self._reasoning = reasoning
        self._places: OrderedDict[str, _ChatPlace] = OrderedDict()  # by thread
        self._turns: dict[str, _Turn] = {}  # that run, by thread
        self._asking: dict[str, int] = {}  # where those began that wait for a person
        self._ended: dict[str, _Turn] = {}  # that have a draft for an answer, by its key

    def note(self, letter: Receipt, address: Address, reply_to: ReplyTo) -> None:
        """A letter has come in."""
        if self._signals or self._previews:
            place = self._places.setdefault(letter.thread, _ChatPlace(address))
            place.letters[letter.id] = reply_to
            while len(place.letters) > LETTERS:
                del place.letters[next(iter(place.letters))]
            self._places.move_to_end(letter.thread)
            while len(self._places) > REMEMBERED:
                self._asking.pop(self._places.popitem(last=False)[0], None)

    def hear(self, event: Event, group: asyncio.TaskGroup) -> None:
        if event.thread not in self._places:
            return
        turn = self._turns.get(event.thread)
        if turn:
            self._hear_running(event, turn)
        elif isinstance(event, TurnBegan) and self._places[event.thread].is_told_of(event.mails):
            self._begin(event.thread, event.turn, group)
        elif isinstance(event, AnswerBegan) and event.thread in self._asking:  # a person has answered
            self._begin(event.thread, self._asking[event.thread], group)
        elif isinstance(event, TurnMoved) and not event.number and event.mails:
            self._asking[event.thread] = 0  # its next answer is shown again
        elif isinstance(event, TurnEnded):
            self._asking.pop(event.thread, None)

    def _hear_running(self, event: Event, turn: _Turn) -> None:
        if isinstance(event, PermissionAsked):
            self._end(event.thread, turn)
            self._asking[event.thread] = turn.began
        elif isinstance(event, TurnMoved) and event.number:  # what it says now is told when it is done
            self._end(event.thread, turn)
        elif isinstance(event, TurnEnded):
            self._asking.pop(event.thread, None)
            self._end(event.thread, turn, _answer_of(event.thread, event.finished))
        turn.sketch.hear(event)
        turn.news.set()

    def _begin(self, thread: str, began: int, group: asyncio.TaskGroup) -> None:
        sketch = Sketch(progress=self._progress, reasoning=self._reasoning)
        place = self._places[thread]
        self._turns[thread] = turn = _Turn(began, place.address, place.reply_to, sketch)
        group.create_task(self._show(thread, turn))

    def _end(self, thread: str, turn: _Turn, key: str = "") -> None:
        """With the key of its answer the draft is kept for that."""
        turn.key, turn.until = key, asyncio.get_running_loop().time() + UNCLAIMED
        if key and self._previews:
            self._ended[key] = turn
        turn.over.set()
        turn.news.set()
        del self._turns[thread]

    async def claim(self, row: OutboxRow) -> str:
        turn = self._ended.get(row.outbound.key) or self._end_early(row)
        if turn is None:
            return ""
        turn.until = asyncio.get_running_loop().time() + CLAIMED
        try:
            async with asyncio.timeout(IN_FLIGHT):
                await turn.settled.wait()
        except TimeoutError:
            return ""
        turn.is_given = bool(turn.shown)
        return turn.shown

    def _end_early(self, row: OutboxRow) -> _Turn | None:
        """An answer can be claimed before we are told that its turn has ended."""
        turn, key = self._turns.get(row.thread), row.outbound.key
        seq = key.removeprefix(reply_key(row.thread, 0).removesuffix("0"))
        if turn is None or not seq.isdecimal() or int(seq) <= turn.began:
            return None
        self._end(row.thread, turn, key)
        return turn

    def settle(self, key: str, state: OutboxState, receipt: str = "") -> None:
        turn = self._ended.get(key)
        if turn is None or turn.answered.is_set():
            return
        turn.receipt = receipt
        turn.may_be_answer |= state == "unsure" and turn.is_given
        if state in ("sent", "failed"):
            turn.is_given &= state == "sent"
            turn.answered.set()

    async def _show(self, thread: str, turn: _Turn) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep_typing(turn))
                await self._keep_drafting(turn)
                turn.settled.set()
            await self._wait_for_answer(turn)
        finally:
            turn.settled.set()
            self._ended.pop(turn.key, None)
            if self._turns.get(thread) is turn:
                del self._turns[thread]
            if turn.shown and not turn.stays(asyncio.get_running_loop().time()):
                await self._take_away(turn, SECONDS if turn.over.is_set() else FAREWELL)

    async def _keep_typing(self, turn: _Turn) -> None:
        if (signals := self._signals) is None:
            return

        async def say_typing() -> None:
            await signals.signal(turn.address, "typing", turn.reply_to)

        while not turn.over.is_set():
            if (wait := await self._try(say_typing, self._traits.typing)) is None:
                return
            await _first_of(turn.over, wait)
        await self._try(lambda: signals.signal(turn.address, "done", turn.reply_to), 0.0)

    async def _keep_drafting(self, turn: _Turn) -> None:
        """One call at a time, no more often than the platform wants."""
        told = ""

        async def show() -> None:
            assert self._previews is not None
            turn.shown = await self._previews.preview(turn.address, turn.shown, told, turn.reply_to)

        while self._previews and not turn.over.is_set():
            turn.news.clear()
            wait: float | None = 0.0
            if (text := turn.sketch.text) and text != told:
                told = text
                wait = await self._try(show, self._traits.preview)
            if wait is None:
                return
            await _first_of(turn.over, wait)
            await turn.news.wait()

    async def _try(self, call: Callable[[], Awaitable[None]], pause: float, seconds: float = SECONDS) -> float | None:
        """Returns how long to wait before the next call; None: it is not tried again in this turn."""
        try:
            async with asyncio.timeout(seconds):
                with contained():
                    await call()
        except ChannelDown as error:
            if error.retry_after is not None:
                return max(pause, error.retry_after)
            self._explain(error)
            return None
        except Exception as error:  # the border to a channel's own code
            self._explain(error)
            return None
        return pause

    def _explain(self, error: Exception) -> None:
        _log.info("%s shows no more of this turn: %s: %s", self._name, type(error).__name__, error)

    async def _wait_for_answer(self, turn: _Turn) -> None:
        """Until the answer has been sent, or nobody seems to send it."""
        loop = asyncio.get_running_loop()
        while turn.key and turn.shown and not turn.answered.is_set() and (left := turn.until - loop.time()) > 0:
            await _first_of(turn.answered, left)

    async def _take_away(self, turn: _Turn, seconds: float) -> None:
        previews = self._previews
        assert previews is not None

        async def take() -> None:
            await previews.preview(turn.address, turn.shown, "", turn.reply_to)

        await self._try(take, 0.0, seconds)


def _answer_of(thread: str, finished: Finished) -> str:
    """The key of the answer that a turn has ended with; "": there is none."""
    told = finished.text is not None or finished.cut or finished.unknown
    return reply_key(thread, finished.seq) if told and finished.address else ""


async def _first_of(event: asyncio.Event, seconds: float) -> None:
    """Wait for it, but no longer than so."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
