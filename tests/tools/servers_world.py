"""Servers for the tests of the sandbox, some of which do all that they can to stay, and who is left of them."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from tests.processes import belonging_to

from everloop.tools.sandbox import landlock
from everloop.tools.sandbox.bwrap import Bubblewrap
from everloop.tools.sandbox.choose import Confinement, Landlock, Unconfined
from everloop.tools.sandbox.port import CommandLimits, CommandSpec, CommandView
from everloop.tools.sandbox.runner import NAME
from everloop.tools.sandbox.view import environment

WAYS = ("bwrap", "landlock", "none")
PYTHON = "/usr/bin/python3"
PATIENCE = 30.0
LIMITS = CommandLimits(seconds=0)

# A server with a child that has closed all, a daemon with a child in a session of its own, and none that listens to
# anything but the end.
STUBBORN = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
    signal.signal(number, signal.SIG_IGN)
def stay():
    while True:
        time.sleep(60)
if not os.fork():
    os.closerange(0, 3)
    stay()
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    if not os.fork():
        os.setsid()
        stay()
    stay()
print("up", flush=True)
stay()
"""


def way_called(name: str) -> Confinement:
    ways: dict[str, Confinement] = {"landlock": Landlock(), "none": Unconfined()}
    return ways.get(name) or Bubblewrap(shutil.which("bwrap") or "")


def skip_without(way: str) -> None:
    if way == "bwrap" and not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    if way == "landlock" and landlock.version() < landlock.NEEDED:
        pytest.skip("this kernel's Landlock is too old")
    if not Path(PYTHON).exists():
        pytest.skip("there is no Python of the system")


def job_in(base: Path, script: str, limits: CommandLimits = LIMITS) -> CommandSpec:
    """A server of a home in `base`, by whose path its processes are known."""
    data = base / "home" / "data"
    data.mkdir(parents=True, exist_ok=True)
    view = CommandView(data, hidden=(base / "home",))
    return CommandSpec((PYTHON, "-I", "-S", "-c", script, str(base)), view, data, environment({}), limits)


def left_of(base: Path) -> list[str]:
    """The command lines of all processes that belong to it, but for the one runner."""
    runner = runner_of(base)
    return [f"{pid} {words}" for pid, words in belonging_to(base).items() if pid != runner]


def pids_of(base: Path) -> list[int]:
    return [int(each.split()[0]) for each in left_of(base)]


def stubborn_in(base: Path) -> list[int]:
    """The processes of stubborn servers, without what stands above them."""
    return [int(each.split()[0]) for each in left_of(base) if each.split()[1] == PYTHON and "def stay" in each]


def runner_of(base: Path) -> int:
    """0 if there is none: the number of one that is gone may be somebody else's by now."""
    with suppress(OSError, ValueError):
        pid = int((base / "home" / "spool" / f"{NAME}.lock").read_text())
        if str(base) in Path(f"/proc/{pid}/cmdline").read_text():
            return pid
    return 0


async def see_them_gone(base: Path) -> None:
    """Raises AssertionError with who is still there."""
    try:
        await until(lambda: not left_of(base))
    except TimeoutError:
        raise AssertionError("still there:\n" + "\n".join(left_of(base))) from None


async def see_all_up(base: Path) -> None:
    """All four of a stubborn server, whose daemons begin in their own time."""
    await until(lambda: len(stubborn_in(base)) == 4)


async def until(it_is_so: Callable[[], object]) -> None:
    """Nobody tells what becomes of others' processes, so this looks. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE):
        while not it_is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@asynccontextmanager
async def held(
    way: str, base: Path, script: str = STUBBORN, once: bool = False
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that holds servers, which has said that it begins; with `once`, that one is up."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.tools.server_holder", way, str(base), script, "once" if once else ""),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"begun\n"
        if once:
            assert await process.stdout.readline() == b"up\n"
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
