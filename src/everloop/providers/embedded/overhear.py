"""Brings what a thread says into the event loop, and the loop's loss of interest into the thread."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

Event = dict[str, Any]
Hear = Callable[[Event], bool]


@asynccontextmanager
async def overhear(thread: ThreadPoolExecutor, job: Callable[[Hear], None]) -> AsyncIterator[AsyncIterator[Event]]:
    """Run `job` in the thread; what it tells is read inside the block, and the job's error is raised at the end of it.

    Once the block is left, `hear` answers True, which asks the job to stop; nobody waits for it.
    """
    loop = asyncio.get_running_loop()
    left = threading.Event()
    queue: asyncio.Queue[Event | None] = asyncio.Queue()

    def hear(event: Event) -> bool:
        if not left.is_set():
            loop.call_soon_threadsafe(queue.put_nowait, event)
        return left.is_set()

    def end(future: "asyncio.Future[None]") -> None:
        if not future.cancelled():
            future.exception()  # when nobody waits any more, nobody need hear of it
        queue.put_nowait(None)

    async def events() -> AsyncIterator[Event]:
        while (event := await queue.get()) is not None:
            yield event
        await future

    future = loop.run_in_executor(thread, job, hear)
    future.add_done_callback(end)
    try:
        yield events()
    finally:
        left.set()
