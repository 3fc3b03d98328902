"""A command lives in a control group where one can be had, so that the kernel holds it to its limits.

What is tried for real needs a user who may make groups: root, or one to whom systemd has given a part of them.
"""

import asyncio
import logging
import os
import select
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from everloop.tools.sandbox.cgroup import Cgroup, Groups
from everloop.tools.sandbox.commands import SandboxedCommands
from everloop.tools.sandbox.delegation import find_groups, find_places
from everloop.tools.sandbox.port import CommandLimits
from everloop.tools.sandbox.runner import NAME

from .sandbox_helpers import NOBODY, SYSTEM_PYTHON, World, context, run_once, world

WAYS = ["bwrap", "landlock"]
TIGHT = CommandLimits(seconds=100, memory=96 << 20, processes=60)
# Memory that is shared is bounded by nothing but the group: RLIMIT_DATA does not count it.
HOARD = "import mmap; m = mmap.mmap(-1, 300 << 20); m[::4096] = bytes(76800); print('held')"


def groups_or_skip() -> Groups:
    for _ in range(3):  # another test may be making one in this moment
        if groups := find_groups():
            return groups
    pytest.skip("this user can make no control group here")


def left_by(pid: int) -> list[str]:
    """The groups that are there and were made by this process."""
    bases = set(find_places()[1].values())
    return [f"{base}/{name}" for base in bases for name in os.listdir(base) if name.startswith(f"everloop-{pid}-")]


def groups_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cgroup").read_text()


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def processes_in(groups: list[str]) -> list[int]:
    return [int(word) for group in groups for word in Path(group, "cgroup.procs").read_text().split()]


def process_that_runs(*argv: str) -> int:
    """That of a command itself, not what stands before it."""
    return next(pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _words(pid) == [*argv, ""])


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def runner_of(place: World) -> int:
    return int((place.spool / f"{NAME}.lock").read_text())


async def see_gone(pid: int) -> None:
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert (await asyncio.to_thread(select.select, [fd], [], [], 60))[0]
    finally:
        os.close(fd)


@asynccontextmanager
async def running(place: World, commands: SandboxedCommands) -> AsyncIterator[int]:
    """The process of a command in the background, that has begun."""
    mark = f"everloop-mark-{os.urandom(4).hex()}"
    text = f"sleep 600 & echo on; wait; : {mark}"  # so that what it starts is there when it has begun
    job = structs.replace(place.job("/bin/sh", "-c", text, limits=structs.replace(TIGHT, seconds=0)), background=True)
    await commands.run(context(), job)
    await commands.output("t", "b1-0", 0, 100, 20)
    yield process_that_runs("/bin/sh", "-c", text)


@pytest.mark.parametrize("way", WAYS)
class TestACommand:
    async def test_is_in_a_group_of_its_own_and_so_is_what_it_starts(self, way: str) -> None:
        groups_or_skip()
        with world(way, os.geteuid()) as place:
            commands = place.commands()
            async with running(place, commands) as pid:
                own, runner = groups_of(pid), runner_of(place)
                assert own.count(f"/everloop-{runner}-") == len(set(find_places()[1].values()))
                assert [groups_of(child) for child in children_of(pid)] == [own]
                assert "/everloop-" not in groups_of(runner)
            await commands.stop("t")
            await commands.close()

    async def test_cannot_take_more_between_two_looks(self, way: str) -> None:
        groups_or_skip()
        with world(way, os.geteuid()) as place:
            job = place.job(SYSTEM_PYTHON, "-c", HOARD, limits=TIGHT)
            outcome = await run_once(place.commands(), job)
            assert (outcome.status, outcome.output) == ("memory", "")

    async def test_gets_as_much_as_it_may_have(self, way: str) -> None:
        groups_or_skip()
        with world(way, os.geteuid()) as place:
            job = place.job(SYSTEM_PYTHON, "-c", HOARD, limits=structs.replace(TIGHT, memory=512 << 20))
            outcome = await run_once(place.commands(), job)
            assert (outcome.status, outcome.output) == ("exited", "held\n")

    async def test_ends_as_a_whole_when_the_kernel_has_ended_a_part(self, way: str) -> None:
        groups_or_skip()
        with world(way, os.geteuid()) as place:
            script = f'{SYSTEM_PYTHON} -c "{HOARD}"; sleep 600'
            outcome = await run_once(place.commands(), place.job("/bin/sh", "-c", script, limits=TIGHT))
            assert outcome.status == "memory"

    async def test_cannot_start_more_processes_than_it_may(self, way: str) -> None:
        if "pids" not in groups_or_skip().controllers:
            pytest.skip("the kernel has no controller for the number of processes here")
        bomb = """
import os, time
made = 0
try:
    while made < 500:
        if not os.fork(): time.sleep(600); os._exit(0)
        made += 1
except BlockingIOError: print("refused", 60 <= made <= 64, flush=True)
time.sleep(600)
"""
        limits = structs.replace(TIGHT, memory=2 << 30)
        with world(way, os.geteuid()) as place:
            outcome = await run_once(place.commands(), place.job(SYSTEM_PYTHON, "-c", bomb, limits=limits))
            assert (outcome.status, outcome.output) == ("processes", "refused True\n")

    async def test_reads_and_writes_more_of_files_than_it_may_hold(self, way: str) -> None:
        """What the kernel keeps of files counts for the group too, but it gives that back."""
        groups_or_skip()
        with world(way, os.geteuid()) as place:
            script = "head -c 300M /dev/zero > x && wc -c < x"
            outcome = await run_once(place.commands(), place.job("/bin/sh", "-c", script, limits=TIGHT))
            assert (outcome.status, outcome.output.strip()) == ("exited", str(300 << 20))

    async def test_can_neither_see_nor_leave_its_group(self, way: str) -> None:
        groups_or_skip()
        with world(way, os.geteuid()) as place:
            assert await self.attempts(place, way) == (set(), True)

    async def test_that_nothing_confines_can_leave_it_as_root(self, way: str) -> None:
        """Which shows that the attempts before are real ones."""
        groups_or_skip()
        with world(way, os.geteuid()) as place:
            written, stayed = await self.attempts(place, "none")
            assert (bool(written), stayed) == (True, False)

    async def attempts(self, place: World, way: str) -> tuple[set[str], bool]:
        """Which files of its group and of those above it a command could write, and whether it is still in it."""
        groups = [str(Path(base)) for base in set(find_places()[1].values())]
        script = f"""
import glob, os, sys
for base in {groups!r}:
    for group in (base, *glob.glob(base + "/everloop-*")):
        for name in ("cgroup.procs", "memory.limit_in_bytes", "memory.max", "pids.max", "tasks"):
            path = f"{{group}}/{{name}}"
            try: fd = os.open(path, os.O_WRONLY)
            except OSError: continue
            print(path)
            if group == base and name == "cgroup.procs": os.write(fd, str(os.getpid()).encode())
print("over", flush=True)
sys.stdin.read()
"""
        commands = place.commands(way)
        job = structs.replace(place.job(SYSTEM_PYTHON, "-c", script), background=True)
        await commands.run(context(), job)
        said = ""
        while "over\n" not in said:
            outcome, _ = await commands.output("t", "b1-0", len(said.encode()), 1 << 16, 20)
            said += outcome.output + outcome.stderr
        pid = process_that_runs(SYSTEM_PYTHON, "-c", script)
        stayed = groups_of(pid).count(f"/everloop-{runner_of(place)}-") == len(groups)
        await commands.stop("t")
        await commands.close()
        return set(said.splitlines()) - {"over"}, stayed

    async def test_is_told_in_the_log_by_whom_it_is_held(self, way: str, caplog: pytest.LogCaptureFixture) -> None:
        groups = groups_or_skip()
        name = {"bwrap": "bubblewrap"}.get(way, way)
        with caplog.at_level(logging.INFO, "everloop.sandbox"):
            for uid in (os.geteuid(), NOBODY):
                with world(way, uid) as place:
                    commands = place.commands()
                    for number in (1, 2):
                        await commands.run(context(number), place.job("/bin/true"))
                    await commands.close()
        assert caplog.messages == [
            f"commands are confined by {name}, their limits held by the kernel, in control groups "
            f"(version {groups.version}: {', '.join(groups.controllers)})",
            f"commands are confined by {name}, their limits counted, ten times a second",
        ]


@pytest.mark.parametrize("way", WAYS)
class TestGroups:
    async def test_are_gone_with_their_command_and_the_runner(self, way: str) -> None:
        groups_or_skip()
        with world(way, os.geteuid()) as place:
            commands = place.commands()
            for number in range(5):
                assert (await commands.run(context(number), place.job("/bin/echo", "on"))).output == "on\n"
            runner = runner_of(place)
            await commands.close()
            await see_gone(runner)
            assert left_by(runner) == []

    async def test_of_a_runner_that_was_killed_are_removed_by_the_next(self, way: str) -> None:
        groups_or_skip()
        with world(way, os.geteuid()) as place:
            commands = place.commands()
            async with running(place, commands) as pid:
                runner = runner_of(place)
                made = left_by(runner)  # seen before the kill: from then on any other runner may remove them
                assert made != []
                inside = processes_in(made)
                os.kill(runner, signal.SIGKILL)
                for each in (runner, pid, *inside):  # none outlives the runner
                    await see_gone(each)
            await commands.close()
            await run_once(place.commands(), place.job("/bin/true"), number=2)
            assert left_by(runner) == []


class TestWhatWasLeft:
    def test_is_known_by_its_lock_not_by_the_number_of_a_process(self) -> None:
        groups = groups_or_skip()
        alive, dead = groups.make(), groups.make()
        for lock in dead._locks:  # as the kernel does when a process ends
            os.close(lock)
        groups.sweep()
        try:
            assert [all(map(os.path.exists, each.doors)) for each in (alive, dead)] == [True, False]
            assert alive.remove()
        finally:
            alive.remove()

    def test_stays_as_long_as_a_process_is_in_it(self) -> None:
        groups = groups_or_skip()
        group = groups.make()
        with waiting_in(group):
            groups.remove(group)
            assert os.path.exists(group.doors[0])
        groups.make().remove()
        assert not os.path.exists(group.doors[0])

    def test_is_told_from_what_was_made_this_moment(self) -> None:
        """Which has no lock yet when another process sweeps: it is made again then."""
        groups = groups_or_skip()
        parent, sweeper = os.getpid(), os.fork()
        if not sweeper:
            try:
                while os.getppid() == parent:
                    groups.sweep()
            finally:
                os._exit(0)
        try:
            for _ in range(100):
                group = groups.make()
                assert all(map(os.path.exists, group.doors))
                groups.remove(group)
        finally:
            os.kill(sweeper, signal.SIGKILL)
            os.waitpid(sweeper, 0)


class waiting_in:
    """A process in a group, that ends when the block is left."""

    def __init__(self, group: Cgroup) -> None:
        self._group = group

    def __enter__(self) -> None:
        ready, say = os.pipe()
        wait, self._end = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            os.close(self._end)
            for door in self._group.doors:
                Path(door).write_text("0")
            os.write(say, b"x")
            os.read(wait, 1)
            os._exit(0)
        os.read(ready, 1)
        for fd in (ready, say, wait):
            os.close(fd)

    def __exit__(self, *_: object) -> None:
        os.close(self._end)
        os.waitpid(self._pid, 0)


class Tree:
    """A tree of control groups of version 2 as the kernel would show it to us: plain files."""

    def __init__(self, folder: Path) -> None:
        self.root, self.proc = folder / "cgroup", folder / "proc"
        self.proc.mkdir()
        (self.proc / "mountinfo").write_text(
            f"25 20 0:22 / /proc rw - proc proc rw\n30 20 0:25 / {self.root} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
        )

    def group(self, path: str, shares: str = "", **files: str) -> Path:
        folder = self.root / path
        folder.mkdir(parents=True, exist_ok=True)
        wanted = {
            "cgroup_procs": "", "cgroup_controllers": "cpu memory pids", "cgroup_subtree_control": shares,
            "cgroup_type": "domain", "memory_max": "max", "memory_high": "max", **files,
        }  # fmt: skip
        for name, text in wanted.items():
            (folder / name.replace("_", ".", 1)).write_text(text + "\n")
        return folder

    def live_in(self, path: str, **files: str) -> Path:
        (self.proc / "cgroup").write_text(f"0::/{path}\n")
        return self.group(path, cgroup_procs=f"1\n{os.getpid()}", **files)

    def places(self) -> tuple[int, dict[str, str]]:
        return find_places(str(self.proc))


def both(folder: Path) -> tuple[int, dict[str, str]]:
    return 2, {"memory": str(folder), "pids": str(folder)}


NOWHERE: tuple[int, dict[str, str]] = (1, {})


class TestInVersion2:
    def test_a_user_of_systemd_has_groups_beside_that_of_the_terminal(self, tmp_path: Path) -> None:
        tree = Tree(tmp_path)
        slice_ = tree.group("user.slice/user-1000.slice/user@1000.service/app.slice", shares="memory pids")
        tree.live_in("user.slice/user-1000.slice/user@1000.service/app.slice/terminal.scope")
        assert tree.places() == both(slice_)

    @pytest.mark.parametrize(("name", "value"), [("memory_max", "4294967296"), ("memory_high", "4294967296")])
    def test_not_if_they_would_get_out_of_a_limit(self, tmp_path: Path, name: str, value: str) -> None:
        tree = Tree(tmp_path)
        tree.group("system.slice", shares="memory pids")
        tree.live_in("system.slice/everloop.service", **{name: value})
        assert tree.places() == NOWHERE

    def test_not_where_the_group_above_does_not_share_its_memory(self, tmp_path: Path) -> None:
        tree = Tree(tmp_path)
        tree.group("system.slice", shares="pids")
        tree.live_in("system.slice/everloop.service")
        assert tree.places() == NOWHERE

    def test_not_where_there_is_no_memory_controller(self, tmp_path: Path) -> None:
        tree = Tree(tmp_path)
        tree.group("system.slice", shares="memory pids")
        tree.live_in("system.slice/everloop.service", cgroup_controllers="pids hugetlb")
        assert tree.places() == NOWHERE

    def test_not_where_the_folder_is_that_of_another(self, tmp_path: Path) -> None:
        """As in a container, where the names of groups are those of the machine."""
        tree = Tree(tmp_path)
        tree.group("system.slice", shares="memory pids")
        tree.live_in("system.slice/everloop.service")
        tree.group("system.slice/everloop.service", cgroup_procs="1")
        assert tree.places() == NOWHERE

    def test_memory_alone_is_enough(self, tmp_path: Path) -> None:
        tree = Tree(tmp_path)
        slice_ = tree.group("system.slice", shares="memory")
        tree.live_in("system.slice/everloop.service")
        assert tree.places() == (2, {"memory": str(slice_)})

    def test_a_service_to_which_its_group_was_given_has_them_in_it(self, tmp_path: Path) -> None:
        tree = Tree(tmp_path)
        tree.group("system.slice", shares="memory pids")
        own = tree.live_in("system.slice/everloop.service", shares="memory pids", memory_max="4294967296")
        delegate(own)
        (own / "everloop").mkdir()
        (own / "everloop/cgroup.procs").touch()
        assert tree.places() == both(own)
        assert (own / "everloop/cgroup.procs").read_text().endswith(str(os.getpid()))  # so we have a group of our own

    def test_and_finds_them_again_from_the_group_of_its_own(self, tmp_path: Path) -> None:
        tree = Tree(tmp_path)
        service = tree.group("system.slice/everloop.service", shares="memory pids", memory_max="4294967296")
        delegate(service)
        tree.live_in("system.slice/everloop.service/everloop", memory_max="1")
        assert tree.places() == both(service)

    def test_the_root_of_the_machine_may_have_both(self, tmp_path: Path) -> None:
        tree = Tree(tmp_path)
        root = tree.live_in("", shares="memory pids")
        (root / "cgroup.type").unlink()
        assert tree.places() == both(root)


def delegate(folder: Path) -> None:
    try:
        os.setxattr(folder, "user.delegate", b"1")
    except OSError:
        pytest.skip("files cannot be given attributes here")
