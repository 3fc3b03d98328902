"""A clock that stands until a test moves it."""

import asyncio
import time


class StandingClock:
    def __init__(self) -> None:
        self.time = time.time()

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
