"""How many go on side by side. Who finds no room waits, in the order in which they came."""

import asyncio
from collections import deque


class Cap:
    """Use as `async with cap:`. As asyncio.Semaphore, which takes seven calls where nobody has to wait, and every turn
    passes here."""

    def __init__(self, room: int) -> None:
        self._room = room  # that is left
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self._room:
            self._room -= 1
        else:
            await self._wait()

    async def __aexit__(self, *error: object) -> None:
        if self._waiting:
            self._leave()
        else:
            self._room += 1

    async def _wait(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # it was let in, and does not come any more
                self._leave()
            raise

    def _leave(self) -> None:
        """Whoever has waited longest comes in, so that nobody who comes now is quicker."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                return
        self._room += 1
