"""The line at the bottom: who answers, what the conversation has used and cost, how full it is, what else goes on."""

import asyncio
from collections.abc import Callable

from ...app.agent import Agent
from ...core.mail import Choose
from ...core.people import OWNER, Role
from ...core.thread import Thread
from ...errors import StoreError
from ...ports.events import CallMeasured, Event
from ...ports.rows import SpentRow
from ...readings.visible import in_one_line
from ..cells import beginning
from ..cells import cells as width
from ..table import dollars

BETWEEN = " · "


class StatusLine:
    """`look` at the store when a turn is over; `follow` what comes meanwhile."""

    def __init__(self, agent: Agent, session: str, touch: Callable[[], None]) -> None:
        self._agent = agent
        self._session = session
        self._touch = touch
        self._model = agent.model
        self._thread = ""  # that the model has answered in, and that is so full
        self._tokens = 0
        self._cost = 0.0
        self._unpriced = False
        self._full = 0.0
        self._choice_shown: str | None = None  # whose model is shown
        self._tasks = 0
        self._budget = ""
        self._looking: asyncio.Task[None] | None = None

    def follow(self, event: Event) -> None:
        if isinstance(event, CallMeasured):
            self._model, self._full, self._thread = event.model, event.full, event.thread
            self._tokens += event.usage.input + event.usage.output
            self._cost += event.cost or 0.0
            self._unpriced = self._unpriced or event.cost is None

    def look_soon(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self.look())

    async def look(self) -> None:
        store = self._agent.store
        try:
            row = await store.session(self._session)
            rows = await self._spent(row.id) if row else []
            choice = await self._choice(row.id) if row else ""
            self._tasks = sum(task.is_open for task in await store.tasks(OWNER, under=row.id)) if row else 0
            lines = await self._agent.budgets.of(OWNER, Role.OWNER, row.id if row else "")
        except StoreError:  # of which the next turn tells
            return
        self._tokens = sum(each.usage.input + each.usage.output for each in rows)
        self._cost = sum(each.cost for each in rows)
        self._unpriced = any(each.unpriced for each in rows)
        if row is None or self._thread != row.id:  # here is another conversation now
            self._full, self._thread, self._choice_shown = 0.0, row.id if row else "", None
        if choice != self._choice_shown:
            self._model, self._choice_shown = self._agent.model_called(choice), choice
        self._budget = next(
            (
                f"{dollars(line.spent_money or 0.0)} of {dollars(line.money)} a {line.per}"
                for line in lines
                if line.money is not None
            ),
            "",
        )
        self._touch()

    async def _spent(self, thread: str) -> list[SpentRow]:
        """In it, before something was taken back, and where it branched off: with all that it stands for."""
        store = self._agent.store
        return [
            *await store.spent(thread=thread), *await store.taken_back(thread), *await store.inherited(thread)
        ]  # fmt: skip

    async def _choice(self, id: str) -> str:
        """The model that somebody has chosen for it; "" where nobody has."""
        opened = await self._agent.store.open(id)
        thread = Thread(id, opened.first - 1)
        thread.extend(opened.entries)
        waiting = [mail.letter.model for mail in opened.mail if isinstance(mail.letter, Choose)]
        return waiting[-1] if waiting else thread.choice

    async def close(self) -> None:
        if self._looking:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def text(self, cells: int) -> str:
        """The parts that have room in so many cells, those first that one looks at most."""
        used = f"{_short(self._tokens)} tokens" if self._tokens else ""
        cost = dollars(self._cost) if self._cost else ""
        full = f"{self._full:.0%} full" if self._full else ""
        tasks = f"{self._tasks} task{'s' if self._tasks > 1 else ''} running" if self._tasks else ""
        every = (in_one_line(self._model), used, cost, full, tasks, self._budget, in_one_line(self._session))
        parts = [*filter(None, every)]
        while len(parts) > 1 and width(BETWEEN.join(parts)) > cells:
            parts.pop()
        return beginning(BETWEEN.join(parts), cells)


def _short(count: int) -> str:
    return f"{count / 1000:.1f}k" if count >= 1000 else str(count)
