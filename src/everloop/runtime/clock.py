"""The time of this machine, as processes are handed it."""

import asyncio
import time


class SystemClock:
    """The Clock that everything goes by where no other is handed over."""

    now = staticmethod(time.time)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


MACHINE = SystemClock()
