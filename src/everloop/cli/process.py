"""How a process of our own runs its event loop; whoever embeds everloop has a loop, and a collector, already."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run on uvloop where there is one, with a collector that looks less often and not at what was loaded so far.

    Hundreds of turns at once are thousands of coroutines that are all still needed: looking at them again and again
    costs a fifth of the time.
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
