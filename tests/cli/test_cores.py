"""A crash of the command leaves nothing of its memory behind."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tools.sandbox_helpers import run_once, world

from everloop.testing import Say
from everloop.testing.model_server import ModelServer
from everloop.tools.sandbox.runner import NAME

from .person import Person

UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
FILTER = "open('/proc/self/coredump_filter').read().strip()"
TELL = f"import resource; print(resource.getrlimit(resource.RLIMIT_CORE), {FILTER})"
BEGIN = "import sys; sys.argv = ['everloop', '--version']; from everloop.__main__ import main; main(); "
CRASH = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"


def let_cores_be_written() -> None:
    if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY and os.geteuid() != 0:
        pytest.skip("this user may have no core dumps at all")
    pattern = Path("/proc/sys/kernel/core_pattern")
    if not pattern.exists() or "/" in pattern.read_text() or pattern.read_text().startswith("|"):
        pytest.skip("core dumps of this machine are not written where the process runs")


def unlimited() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, UNLIMITED)


def run(code: str, folder: Path) -> str:
    argv = [sys.executable, "-c", code]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, preexec_fn=unlimited).stdout


def cores_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith("core")]


def test_a_command_that_crashes_leaves_no_core(tmp_path: Path) -> None:
    let_cores_be_written()
    run(BEGIN + CRASH, tmp_path)
    assert cores_in(tmp_path) == []
    run(CRASH, tmp_path)
    assert len(cores_in(tmp_path)) == 1  # negative control: any other does


async def test_a_gateway_that_crashes_leaves_no_core(tmp_path: Path) -> None:
    let_cores_be_written()
    async with ModelServer([Say("hello")]) as model:
        person = Person(tmp_path, model)
        argv = (sys.executable, "-m", "everloop", "gateway", "--port", "0")
        process = await asyncio.create_subprocess_exec(
            *argv, cwd=tmp_path, env=person.environment, stderr=asyncio.subprocess.PIPE, preexec_fn=unlimited
        )
        assert process.stderr is not None
        await process.stderr.readline()  # it has begun
        process.send_signal(signal.SIGSEGV)
        assert await process.wait() == -signal.SIGSEGV
    assert cores_in(tmp_path) == []


def test_what_a_program_would_be_handed_holds_no_memory(tmp_path: Path) -> None:
    if os.geteuid() != 0 and resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        pytest.skip("this user may have no core dumps at all")
    assert run(BEGIN + TELL, tmp_path).splitlines()[1:] == ["(1, 1) 00000000"]


async def test_nor_does_the_process_that_runs_commands_leave_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard != resource.RLIM_INFINITY:
        pytest.skip("this user may have no core dumps at all")
    resource.setrlimit(resource.RLIMIT_CORE, UNLIMITED)
    try:
        with world("none", os.geteuid()) as place:
            look = f"grep 'core file' /proc/self/limits /proc/$(cat {place.spool}/{NAME}.lock)/limits"
            said = (await run_once(place.commands(), place.job("/bin/sh", "-c", look))).output
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    assert [line.split()[-3:] for line in said.splitlines()] == [["1", "1", "bytes"]] * 2


def test_a_program_that_imports_everloop_keeps_its_own_limits(tmp_path: Path) -> None:
    if os.geteuid() != 0 and resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        pytest.skip("this user may have no core dumps at all")
    told = run(f"import everloop, everloop.app.open_house, everloop.cli; {TELL}", tmp_path)
    assert told == run(TELL, tmp_path)
    assert told.startswith("(-1, -1) ")
