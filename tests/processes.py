"""The end of a process that a test has begun, which comes whatever it has begun itself.

asyncio waits for a process until nobody holds its pipes, even for one that was killed: a child of its own that outlives
it, or what it said and nobody has read, would have a test wait for ever. After a failure nobody counts the seconds.
"""

import asyncio
from contextlib import suppress

import psutil


async def kill(process: asyncio.subprocess.Process) -> None:
    """With all that it has begun. What it has said is lost."""
    for each in _family(process):
        with suppress(psutil.NoSuchProcess):
            each.kill()
    transport = process._transport  # type: ignore[attr-defined]  # to close that whole would take its status away
    for pipe in filter(None, map(transport.get_pipe_transport, range(3))):
        pipe.close()
    await process.wait()


def _family(process: asyncio.subprocess.Process) -> list[psutil.Process]:
    if process.returncode is not None:
        return []  # its number may be somebody else's by now
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(process.pid)
        return [*parent.children(recursive=True), parent]
    return []
