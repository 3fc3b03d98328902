"""Work in a thread that nobody leaves behind."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def to_its_end(work: Callable[[], Result], stop: Callable[[], None] = lambda: None) -> Result:
    """In a thread, which goes on when nobody waits for it any more: so it is told to stop, and is waited for."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop()
        await asyncio.wait({running})
        raise
