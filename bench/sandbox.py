"""What the sandbox costs a command, beside a plain subprocess: `python bench/sandbox.py [COUNT]`.

Both are measured in turns, in one run. The bar is 10 ms more. On a busy machine look at the lowest tenth.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from everloop.core.tool import CallContext
from everloop.tools.sandbox.choose import choose_way
from everloop.tools.sandbox.commands import Commands
from everloop.tools.sandbox.port import Job, View
from everloop.tools.sandbox.view import environment

ARGV = ("/bin/sh", "-c", "echo hello")
HOMES = Path(__file__).parent / ".homes"  # on the disk, for /tmp may be memory, where nothing has to be synced
BAR = 10.0


async def plain(folder: Path) -> None:
    process = await asyncio.create_subprocess_exec(*ARGV, stdout=asyncio.subprocess.PIPE, cwd=folder)
    out, _ = await process.communicate()
    assert out == b"hello\n"


async def timed(do: Callable[[], Awaitable[None]]) -> float:
    before = time.perf_counter()
    await do()
    return (time.perf_counter() - before) * 1000


async def main(count: int) -> None:
    HOMES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOMES) as home:
        workspace = Path(home, "workspace")
        os.mkdir(workspace)
        way = await choose_way()
        commands = Commands(Path(home, "spool"))
        job = Job(ARGV, View(workspace), workspace, environment(os.environ))
        answers = iter(range(1, 10**6))

        async def confined() -> None:
            context = CallContext(f"t:{next(answers)}:0", "t", "cli:direct", "ann")
            assert (await commands.run(context, job)).output == "hello\n"

        first = await timed(confined)
        times = [(await timed(lambda: plain(workspace)), await timed(confined)) for _ in range(count)]
        await commands.close()
    bare, walled = (sorted(column) for column in zip(*times, strict=True))
    print(f"confined by {way.name}; the first command, with the start of the runner: {first:.1f} ms")
    for name, pick in (("median", statistics.median), ("lowest tenth", lambda row: row[len(row) // 10])):
        more = pick(walled) - pick(bare)
        print(f"{name}: plain {pick(bare):.1f} ms, confined {pick(walled):.1f} ms: {more:.1f} ms more (bar {BAR:g})")


asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
