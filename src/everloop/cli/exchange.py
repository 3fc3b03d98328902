"""What was said at the prompt, what comes of it, and what is said while that comes.

Each message has a stream of its own from the moment it is said, so that none is lost and each is answered. They are
shown one after the other: what a stream tells of a turn that was shown already is passed over.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from ..errors import MailRefused, TurnFailed
from ..ports.events import AnswerGiven, Event, TurnBegan, TurnEnded, TurnMoved

Say = Callable[[str], AsyncIterator[Event]]
Fail = Callable[[MailRefused | TurnFailed], None]


class ChatTurn:
    """`await run(line)` at the prompt; `add` what is typed meanwhile. `turn_to` is told which of these is answered by a
    turn of its own, `fail` of what ends without an answer."""

    def __init__(self, say: Say, show: Callable[[Event], None], turn_to: Callable[[str], None], fail: Fail) -> None:
        self._say = say
        self._turn_to = turn_to
        self._show = show
        self._fail = fail
        self._messages: deque[_BufferedEvents] = deque()
        self._ended = 0  # the entry that ended the last turn that was shown
        self._turn = ""  # and its name

    async def run(self, line: str) -> None:
        self.add(line)
        await self._run()

    async def go_on_with(self, events: AsyncIterator[Event]) -> None:
        """As `run`, with what is said of a message from before."""
        self._messages.append(_BufferedEvents("", events))
        await self._run()

    async def show_added(self) -> None:
        """What comes of messages that were added when all before them were shown."""
        await self._run()

    async def _run(self) -> None:
        try:
            while self._messages:
                await self._follow(self._messages.popleft())
        finally:
            for message in self._messages:
                await message.leave()

    def add(self, line: str) -> None:
        self._messages.append(_BufferedEvents(line, self._say(line)))

    async def _follow(self, message: "_BufferedEvents") -> None:
        anew = not self._ended  # whether it tells of something that was not shown
        try:
            async for event in message:
                if isinstance(event, AnswerGiven):
                    anew = anew or event.answer.turn != self._turn
                    self._turn = event.answer.turn
                if not anew and event.seq > self._ended and not isinstance(event, TurnBegan):
                    anew = True
                    self._turn_to(message.line)
                if anew:
                    self._show(event)
                if anew and isinstance(event, TurnEnded):
                    self._ended = event.seq
                if isinstance(event, TurnMoved) and event.number:
                    return  # it is told when it is done
        except (TurnFailed, MailRefused) as error:
            if anew or isinstance(error, MailRefused):
                self._fail(error)
        finally:
            await message.leave()


class _BufferedEvents:
    """The events of a message, taken as they come, whether or not anybody looks yet."""

    def __init__(self, line: str, events: AsyncIterator[Event]) -> None:
        self.line = line
        self._coming: asyncio.Queue[Event | None] = asyncio.Queue()
        self._goes_on = asyncio.Event()  # set when someone has shown the answer, and comes back for more
        self._is_given = False
        self._taking = asyncio.ensure_future(self._take(events))

    def __aiter__(self) -> "_BufferedEvents":
        return self

    async def __anext__(self) -> Event:
        """Raises what the stream has raised, after what came before."""
        if self._is_given:
            self._goes_on.set()
        if (event := await self._coming.get()) is None:
            await self._taking
            raise StopAsyncIteration
        self._is_given = isinstance(event, AnswerGiven)
        return event

    async def leave(self) -> None:
        self._taking.cancel()
        await asyncio.wait({self._taking})
        if not self._taking.cancelled():
            self._taking.exception()  # which was raised already, or belongs to a message that nobody waits for any more

    async def _take(self, events: AsyncIterator[Event]) -> None:
        try:
            async for event in events:
                self._coming.put_nowait(event)
                if isinstance(event, AnswerGiven):
                    await self._goes_on.wait()
        finally:
            self._coming.put_nowait(None)
