"""What the sandbox costs a command, beside a bare subprocess, and what tools cost that nobody uses.

    python bench/sandbox.py [COUNT]

All ways are measured in turns, in one run. The bar is 10 ms more than the bare one. On a busy machine look at the
lowest tenth, or at the least.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from everloop.net.proxy import Proxy
from everloop.ports.tools import CallContext
from everloop.tools.sandbox.choose import Confinement, Landlock, choose_way
from everloop.tools.sandbox.commands import SandboxedCommands
from everloop.tools.sandbox.landlock import NEEDED, version
from everloop.tools.sandbox.outlet import Outlet
from everloop.tools.sandbox.port import CommandSpec, CommandView
from everloop.tools.sandbox.view import environment

ARGV = ("/bin/sh", "-c", "echo hello")
HOSTS = ("example.org",)  # which nobody asks for anything
HOMES = Path(__file__).parent / ".homes"  # on the disk, for /tmp may be memory, where nothing has to be synced
BAR = 10.0
START = """
import sys, time, types
names = ("PEOPLE", "Kits", "Toolset", "check_workspace", "build_tools", "sandbox_of")
sys.modules["everloop.app.tools"] = types.SimpleNamespace(**dict.fromkeys(names))
import everloop.app  # and all that it loads but the tools
from pathlib import Path
from everloop.bus.local import LocalBus
from everloop.files.folder import Folder
from everloop.settings import Settings
del sys.modules["everloop.app.tools"]
begun = time.process_time()
from everloop.app.tools import build_tools
build_tools(Path("home"), Path("home/workspace"), Settings(), Folder(Path("home/files")), LocalBus(), 8000)
print((time.process_time() - begun) * 1000)
"""

Do = Callable[[], Awaitable[None]]


class Confined:
    """Commands in one way of confining, each a call of its own."""

    def __init__(self, home: Path, way: Confinement, hosts: tuple[str, ...] = ()) -> None:
        async def choose() -> Confinement:
            return way

        outlet = Outlet(Proxy(hosts).serve) if hosts else None
        self.commands = SandboxedCommands(home / "spool", choose, outlet=outlet)
        self._job = CommandSpec(
            ARGV, CommandView(home / "workspace", network=hosts), home / "workspace", environment(os.environ)
        )
        self._answers = 0

    async def run(self) -> None:
        self._answers += 1
        context = CallContext(f"{id(self)}:{self._answers}:0", f"{id(self)}", "cli:direct", "ann")
        outcome = await self.commands.run(context, self._job)
        assert outcome.output == "hello\n", outcome


async def bare() -> None:
    process = await asyncio.create_subprocess_exec(*ARGV, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert out == b"hello\n"


async def timed(do: Do) -> float:
    before = time.perf_counter()
    await do()
    return (time.perf_counter() - before) * 1000


async def main(count: int) -> None:
    HOMES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOMES) as home:
        os.mkdir(Path(home, "workspace"))
        way = await choose_way()
        rows = {f"confined by {way.name}": Confined(Path(home), way)}
        if way.name == "bubblewrap":
            rows["confined, with hosts to reach"] = Confined(Path(home), way, HOSTS)
            if version() >= NEEDED:
                rows["confined by landlock"] = Confined(Path(home), Landlock())
        first = await timed(next(iter(rows.values())).run)
        print(f"the first command, with the start of the runner: {first:.1f} ms")
        does: list[Do] = [bare, *(row.run for row in rows.values())]
        times = [[await timed(do) for do in does] for _ in range(count)]
        for row in rows.values():
            await row.commands.close()
    report(["bare", *rows], [sorted(column) for column in zip(*times, strict=True)])


def report(names: list[str], columns: list[list[float]]) -> None:
    """Every row, and how much more it is than the first."""
    print(f"{'ms, and how many more':32}{'median':>16}{'lowest tenth':>16}{'least':>16}{'ratio':>8}")
    first = picked(columns[0])
    for name, column in zip(names, columns, strict=True):
        cells = [f"{value:.1f} (+{value - least:.1f})" for value, least in zip(picked(column), first, strict=True)]
        print(f"{name:32}{''.join(f'{cell:>16}' for cell in cells)}{picked(column)[1] / first[1]:>8.1f}")
    print(f"bar: {BAR:g} ms more; the ratio is that of the lowest tenths")


def picked(column: list[float]) -> tuple[float, float, float]:
    return statistics.median(column), column[len(column) // 10], column[0]


def at_start(code: str) -> float:
    """Milliseconds of CPU that a fresh interpreter says it took; the least of a few."""
    told = [subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True) for _ in range(8)]
    return min(float(each.stdout) for each in told)


asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
print(f"at start, to load and describe all the tools, of which none is used: {at_start(START):.1f} ms of CPU")
