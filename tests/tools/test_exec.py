"""exec and run_python do what they say, within their limits, once, whatever happens to the worker."""

import asyncio
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.descriptors import open_descriptors

from everloop.core.tool import Effect, ToolCall, problems_of
from everloop.errors import ToolError
from everloop.ports.tools import CallContext, Shown, Tool
from everloop.tools.exec import Shell, exec_tools
from everloop.tools.run_python import run_python_tool
from everloop.tools.sandbox import seccomp, spool
from everloop.tools.sandbox.bwrap import Bubblewrap
from everloop.tools.sandbox.choose import Confinement, Landlock, choose_way, refused
from everloop.tools.sandbox.commands import SandboxedCommands, told_apart
from everloop.tools.sandbox.elsewhere import Elsewhere
from everloop.tools.sandbox.port import CommandLimits, CommandSpec, CommandView, Outcome
from everloop.tools.sandbox.runner import NAME
from everloop.tools.sandbox.view import environment, shell_path

from .sandbox_helpers import NOBODY, TOKEN, World, context, processes_with, run_once, world

SLEEP = f"27182.{os.getpid()}"  # seconds that no one else sleeps


def untimed(text: str) -> str:
    """What exec says, without the seconds that it took, which it tells when there are any."""
    head, line, rest = text.partition("]\n")
    return f"{head.partition(',')[0]}{line}{rest}"


class FakeHomes:
    """A CommandHomes port."""

    def __init__(self, homes: set[str]) -> None:
        self._homes = homes

    async def note_command_home(self, home: str) -> None:
        self._homes.add(home)

    async def has_command_homes_beside(self, home: str) -> bool:
        return bool(self._homes - {home})


class House:
    """The tools over a workspace and a spool in a temporary home."""

    def __init__(
        self, home: Path, way: Confinement, others: set[str] | None = None, limits: CommandLimits | None = None
    ) -> None:
        """With `others`, commands of its conversations may be run in these homes, too."""
        self.workspace, self.spool = home / "workspace", home / "spool"
        self.workspace.mkdir(exist_ok=True)
        self.told: list[str] = []
        self.heard = asyncio.Event()

        async def choose() -> Confinement:
            return way

        elsewhere = None if others is None else Elsewhere(self.spool, FakeHomes(others))
        self.commands = SandboxedCommands(self.spool, choose, elsewhere)
        self.shell = Shell(
            self.commands,
            CommandView(self.workspace, hidden=(home,)),
            environment(os.environ),
            limits or CommandLimits(),
            told=self._tell,
        )
        tools = (*exec_tools(self.shell), run_python_tool(self.shell))
        self.tools: dict[str, Tool] = {tool.spec.name: tool for tool in tools}
        self._number = 0

    def _tell(self, _: CallContext, text: str) -> None:
        self.told.append(text)
        self.heard.set()

    async def run(self, tool: str, at: CallContext | None = None, **args: Any) -> str:
        self._number += 1
        result = await self.tools[tool].run(args, at or context(self._number))
        return result if isinstance(result, str) else result.text

    async def exec(self, command: str, at: CallContext | None = None, **args: Any) -> str:
        return untimed(await self.run("exec", at, command=command, **args))

    async def verify(self, at: CallContext, **args: Any) -> str | None:
        verify = self.tools["exec"].verify
        assert verify is not None
        found = await verify(args, at)
        return found.text if isinstance(found, Shown) else found

    def runner(self) -> int:
        return int((self.spool / f"{NAME}.lock").read_text())


async def choose_or_skip() -> Confinement:
    try:
        return await choose_way()
    except ToolError as error:
        pytest.skip(str(error))


@asynccontextmanager
async def opened(home: Path, **options: Any) -> AsyncIterator[House]:
    house = House(home, await choose_or_skip(), **options)
    try:
        yield house
    finally:
        await house.commands.close()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with opened(tmp_path) as house:
        yield house


async def gone(pid: int) -> bool:
    """Wait until a process is gone, and for everyone's sake not for ever."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool((await asyncio.to_thread(select.select, [fd], [], [], 60))[0])
    finally:
        os.close(fd)


async def refusal(do: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await do
    return str(caught.value)


class TestRunning:
    def test_the_tools_say_what_a_second_run_does(self, tmp_path: Path) -> None:
        house = House(tmp_path, Landlock())
        assert {
            name: (tool.spec.effect, tool.spec.local, tool.verify is None) for name, tool in house.tools.items()
        } == {
            "exec": (Effect.VERIFIABLE, False, False),
            "exec_output": (Effect.READ, False, True),
            "exec_input": (Effect.UNSAFE, False, True),
            "exec_stop": (Effect.IDEMPOTENT, False, True),
            "run_python": (Effect.VERIFIABLE, False, False),
        }
        spec = house.tools["exec"].spec
        assert list(spec.schema["properties"]) == ["command", "timeout", "cwd", "background", "why"]
        assert problems_of(ToolCall("1", "exec", '{"command": "x", "timeout": 0}'), spec) == [
            "timeout must be at least 1"
        ]

    async def test_a_command_tells_its_exit_code_and_what_it_said(self, house: House) -> None:
        assert await house.exec("echo out; echo err >&2; exit 3") == "[exit code 3]\nout\n[stderr]\nerr\n"
        assert await house.exec("true") == "[exit code 0]\n"
        assert await house.exec("kill -9 $$") == "[exit code 137]\n"
        assert await house.exec("no-such-program 2> /dev/null") == "[exit code 127]\n"

    async def test_stdout_and_stderr_are_told_apart(self, house: House) -> None:
        assert await house.exec("printf a; printf b >&2; printf c; printf d >&2") == "[exit code 0]\nac\n[stderr]\nbd"
        assert await house.exec("echo only >&2") == "[exit code 0]\n[stderr]\nonly\n"
        assert await house.exec("(echo a; echo b >&2) 2>&1") == "[exit code 0]\na\nb\n"
        assert await house.exec("no-such-program") == (
            "[exit code 127]\n[stderr]\n" + f"{shell_path()}: line 1: no-such-program: command not found\n"
        )

    async def test_both_are_told_live_in_the_order_in_which_they_came(self, house: House) -> None:
        steps = "".join(f"echo {n} >&{1 + n % 2}; until [ -e {n} ]; do sleep 0.01; done; " for n in range(4))
        running = asyncio.create_task(house.exec(steps))
        for number in range(4):
            while "".join(house.told) != "".join(f"{n}\n" for n in range(number + 1)):
                house.heard.clear()
                await asyncio.wait_for(house.heard.wait(), 60)
            (house.workspace / f"{number}").touch()
        assert await running == "[exit code 0]\n0\n2\n[stderr]\n1\n3\n"

    async def test_it_runs_in_a_folder_of_the_workspace_and_writes_there(self, house: House) -> None:
        (house.workspace / "sub").mkdir()
        assert await house.exec("pwd; echo x > made", cwd="sub") == f"[exit code 0]\n{house.workspace}/sub\n"
        assert (house.workspace / "sub/made").read_text() == "x\n"
        assert (house.workspace / "sub/made").stat().st_mode & 0o777 == 0o644
        assert "cannot hold '..'" in await refusal(house.exec("true", cwd=".."))
        assert await refusal(house.exec("true", cwd="no")) == "there is no 'no'"
        (house.workspace / "out").symlink_to("/")
        assert "leads out" in await refusal(house.exec("true", cwd="out"))

    async def test_what_no_shell_can_take_is_refused(self, house: House) -> None:
        for command in ("echo \0", "x" * 200_000):
            assert "at most 120,000 bytes" in await refusal(house.exec(command))
        long = "x" * 100_000
        assert await house.exec(f"echo {long} | wc -c") == "[exit code 0]\n100001\n"

    async def test_its_input_is_at_its_end(self, house: House) -> None:
        assert await house.exec("cat; echo read") == "[exit code 0]\nread\n"

    async def test_bytes_that_are_no_text_are_shown_as_far_as_they_are(self, house: House) -> None:
        assert await house.exec(r"printf 'a\xffb'") == "[exit code 0]\na\ufffdb"

    async def test_a_python_program_runs_isolated_in_the_workspace(self, house: House) -> None:
        (house.workspace / "data.txt").write_text("42")
        text = await house.run("run_python", code="import sys\nprint(open('data.txt').read(), sys.flags.isolated)")
        assert text.partition("\n")[2] == "42 1\n"
        text = await house.run("run_python", code="1/0")
        assert untimed(text).startswith("[exit code 1]\n[stderr]\nTraceback")
        assert "ZeroDivisionError" in text

    async def test_what_it_says_is_told_while_it_runs(self, house: House) -> None:
        running = asyncio.create_task(house.exec("echo first; until [ -e go ]; do sleep 0.01; done; echo second"))
        await asyncio.wait_for(house.heard.wait(), 60)
        assert house.told == ["first\n"]
        (house.workspace / "go").touch()
        assert await running == "[exit code 0]\nfirst\nsecond\n"
        assert "".join(house.told) == "first\nsecond\n"

    async def test_many_run_side_by_side(self, house: House) -> None:
        said = await asyncio.gather(*(house.exec(f"echo {n}", context(n, f"t{n}")) for n in range(20)))
        assert said == [f"[exit code 0]\n{n}\n" for n in range(20)]

    async def test_workers_of_one_home_share_one_runner(self, tmp_path: Path) -> None:
        async with opened(tmp_path) as one, opened(tmp_path) as other:
            said = await asyncio.gather(
                *(each.exec("true", context(1, thread)) for each, thread in ((one, "a"), (other, "b")))
            )
            assert len(said) == 2
            runner = one.runner()
            await one.commands.close()
            assert await other.exec("echo still") == "[exit code 0]\nstill\n"
            assert other.runner() == runner

    async def test_a_call_is_made_once(self, house: House) -> None:
        at = context(7)
        assert await house.exec("echo x >> once", at) == "[exit code 0]\n"
        assert await refusal(house.exec("echo x >> once", at)) == "this call has been made before"
        assert (house.workspace / "once").read_text() == "x\n"

    async def test_no_descriptor_is_left_open(self, house: House) -> None:
        async def open_now() -> tuple[int, int]:
            await house.commands.stop("t")  # answered when the runner has made ready for the next command
            return open_descriptors(), len(os.listdir(f"/proc/{house.runner()}/fd"))

        await house.exec("true")
        before = await open_now()
        for _ in range(10):
            await house.exec("echo x")
        assert await open_now() == before


class TestSeeing:
    async def test_nothing_of_the_environment_but_what_is_allowed(self, house: House) -> None:
        said = await house.exec("env -0 | cut -z -d= -f1 | sort -z | tr '\\0' ' '")
        expected = {"HOME", "LANG", "PAGER", "PATH", "PWD", "SHLVL", "TERM", "TMPDIR", "_"}
        assert set(said.partition("\n")[2].split()) - {"LC_ALL", "LC_CTYPE", "TZ", "LANGUAGE"} == expected

    def test_an_environment_is_made_of_what_is_allowed(self) -> None:
        outside = {"SECRET": "x", "LANG": "de_DE.UTF-8", "GOOD": "y", "PATH": "/mine", "HOME": "/root"}
        made = environment(outside, ("GOOD", "PATH", "MISSING"))
        assert made == {**environment({}), "LANG": "de_DE.UTF-8", "GOOD": "y"}
        assert "SECRET" not in made

    async def test_home_and_tmp_are_its_own_and_can_be_written(self, house: House) -> None:
        assert await house.exec("cd && touch a $TMPDIR/b && ls a $TMPDIR/b > /dev/null") == "[exit code 0]\n"
        assert await house.exec("ls -A ~") == "[exit code 0]\n"

    @pytest.mark.parametrize("uid", [pytest.param(os.geteuid(), id="self"), pytest.param(NOBODY, id="nobody")])
    async def test_in_bubblewrap_there_is_nothing_else(self, uid: int) -> None:
        with world("bwrap", uid) as place:
            show = (
                f"ls -A {place.home}; ls -A {place.base}; ls /etc/shadow {place.outside}; ls -A /sys /root /home /var;"
                "grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status; hostname; ls -A /dev/shm;"
                "touch /x /dev/x /usr/x /etc/x 2>&1 | grep -c Read-only; cat /proc/net/dev | grep -c :"
            )
            said = (await run_once(place.commands(), place.job("/bin/sh", "-c", f"({show}) 2> /dev/null"))).output
            assert said == ("workspace\nhome\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\nsandbox\n4\n1\n")

    @pytest.mark.parametrize("uid", [pytest.param(os.geteuid(), id="self"), pytest.param(NOBODY, id="nobody")])
    async def test_in_bubblewrap_every_descriptor_is_its_own(self, uid: int) -> None:
        with world("bwrap", uid) as place:
            show = "for fd in /proc/[0-9]*/fd/*; do readlink $fd; done | grep -v -E '^(pipe:|anon_inode:|/proc/)'"
            assert (await run_once(place.commands(), place.job("/bin/sh", "-c", show))).output == ""

    async def test_in_bubblewrap_roots_device_files_are_not_the_machines(self) -> None:
        with world("bwrap", 0) as place:
            show = "stat -c '%D:%i' /dev/null /dev/zero /dev/full /dev/random /dev/urandom"
            said = (await run_once(place.commands(), place.job("/bin/sh", "-c", show))).output.split()
            assert len(said) == 5
            outside = (os.stat(f"/dev/{name}") for name in ("null", "zero", "full", "random", "urandom"))
            assert {f"{each.st_dev:x}:{each.st_ino}" for each in outside} & set(said) == set()

    async def test_in_bubblewrap_what_is_hidden_is_hidden_in_the_workspace_too(self) -> None:
        with world("bwrap", os.geteuid()) as place:
            (place.workspace / "home").mkdir()
            for path in ("home/everloop.db", "key", "seen"):
                (place.workspace / path).write_text(TOKEN)
            view = CommandView(place.workspace, hidden=(place.workspace / "home", place.workspace / "key"))
            job = structs.replace(
                place.job("/bin/sh", "-c", "exec 2>&1; ls home; cat key; touch home/x; cat seen"), view=view
            )
            outcome = await run_once(place.commands(), job)
            assert outcome.output.splitlines() == [
                "cat: key: Permission denied", "touch: cannot touch 'home/x': Read-only file system", TOKEN,
            ]  # fmt: skip

    def test_landlock_refuses_what_it_cannot_hide(self, tmp_path: Path) -> None:
        job = CommandSpec(("true",), CommandView(tmp_path, hidden=(tmp_path / "home",)), tmp_path)
        with pytest.raises(ToolError, match="only bubblewrap can hide it there"):
            Landlock().order(job, tmp_path)

    async def test_a_bubblewrap_that_does_not_work_is_not_used(self, tmp_path: Path) -> None:
        broken = tmp_path / "bwrap"
        broken.write_text("#!/bin/sh\necho no namespaces here >&2\nexit 1\n")
        broken.chmod(0o755)
        assert not isinstance(await choose_way(str(broken), unsafe=True), Bubblewrap)
        assert "apt install bubblewrap" in refused("no namespaces here")

    def test_the_filters_are_made_for_the_machines_that_are_known(self) -> None:
        made = [make(machine) for make in (seccomp.classic, seccomp.strict) for machine in ("x86_64", "aarch64")]
        assert len({*made}) == 4
        assert all(len(code) % 8 == 0 and len(code) // 8 < 4096 for code in made)
        with pytest.raises(OSError, match="sparc"):
            seccomp.classic("sparc")


HEAVY = ("ctypes", "tempfile", "shutil", "html", "everloop.tools.sandbox.commands", "everloop.tools.sandbox.runner")
FURNISH = """
import asyncio, sys
from pathlib import Path
import everloop.app
from everloop.bus.local import LocalBus
from everloop.ports.tools import CallContext
from everloop.files.folder import Folder
from everloop.settings import load
from everloop.app.tools import build_tools

async def main(home, command):
    (home / "workspace").mkdir()
    toolset = build_tools(home, home / "workspace", load(home, {}), Folder(home / "files"), LocalBus(), 8000)
    if command:
        (tool,) = [each for each in toolset.tools if each.spec.name == "exec"]
        await tool.run({"command": command}, CallContext("t:1:0", "t", "s", "ann"))
    else:
        await toolset.leave("t")
    await toolset.close()
    print(*sys.modules)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


class TestLoading:
    def loaded(self, home: Path, command: str) -> list[str]:
        words = [sys.executable, "-c", FURNISH, str(home), command]
        modules = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        return [name for name in HEAVY if name in modules]

    def test_a_house_in_which_no_command_runs_loads_nothing_for_one(self, tmp_path: Path) -> None:
        assert self.loaded(tmp_path, "") == []

    async def test_and_one_in_which_one_does_loads_it(self, tmp_path: Path) -> None:
        await choose_or_skip()
        assert self.loaded(tmp_path, "true") == [name for name in HEAVY if name != "html"]


USERS = [pytest.param(os.geteuid(), id="self"), pytest.param(NOBODY, id="nobody")]
WAYS = ["bwrap", "landlock"]
FORK = """
import os, sys, time
made = 0
for _ in range(300):
    try: pid = os.fork()
    except OSError: break
    if not pid: time.sleep(60); os._exit(0)
    made += 1
print(made, flush=True)
time.sleep(60)
"""
EAT = """
import mmap, time
kept = [{take} for _ in range(40)]
for each in kept: each[::4096] = bytes(len(each[::4096]))
print("ate", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("uid", USERS)
@pytest.mark.parametrize("way", WAYS)
class TestLimits:
    async def outcome(self, place: World, limits: CommandLimits, *argv: str) -> Any:
        return await run_once(place.commands(), place.job(*argv, limits=limits))

    async def outcome_in_time(self, place: World, seconds: float, limits: CommandLimits, *argv: str) -> Outcome:
        """Of a command that has come to say something: where the machine is busy, its time was over before."""
        commands, number = place.commands(), 0
        while True:
            number += 1
            job = place.job(*argv, limits=structs.replace(limits, seconds=seconds))
            outcome = await commands.run(context(number), job)
            if outcome.output or outcome.status != "time":
                await commands.close()
                return outcome
            seconds *= 4

    async def test_time(self, way: str, uid: int) -> None:
        with world(way, uid) as place:
            command = f"trap '' TERM HUP INT; setsid sleep {SLEEP} & sleep {SLEEP} & (sleep {SLEEP} &) ; echo on; wait"
            outcome = await self.outcome_in_time(place, 0.5, CommandLimits(), "/bin/bash", "-c", command)
            assert (outcome.status, outcome.output) == ("time", "on\n")
            assert processes_with(SLEEP) == []

    async def test_processes(self, way: str, uid: int) -> None:
        with world(way, uid) as place:
            limits = CommandLimits(processes=40)
            outcome = await self.outcome_in_time(place, 3, limits, "/usr/bin/python3", "-c", FORK)
            if outcome.status == "time":  # the kernel has kept it from more, for it knows of the limit
                assert int(outcome.output) <= 40
            else:
                assert outcome.status == "processes"

    @pytest.mark.parametrize("take", ["bytearray(10 << 20)", "mmap.mmap(-1, 10 << 20)"], ids=["own", "shared"])
    async def test_memory(self, way: str, uid: int, take: str) -> None:
        with world(way, uid) as place:
            limits = CommandLimits(seconds=60, memory=150 << 20)
            outcome = await self.outcome(place, limits, "/usr/bin/python3", "-c", EAT.format(take=take))
            assert outcome.status == "memory" or (outcome.status, outcome.code) == ("exited", 1)
            assert "MemoryError" in outcome.stderr or outcome.status == "memory"

    async def test_one_file(self, way: str, uid: int) -> None:
        with world(way, uid) as place:
            command = "head -c 3000000 /dev/zero > big; wc -c < big"
            outcome = await self.outcome(place, CommandLimits(file=1 << 20), "/bin/sh", "-c", command)
            assert outcome.output.splitlines()[-1] == str(1 << 20)

    async def test_output(self, way: str, uid: int) -> None:
        with world(way, uid) as place:
            command = "echo begin; head -c 500000 /dev/zero | tr '\\0' x; echo; echo end"
            outcome = await self.outcome(place, CommandLimits(output=40_000), "/bin/sh", "-c", command)
            assert outcome.status == "exited"
            assert len(outcome.output) < 60_000
            head, _, tail = outcome.output.partition(" bytes left out] …\n")
            assert head.startswith("begin\nxxx")
            assert tail.endswith("xxx\nend\n")

    async def test_a_flood_of_output(self, way: str, uid: int) -> None:
        with world(way, uid) as place:
            outcome = await self.outcome(place, CommandLimits(output=40_000, flood=1 << 20), "/bin/sh", "-c", "yes")
            assert outcome.status == "flood"
            assert sum(file.stat().st_size for file in place.spool.glob("*/*/out.*")) <= 50_000


class TestEnding:
    async def test_whatever_it_started_ends_with_it(self, house: House) -> None:
        command = f"setsid -f sleep {SLEEP} > /dev/null 2>&1; nohup sleep {SLEEP} > /dev/null 2>&1 & echo done"
        assert await house.exec(command) == "[exit code 0]\ndone\n"
        assert processes_with(SLEEP) == []

    async def test_cancelling_a_call_ends_its_tree(self, house: House) -> None:
        at = context(3)
        running = asyncio.create_task(house.exec(f"setsid -f sleep {SLEEP}; echo on; sleep {SLEEP}", at))
        await asyncio.wait_for(house.heard.wait(), 60)
        assert len(processes_with(SLEEP)) >= 2
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert processes_with(SLEEP) == []
        assert await house.verify(at, command="x") == "[ended because it was told to stop]\non\n"

    async def test_the_runner_leaves_when_nobody_is_connected(self, house: House) -> None:
        await house.exec("true")
        pid = house.runner()
        await house.commands.close()
        assert await gone(pid)
        assert await house.exec("echo again") == "[exit code 0]\nagain\n"


WORKER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.tools.test_exec import opened, context

async def main():
    async with opened(Path(sys.argv[2])) as house:
        running = asyncio.create_task(house.exec(sys.argv[3], context(5)))
        await house.heard.wait()
        print("heard", flush=True)
        await running

asyncio.run(main())
"""


def killed_worker(home: Path, command: str) -> None:
    """A worker that is killed as soon as its command has said something."""
    root = str(Path(__file__).parents[2])
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, root, str(home), command], stdout=subprocess.PIPE, cwd=root
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"heard\n"
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    worker.stdout.close()


class TestDeathOfAWorker:
    COMMAND = "echo x >> times; echo on; until [ -e go ]; do sleep 0.01; done; echo off; exit 4"

    async def test_a_running_command_is_picked_up(self, tmp_path: Path) -> None:
        await asyncio.to_thread(killed_worker, tmp_path, self.COMMAND)
        async with opened(tmp_path) as house:
            finding = asyncio.create_task(house.verify(context(5), command=self.COMMAND))
            await asyncio.wait_for(house.heard.wait(), 60)
            (house.workspace / "go").touch()
            found = await finding
            assert found is not None
            assert untimed(found) == "[exit code 4]\non\noff\n"
            assert "".join(house.told) == "on\noff\n"
            assert (house.workspace / "times").read_text() == "x\n"

    async def test_one_that_has_ended_since_is_told_again_and_again(self, tmp_path: Path) -> None:
        await asyncio.to_thread(killed_worker, tmp_path, self.COMMAND)
        runner = int((tmp_path / "spool" / f"{NAME}.lock").read_text())
        (tmp_path / "workspace/go").touch()
        assert await gone(runner)
        async with opened(tmp_path) as house:
            first = await house.verify(context(5), command=self.COMMAND)
            assert first is not None
            assert first.endswith("on\noff\n")
            assert await house.verify(context(5), command=self.COMMAND) == first

    async def test_one_that_was_never_begun_may_be_run(self, house: House) -> None:
        assert await house.verify(context(5), command="x") is None

    async def test_unless_another_machine_may_have_begun_it(self, tmp_path: Path) -> None:
        async with opened(tmp_path, others={"another"}) as house:
            assert await refusal(house.verify(context(5), command="x")) == "there is no command 5-0 here"

    async def test_of_which_there_may_be_none(self, tmp_path: Path) -> None:
        homes: set[str] = set()
        async with opened(tmp_path, others=homes) as house:
            assert await house.verify(context(5), command="x") is None
            await house.run("exec", command="true")
            assert len(homes) == 1
            assert await house.verify(context(7), command="x") is None

    async def test_if_the_runner_dies_too_nobody_can_tell(self, tmp_path: Path) -> None:
        await asyncio.to_thread(killed_worker, tmp_path, f"setsid sleep {SLEEP} & echo on; wait")
        runner = int((tmp_path / "spool" / f"{NAME}.lock").read_text())
        os.kill(runner, signal.SIGKILL)
        while left := [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _sleeps(pid)]:
            assert await gone(left[0])
        async with opened(tmp_path) as house:
            assert "it may have done a part" in await refusal(house.verify(context(5), command="x"))

    async def test_a_runner_that_dies_in_the_middle_is_told(self, house: House) -> None:
        running = asyncio.create_task(house.exec("echo on; sleep 60"))
        await asyncio.wait_for(house.heard.wait(), 60)
        os.kill(house.runner(), signal.SIGKILL)
        assert "has ended in the middle" in await refusal(running)
        assert await house.exec("echo again") == "[exit code 0]\nagain\n"

    async def test_what_is_long_ago_is_forgotten_but_never_run_again(self, house: House) -> None:
        await house.exec("true", context(5))
        (folder,) = house.spool.glob("*/5-0")
        os.utime(folder, (1, 1))
        spool.sweep(str(house.spool))
        assert folder.is_file()
        assert "ended too long ago" in await refusal(house.verify(context(5), command="true"))

    async def test_a_later_answer_takes_the_place_of_earlier_ones(self, house: House) -> None:
        for number in (5, 6):
            await house.exec("true", context(number))
        await house.exec("true", context(1, "other"))
        assert sorted(path.name for path in house.spool.glob("*/*-0")) == ["1-0", "6-0"]


def _sleeps(pid: int) -> bool:
    try:
        return SLEEP.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


class TestBackground:
    ECHO = "while read line; do echo got $line; done; echo over"

    async def test_it_is_read_written_and_stopped(self, house: House) -> None:
        at = context(5)
        assert (await house.run("exec", at, command=self.ECHO, background=True)).startswith(
            "It runs in the background as b5-0."
        )
        assert await house.run("exec_input", at, id="b5-0", text="hello\n") == "Wrote 6 bytes."
        said = await house.run("exec_output", at, id="b5-0", wait=20)
        assert said == "[it runs; read on with offset=10]\ngot hello\n"
        assert await house.run("exec_output", at, id="b5-0", offset=10) == "[it runs; read on with offset=10]\n"
        assert await house.run("exec_stop", at, id="b5-0") == "It has been ended."
        assert await house.run("exec_stop", at, id="b5-0") == "It was not running."
        said = await house.run("exec_output", at, id="b5-0", offset=4)
        assert said == "[ended because it was told to stop; read on with offset=10]\nhello\n"
        assert "takes no input" in await refusal(house.run("exec_input", at, id="b5-0", text="x"))

    async def test_its_stderr_is_told_apart_in_what_is_read(self, house: House) -> None:
        at = context(5)
        command = "read x; echo out; read x; echo err >&2; read x; echo over"
        await house.run("exec", at, command=command, background=True)
        said = []
        for offset, after in ((0, 4), (4, 8), (8, 13)):
            await house.run("exec_input", at, id="b5-0", text="\n")
            said.append(untimed(await house.run("exec_output", at, id="b5-0", offset=offset, wait=20)))
            assert f"offset={after}]" in said[-1]
        assert [text.partition("]\n")[2] for text in said] == ["out\n", "[stderr]\nerr\n", "over\n"]
        while "it runs" in await house.run("exec_output", at, id="b5-0", offset=13, wait=20):
            pass
        whole = await house.run("exec_output", at, id="b5-0", offset=2)
        assert whole == "[exit code 0; read on with offset=13]\nt\nover\n[stderr]\nerr\n"

    async def test_only_its_own_thread_knows_it(self, house: House) -> None:
        await house.run("exec", context(5), command=self.ECHO, background=True)
        assert await refusal(house.run("exec_output", context(6, "u"), id="b5-0")) == "there is no command b5-0 here"
        assert await house.run("exec_stop", context(6, "u"), id="b5-0") == "It was not running."
        for name in ("../b", "b/../x", "5-0", "b5 0", ""):
            assert "is not an id" in await refusal(house.run("exec_output", context(6), id=name))
        assert await house.commands.stop("t") == 1

    async def test_it_outlives_its_worker_and_is_found_again(self, tmp_path: Path) -> None:
        async with opened(tmp_path) as house:
            await house.run("exec", context(5), command=self.ECHO, background=True)
        async with opened(tmp_path) as house:
            found = await house.verify(context(5), command=self.ECHO, background=True)
            assert found is not None
            assert found.startswith("It runs in the background as b5-0.")
            assert await house.run("exec_input", context(6), id="b5-0", text="x\n") == "Wrote 2 bytes."
            assert "got x" in await house.run("exec_output", context(6), id="b5-0", wait=20)
            assert await house.commands.stop("t") == 1

    async def test_one_that_says_nothing_and_is_not_read_ends(self, house: House) -> None:
        job = house.shell.job(("/bin/sleep", SLEEP), ".", CommandLimits())
        job = structs.replace(job, background=True, limits=CommandLimits(seconds=0, idle=0.3))
        assert (await house.commands.run(context(5), job)).status == "running"
        outcome, _ = await house.commands.output("t", "b5-0", 0, 100, 20)
        assert outcome.status == "idle"
        assert processes_with(SLEEP) == []

    async def test_all_of_a_thread_are_ended_at_once(self, house: House) -> None:
        for number in (5, 6):
            await house.run("exec", context(number), command="sleep 60", background=True)
        await house.run("exec", context(7, "u"), command="sleep 60", background=True)
        assert await house.commands.stop("t") == 2
        assert await house.commands.stop("u") == 1


@given(st.lists(st.binary(min_size=1, max_size=30), max_size=40), st.integers(4, 60))
def test_of_a_long_output_the_first_and_the_last_part_stay(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], kept: int
) -> None:
    folder = str(tmp_path_factory.mktemp("tape"))
    tape = spool.OutputSpool(folder, kept)
    for chunk in chunks:
        tape.write(chunk)
    tape.close()
    whole = b"".join(chunks)
    runs = spool.read_all(folder, len(whole))
    assert tape.size == len(whole)
    assert all(whole[at : at + len(data)] == data for at, data in runs)
    assert sum(len(data) for _, data in runs) <= 2 * kept
    if len(whole) <= kept:
        assert b"".join(data for _, data in runs) == whole
    else:
        (first, head), (last, tail) = runs[0], runs[-1]
        assert first == 0
        assert len(head) >= kept // 4 * 2
        assert last + len(tail) == len(whole)


class TestTheEndOfACommandInTheBackground:
    """Of use to who wants to know whether a command could still have written a file."""

    async def test_a_command_that_runs_has_no_end_and_one_that_was_stopped_has(self, house: House):
        at = context(7)
        before = time.time()
        await house.exec("sleep 100", at, background=True)
        assert await house.shell.sandbox.ended("t", "b7-0") is None
        await house.run("exec_stop", at, id="b7-0")
        ended = await house.shell.sandbox.ended("t", "b7-0")
        assert ended is not None
        assert before - 1 < ended <= time.time() + 1

    async def test_a_command_that_never_began_was_over_before_everything(self, house: House):
        assert await house.shell.sandbox.ended("t", "b9-9") == 0.0

    async def test_a_call_names_the_command_that_goes_on_after_it(self, house: House):
        begun = await house.tools["exec"].run({"command": "cat", "background": True}, context(5))
        fed = await house.tools["exec_input"].run({"id": "b5-0", "text": "a"}, context(6))
        over = await house.tools["exec"].run({"command": "true"}, context(7))
        assert await house.commands.stop("t") == 1
        assert [each.background for each in (begun, fed, over) if isinstance(each, Shown)] == ["b5-0", "b5-0", ""]


@given(st.lists(st.tuples(st.booleans(), st.binary(min_size=1, max_size=30)), max_size=40), st.integers(4, 60))
def test_what_is_kept_of_stdout_and_of_stderr_is_told_apart(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[tuple[bool, bytes]], kept: int
) -> None:
    folder = str(tmp_path_factory.mktemp("tape"))
    tape = spool.OutputSpool(folder, kept)
    for error, chunk in chunks:
        tape.write(chunk.hex().encode(), error)
    tape.close()
    found = told_apart(spool.read_all(folder, tape.size), tape.errors)
    for error, text in zip((False, True), found, strict=True):
        said = "".join(chunk.hex() for which, chunk in chunks if which is error)
        head, *rest = re.split("\n… \\[([0-9]+) bytes left out\\] …\n", text)
        if not rest:
            assert head == said
        else:
            left_out, tail = rest
            assert said == head + said[len(head) : len(head) + int(left_out)] + tail


def test_one_that_changes_between_them_all_the_time_is_told_apart_for_a_while(tmp_path: Path) -> None:
    tape = spool.OutputSpool(str(tmp_path), 1 << 20)
    for _ in range(3000):
        tape.write(b"o")
        tape.write(b"e", error=True)
    tape.close()
    out, err = told_apart(spool.read_all(str(tmp_path), tape.size), tape.errors)
    assert (out, err) == ("o" * 2000, "e" * 2000 + "oe" * 1000)
