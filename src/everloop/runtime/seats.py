"""How many tasks are worked at side by side: so many for each person, and so many in all. Who finds no seat waits in
the order in which they came, and holds nothing meanwhile but a letter in an inbox."""

import asyncio
from collections import Counter
from collections.abc import Callable

from msgspec import Struct


class SeatCaps(Struct, frozen=True):
    """For each person, and for all of them together."""

    per_person: int = 5
    house: int = 20


class Seats:
    def __init__(self, caps: Callable[[], SeatCaps] = SeatCaps) -> None:
        self._caps = caps
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, tuple[str, asyncio.Future[bool]]] = {}  # by thread, with its owner
        self._closed = False

    @property
    def queued(self) -> int:
        return len(self._waiting)

    async def take(self, thread: str, owner: str) -> bool:
        """Wait for a seat; False when none is to be had, or none is needed any more. Who has one gives it back."""
        if self._closed:
            return False
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[thread] = owner, future
        self._fill()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.result():
                self.give_back(owner)
            raise
        finally:
            self._waiting.pop(thread, None)

    def give_back(self, owner: str) -> None:
        self._taken[owner] -= 1
        if not self._taken[owner]:
            del self._taken[owner]
        self._fill()

    def let_pass(self, thread: str) -> None:
        """It is to end, for which it needs no seat."""
        if thread in self._waiting and not self._waiting[thread][1].done():
            self._waiting[thread][1].set_result(False)

    def close(self) -> None:
        """Nobody waits here any longer."""
        self._closed = True
        for thread in [*self._waiting]:
            self.let_pass(thread)

    def _fill(self) -> None:
        caps = self._caps()
        for owner, future in self._waiting.values():
            if self._taken.total() >= caps.house:
                return
            if not future.done() and self._taken[owner] < caps.per_person:
                self._taken[owner] += 1
                future.set_result(True)
