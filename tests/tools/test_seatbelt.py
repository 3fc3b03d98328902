"""macOS: the profile is compared by value, and what starts and ends commands there is tried here.

In the place of `sandbox-exec` stands a script that confines nothing. It takes the same arguments.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.strays import told_by

from everloop.errors import ToolError
from everloop.tools.sandbox import portable
from everloop.tools.sandbox.choose import Confinement, choose_way, refused
from everloop.tools.sandbox.commands import SandboxedCommands
from everloop.tools.sandbox.port import SCRIPT, CommandLimits, CommandSpec, CommandView
from everloop.tools.sandbox.runner import NAME
from everloop.tools.sandbox.seatbelt import EXPERIMENTAL, Seatbelt, profile

from .sandbox_helpers import context, processes_with
from .test_exec import gone

SLEEP = f"16180.{os.getpid()}"  # seconds that no one else sleeps


def test_a_profile_closes_everything_but_what_it_names(tmp_path: Path) -> None:
    workspace = tmp_path / 'my "work" \\ space'
    view = CommandView(workspace, (tmp_path / "python",), hidden=(tmp_path, workspace / "home"))
    quoted = str(workspace).replace("\\", "\\\\").replace('"', '\\"')
    lines = profile(view, f"{tmp_path}/spool/tmp", f"{tmp_path}/spool/script.py").splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert [line for line in lines if "write" in line] == [
        "(allow file-read* file-write-data file-ioctl"
        ' (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))',
        f'(allow file-read* file-write* (subpath "{quoted}") (subpath "{tmp_path}/spool/tmp"))',
        f'(deny file-read* file-write* (subpath "{quoted}/home"))',
        f'(deny file-write-unlink (literal "{quoted}/home"))',
    ]
    (reads,) = [line for line in lines if line.startswith('(allow file-read* (subpath "/bin")')]
    assert reads.endswith(f'(subpath "{tmp_path}/python") (subpath "{tmp_path}/spool/script.py"))')
    for shut in ("/Users", "/Library/Keychains", "/private/var/folders", "/private/etc/master.passwd", "/Volumes"):
        assert shut not in "\n".join(lines)
    assert [line for line in lines if "network" in line] == ["(deny network*)"]
    assert lines[-1] == "(deny network*)"


def test_a_path_that_could_end_a_rule_early_is_refused() -> None:
    with pytest.raises(ToolError, match="control character"):
        profile(CommandView(Path("/tmp/a\nb")), "/t", "/s")


def test_hosts_cannot_be_named() -> None:
    with pytest.raises(ToolError, match="make the list empty"):
        Seatbelt().order(
            CommandSpec(("true",), CommandView(Path("/tmp"), network=("a.example",)), Path("/tmp")), Path("/tmp/x")
        )


def fake(folder: Path, text: str) -> str:
    program = folder / "sandbox-exec"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return str(program)


async def test_it_is_chosen_on_macos_if_it_works_and_says_that_it_is_experimental(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    way = await choose_way(fake(tmp_path, 'test "$1" = -p && shift 2 && exec "$@"'), platform="darwin")
    assert isinstance(way, Seatbelt)
    assert told_by("everloop", caplog.records) == [EXPERIMENTAL]


async def test_the_ways_of_linux_say_nothing_of_the_kind(caplog: pytest.LogCaptureFixture) -> None:
    await choose_way(unsafe=True, platform="linux")
    assert told_by("everloop", caplog.records) == []


async def test_else_commands_are_refused_there(tmp_path: Path) -> None:
    for program, why in ((fake(tmp_path, "echo no such profile >&2; exit 65"), "no such profile"),
                         (str(tmp_path / "missing"), "No such file or directory")):  # fmt: skip
        with pytest.raises(ToolError) as caught:
            await choose_way(program, platform="darwin")
        assert str(caught.value) == refused(why, "darwin")
    assert (await choose_way(program, unsafe=True, platform="darwin")).name == "nothing"


class House:
    def __init__(self, home: Path) -> None:
        self.workspace, self.spool = home / "workspace", home / "spool"
        self.workspace.mkdir(exist_ok=True)
        way = Seatbelt(fake(home, 'shift 2; exec "$@"'))

        async def choose() -> Confinement:
            return way

        self.commands = SandboxedCommands(self.spool, choose)
        self.heard = asyncio.Event()
        self._number = 0

    def job(self, command: str, limits: CommandLimits | None = None) -> CommandSpec:
        argv = ("/bin/bash", "-c", command)
        return CommandSpec(
            argv, CommandView(self.workspace), self.workspace, {"PATH": os.defpath}, limits or CommandLimits()
        )

    async def run(self, command: str, limits: CommandLimits | None = None) -> tuple[str, int, str]:
        self._number += 1
        job = self.job(command, limits)
        outcome = await self.commands.run(context(self._number), job, lambda _: self.heard.set())
        stderr = f"[stderr]\n{outcome.stderr}" if outcome.stderr else ""
        return outcome.status, outcome.code, outcome.output + stderr

    def runner(self) -> int:
        return int((self.spool / f"{NAME}.lock").read_text())


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[House]:
    house = House(home)
    try:
        yield house
    finally:
        await house.commands.close()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with opened(tmp_path) as house:
        yield house


class TestRunning:
    async def test_a_command_tells_its_exit_code_and_what_it_said(self, house: House) -> None:
        assert await house.run("echo out; echo err >&2; exit 3") == ("exited", 3, "out\n[stderr]\nerr\n")
        assert await house.run("kill -9 $$") == ("exited", 137, "")
        assert await house.run("cat; pwd") == ("exited", 0, f"{house.workspace}\n")
        assert await house.run("ls /proc/self/fd | wc -l") == ("exited", 0, "4\n")

    async def test_a_script_and_a_home_are_its_own(self, house: House) -> None:
        job = CommandSpec(
            ("/usr/bin/python3", SCRIPT), CommandView(house.workspace), house.workspace, script="print(6 * 7)"
        )
        assert (await house.commands.run(context(90), job)).output == "42\n"
        assert await house.run("touch ~/a $TMPDIR/b; ls ~") == ("exited", 0, "a\nb\n")

    async def test_no_descriptor_is_left_open(self, house: House) -> None:
        await house.run("true")
        folder = f"/proc/{house.runner()}/fd"
        before = len(os.listdir(folder))
        for _ in range(5):
            await house.run("echo x")
        assert len(os.listdir(folder)) == before

    async def test_one_in_the_background_is_written_and_stopped(self, house: House) -> None:
        job = house.job("while read line; do echo got $line; done")
        job = CommandSpec(job.argv, job.view, job.folder, job.env, CommandLimits(seconds=60), background=True)
        await house.commands.run(context(5), job)
        await house.commands.input("t", "b5-0", "x\n")
        assert (await house.commands.output("t", "b5-0", 0, 99, 20))[0].output == "got x\n"
        assert await house.commands.stop("t") == 1


class TestEnding:
    async def test_its_group_ends_with_it(self, house: House) -> None:
        assert await house.run(f"sleep {SLEEP} & (sleep {SLEEP} &); echo on") == ("exited", 0, "on\n")
        assert processes_with(SLEEP) == []

    async def test_its_time_ends_and_so_does_what_hangs_from_it(self, house: House) -> None:
        command = f"trap '' TERM HUP INT; setsid sleep {SLEEP} & sleep {SLEEP} & echo on; wait"
        seconds, ended = 0.5, ("", 0, "")
        while not ended[2]:  # where the machine is busy, its time was over before it began
            ended = await house.run(command, CommandLimits(seconds=seconds))
            assert ended[:2] == ("time", 137)
            assert processes_with(SLEEP) == []
            seconds *= 4
        assert ended[2] == "on\n"

    async def test_its_memory_is_watched(self, house: House) -> None:
        eat = "python3 -c 'import time; kept = [bytearray(10 << 20) for _ in range(30)]; time.sleep(60)' & wait"
        status, _, said = await house.run(eat, CommandLimits(seconds=60, memory=200 << 20))
        assert status == "memory" or "MemoryError" in said

    async def test_cancelling_a_call_ends_it(self, house: House) -> None:
        running = asyncio.create_task(house.run(f"echo on; sleep {SLEEP}"))
        await asyncio.wait_for(house.heard.wait(), 60)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert processes_with(SLEEP) == []

    async def test_it_ends_with_the_runner(self, house: House) -> None:
        running = asyncio.create_task(house.run(f"echo $$; sleep {SLEEP} & wait"))
        await asyncio.wait_for(house.heard.wait(), 60)
        (pid,) = [int(path.read_text()) for path in house.spool.glob("*/*/out.*")]
        os.kill(house.runner(), signal.SIGKILL)
        with pytest.raises(ToolError, match="has ended in the middle"):
            await running
        assert await gone(pid)

    async def test_a_daemon_is_the_one_thing_that_is_not_found(self, house: House) -> None:
        """So that whoever mends this learns that the documentation has to change too."""
        daemon = f"setsid -f bash -c 'touch on; exec sleep {SLEEP}' > /dev/null 2>&1"
        assert (await house.run(f"{daemon}; until [ -e on ]; do sleep 0.01; done"))[0] == "exited"
        (left,) = [pid for pid in filter(str.isdigit, os.listdir("/proc")) if _is_ours(pid)]
        os.kill(int(left), signal.SIGKILL)
        assert await gone(int(left))


def _is_ours(pid: str) -> bool:
    try:
        return SLEEP.encode() in Path(f"/proc/{pid}/cmdline").read_bytes() and int(pid) != os.getpid()
    except OSError:
        return False


def test_processes_are_counted_by_ps() -> None:
    hold = "import subprocess, sys; subprocess.run(['cat'])"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE) as above:
        while not (found := portable.used_by(above.pid))[0]:
            pass
        above.communicate()
    assert found[0] == 1
    assert found[1] > 0
