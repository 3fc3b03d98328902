"""What a test has begun ends when it is killed, whoever holds its pipes."""

import asyncio
import sys

import psutil
import pytest

from tests.processes import kill

PIPE = asyncio.subprocess.PIPE
# Begins a child of its own, which outlives it, and tells its number; `session` is one of its own.
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
if sys.argv[1:] == ["leaves"]: raise SystemExit
time.sleep(600)
"""


async def begun(*arguments: str) -> tuple[asyncio.subprocess.Process, psutil.Process]:
    """Something that holds its parent's pipes, and that parent."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    assert process.stdout is not None
    return process, psutil.Process(int(await process.stdout.readline()))


async def test_it_ends_with_all_that_it_has_begun():
    process, child = await begun()
    await kill(process)
    assert process.returncode == -9
    child.wait()


async def test_killed_alone_it_is_waited_for_as_long_as_somebody_holds_its_pipes():
    process, child = await begun()
    process.kill()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(process.communicate(), 0.5)
    child.kill()
    await kill(process)


async def test_one_that_has_left_a_child_behind_is_not_waited_for():
    process, child = await begun("leaves")
    try:
        await kill(process)
        assert process.returncode in (0, -9)
    finally:
        child.kill()


async def test_one_that_said_more_than_anyone_has_read_is_not_waited_for():
    process = await asyncio.create_subprocess_exec("yes", stdin=PIPE, stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    await kill(process)
    assert process.returncode == -9


async def test_somebody_who_still_reads_from_it_reads_its_end():
    process, _ = await begun()
    assert process.stdout is not None
    reading = asyncio.ensure_future(process.stdout.readline())
    await asyncio.sleep(0)
    await kill(process)
    assert await reading == b""
