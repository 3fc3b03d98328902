"""The end of a process that a test has begun, which comes whatever it has begun itself.

asyncio waits for a process until nobody holds its pipes, even for one that was killed: a child of its own that outlives
it, or what it said and nobody has read, would have a test wait for ever. After a failure nobody counts the seconds.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import psutil

PATIENCE = 60.0  # seconds; a runner to whom nobody came leaves after thirty


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


def belonging_to(folder: Path) -> dict[int, str]:
    """The processes in whose command lines it is named, but for this one."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in words and int(pid) != os.getpid():
                found[int(pid)] = words
    return found


async def see_none_left(folder: Path) -> None:
    """Nobody tells what becomes of others' processes, so this looks. Raises AssertionError with who is still there."""
    try:
        async with asyncio.timeout(PATIENCE):
            while belonging_to(folder):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"still there: {belonging_to(folder)}") from None
