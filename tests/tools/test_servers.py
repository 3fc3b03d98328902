"""Servers in the sandbox: spoken with over pipes, held to limits, and gone with whoever holds them."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.effort import in_full
from tests.tools.servers_world import (
    STUBBORN,
    WAYS,
    held,
    job_in,
    pids_of,
    runner_of,
    see_all_up,
    see_them_gone,
    skip_without,
    stubborn_in,
    until,
    way_called,
)

from everloop.tools.sandbox.door import Door
from everloop.tools.sandbox.port import CommandLimits
from everloop.tools.sandbox.servers import SandboxedServers, ServerEnd

ECHO = "import sys\nfor line in sys.stdin: print('heard', line, end='', flush=True)"


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    skip_without(request.param)
    return str(request.param)


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[SandboxedServers]:
    made = SandboxedServers(tmp_path / "home" / "spool")
    yield made
    await made.close()
    await see_them_gone(tmp_path)


async def test_a_server_hears_and_answers_and_leaves_when_its_input_ends(
    servers: SandboxedServers, way: str, tmp_path: Path
):
    async with servers.open(job_in(tmp_path, ECHO), way_called(way)) as process:
        process.stdin.write(b"this\nand that\n")
        said = [await process.stdout.readline() for _ in range(2)]
        process.stdin.close()
        assert (said, await process.wait()) == ([b"heard this\n", b"heard and that\n"], ServerEnd("exited", 0))


async def test_what_it_says_on_stderr_comes_apart(servers: SandboxedServers, way: str, tmp_path: Path):
    script = "import sys; sys.stdout.write('out'); sys.stderr.write('err'); sys.exit(3)"
    async with servers.open(job_in(tmp_path, script), way_called(way)) as process:
        told = await process.stdout.read(), await process.stderr.read(), await process.wait()
    assert told == (b"out", b"err", ServerEnd("exited", 3))


async def test_a_server_that_does_not_leave_is_ended_with_all_that_it_began(
    servers: SandboxedServers, way: str, tmp_path: Path
):
    async with servers.open(job_in(tmp_path, STUBBORN), way_called(way)) as process:
        await see_all_up(tmp_path)
    assert (await process.wait(), stubborn_in(tmp_path)) == (ServerEnd("stopped", 128 + signal.SIGKILL), [])


async def test_a_task_that_is_cancelled_ends_its_server_at_once(servers: SandboxedServers, way: str, tmp_path: Path):
    """And leaves the loop as it was: descriptors that are closed are used again by the next."""
    for _ in range(3):

        async def hold() -> None:
            async with servers.open(job_in(tmp_path, STUBBORN), way_called(way)):
                await asyncio.Event().wait()

        task = asyncio.create_task(hold())
        await see_all_up(tmp_path)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await until(lambda: not stubborn_in(tmp_path))


async def test_what_is_left_by_a_server_that_ends_ends_too(servers: SandboxedServers, way: str, tmp_path: Path):
    script = STUBBORN.replace('print("up", flush=True)\nstay()', "input()\nos._exit(7)")
    async with servers.open(job_in(tmp_path, script), way_called(way)) as process:
        await see_all_up(tmp_path)
        process.stdin.write(b"go\n")
        assert (await process.wait(), stubborn_in(tmp_path)) == (ServerEnd("exited", 7), [])


async def test_who_speaks_faster_than_it_is_read_waits(servers: SandboxedServers, way: str, tmp_path: Path):
    """A million bytes fit nowhere between the two unless somebody reads them."""
    script = (
        "import os, threading, time\nwritten = 0\ndef write():\n  global written\n  while True: written += "
        "os.write(1, b'x' * 4096)\nthreading.Thread(target=write, daemon=True).start()\nlast = -1\n"
        "while last != written: last = written; time.sleep(1)\nos.write(2, str(written).encode()); os._exit(0)"
    )
    async with servers.open(job_in(tmp_path, script), way_called(way)) as process:
        process.stdout._transport.pause_reading()  # type: ignore[attr-defined]
        assert int(await process.stderr.read()) < 1_000_000


async def test_a_server_that_takes_too_much_memory_is_ended_for_that(
    servers: SandboxedServers, way: str, tmp_path: Path
):
    script = (
        "import os, time\nfor each in range(5):\n  if not os.fork(): kept = bytearray(os.urandom(1 << 20)) * 60; "
        "time.sleep(600)\ntime.sleep(600)"
    )
    limits = CommandLimits(seconds=0, memory=128 << 20)
    async with servers.open(job_in(tmp_path, script, limits), way_called(way)) as process:
        assert (await process.wait()).why == "memory"


async def test_a_server_that_starts_too_many_processes_is_ended_for_that(
    servers: SandboxedServers, way: str, tmp_path: Path
):
    script = (
        "import os, time\nfor each in range(60):\n  try:\n    if not os.fork(): time.sleep(600)\n"
        "  except OSError: pass\ntime.sleep(600)"
    )
    limits = CommandLimits(seconds=0, processes=20)
    async with servers.open(job_in(tmp_path, script, limits), way_called(way)) as process:
        assert (await process.wait()).why == "processes"


async def test_a_program_that_is_not_there_says_so_on_stderr(servers: SandboxedServers, way: str, tmp_path: Path):
    job = msgspec.structs.replace(job_in(tmp_path, ""), argv=("/usr/bin/nothing-here", str(tmp_path)))
    async with servers.open(job, way_called(way)) as process:
        assert b"nothing-here" in await process.stderr.read()
        assert (await process.wait()).code


@pytest.mark.shortened
@pytest.mark.timeout(1800)  # in full, on a busy machine
async def test_a_process_that_is_killed_leaves_nothing_of_its_servers(way: str, tmp_path: Path):
    """At any moment: while a server begins, runs or ends. The runner stays, as for commands that go on."""
    door, chance = Door(tmp_path / "home" / "spool"), random.Random(20)
    (await door.connect()).close()
    for _ in range(in_full(200, 5)):
        async with held(way, tmp_path) as holder:
            await asyncio.sleep(chance.uniform(0, 0.6))
            holder.kill()
        await see_them_gone(tmp_path)
    door.close()


@pytest.mark.shortened
@pytest.mark.timeout(1800)  # in full, on a busy machine
async def test_a_runner_that_is_killed_takes_the_servers_along(way: str, tmp_path: Path):
    chance = random.Random(21)
    for _ in range(in_full(50, 3)):
        async with held(way, tmp_path) as holder:
            await until(lambda: runner_of(tmp_path))
            await asyncio.sleep(chance.uniform(0, 0.6))
            await until(lambda: runner_of(tmp_path))  # the one of the round before may have left just now
            runner = runner_of(tmp_path)
            assert runner  # else what is killed is the group of this process
            before = {*pids_of(tmp_path)} - {holder.pid}
            os.kill(runner, signal.SIGKILL)
            await until(lambda old=before: not old & {*pids_of(tmp_path)})  # while whoever holds them lives
        await see_them_gone(tmp_path)


async def test_a_server_of_a_process_that_is_frozen_waits_and_ends_with_it(way: str, tmp_path: Path):
    async with held(way, tmp_path, once=True) as holder:
        await see_all_up(tmp_path)
        holder.send_signal(signal.SIGSTOP)
        before = stubborn_in(tmp_path)
        await asyncio.sleep(0.5)  # in which nobody should end it
        assert stubborn_in(tmp_path) == before
        holder.kill()
    await see_them_gone(tmp_path)


async def test_without_a_supervisor_daemons_would_outlive_their_server(tmp_path: Path):
    """The negative control: what these tests look for is found where nobody ends it."""
    process = await asyncio.create_subprocess_exec(*job_in(tmp_path, STUBBORN).argv, start_new_session=True)
    await see_all_up(tmp_path)
    os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
    left = stubborn_in(tmp_path)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    await see_them_gone(tmp_path)
    assert len(left) == 2
