"""A command is bounded as a whole: memory wherever it is held, processes and threads, bytes and files on the disk.

A hoard is a program that takes about 200 MiB in one place of the kernel's, or very many of something. Each runs twice:
with a limit that it passes, and as a control with one that it does not, where it must get what it wants.
"""

import asyncio
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from msgspec import structs

from everloop.errors import ToolError
from everloop.tools.exec import said
from everloop.tools.sandbox import spool
from everloop.tools.sandbox.command import is_short_of_memory
from everloop.tools.sandbox.disk import Disk, too_many, too_much
from everloop.tools.sandbox.door import Door
from everloop.tools.sandbox.port import CommandLimits, Outcome, Status
from everloop.tools.sandbox.runner import NAME
from everloop.tools.sandbox.usage import Machine

from .sandbox_helpers import NOBODY, SYSTEM_PYTHON, World, context, run_once, world

USERS = [pytest.param(os.geteuid(), id="self"), pytest.param(NOBODY, id="nobody")]
WAYS = ["bwrap", "landlock"]
TIGHT = CommandLimits(seconds=60, memory=96 << 20, processes=60)
AMPLE = CommandLimits(seconds=60, memory=4 << 30, processes=5000)

FILL = """
def fill(sock):
    sock.setblocking(False)
    try:
        while True: sock.send(bytes(65536))
    except BlockingIOError: pass
"""
IN_BOTH_WAYS = {
    "pipes": """
k = []
for n in range(40):
    if not os.fork():
        for _ in range(300):
            r, w = os.pipe(); os.set_blocking(w, False); k.append((r, w))
            try:
                while True: os.write(w, bytes(4096))
            except BlockingIOError: pass
        print("held", flush=True); time.sleep(60 if STAY else 0); os._exit(0)
for n in range(40): os.wait()
""",
    "pairs of sockets": """
k = []
for n in range(350):
    a, b = socket.socketpair(); a.setsockopt(1, 7, 8 << 20); k.append((a, b)); fill(a); fill(b)
""",
    "shared memory that nobody has mapped": """
k = []
for n in range(20):
    m = mmap.mmap(-1, 10 << 20); m[::4096] = bytes(2560); m.madvise(mmap.MADV_DONTNEED); k.append(m)
""",
    "shared memory that a child has filled": """
k = []
for n in range(20):
    m = mmap.mmap(-1, 10 << 20); k.append(m)
    if not os.fork(): m[::4096] = bytes(2560); os._exit(0)
    os.wait()
""",
    "shared memory of which a page is left mapped": """
libc.mmap.restype = ctypes.c_void_p
for n in range(20):
    at = libc.mmap(None, ctypes.c_size_t(10 << 20), 3, 0x21, -1, 0)
    ctypes.memset(at, 1, 10 << 20); libc.munmap(ctypes.c_void_p(at + 4096), ctypes.c_size_t((10 << 20) - 4096))
""",
    "shared memory of a process that hides itself": """
libc.prctl(4, 0); k = []
for n in range(20):
    m = mmap.mmap(-1, 10 << 20); m[::4096] = bytes(2560); m.madvise(mmap.MADV_DONTNEED); k.append(m)
""",
    "page tables": """
k = []
for n in range(100):
    m = mmap.mmap(-1, 1 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ); m.madvise(15); k.append(m)
    for at in range(0, 1 << 30, 2 << 20): m[at]
""",
    "many processes": """
for n in range(20):
    if not os.fork():
        k = bytearray(10 << 20); k[::4096] = bytes(2560); time.sleep(60 if STAY else 2); os._exit(0)
time.sleep(1)
""",
}
IN_BUBBLEWRAP = {
    "sockets that nobody has accepted": """
l = socket.socket(1); l.bind("\\0x"); l.listen(1000)
for n in range(700):
    c = socket.socket(1); c.setsockopt(1, 7, 8 << 20); c.connect("\\0x"); fill(c); c.close()
""",
    "sockets that are on their way": """
k = []
for n in range(700):
    if n % 100 == 0: a, b = socket.socketpair(); k += [a, b]
    c, d = socket.socketpair(); fill(c); c.close()
    a.sendmsg([b"x"], [(1, 1, array.array("i", [d.fileno()]))]); d.close()
""",
    "datagrams": """
k = []
for n in range(120):
    r = socket.socket(1, 2); r.bind(f"\\0r{n}"); k.append(r)
    for _ in range(10):
        c = socket.socket(1, 2); c.connect(f"\\0r{n}"); c.send(bytes(150000)); c.close()
""",
    "connections": """
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(1000); k = []
for n in range(150):
    c = socket.create_connection(l.getsockname()); fill(c); k.append(c)
""",
    "packets": """
k = []
for n in range(900):
    r = socket.socket(2, 2); r.setsockopt(1, 8, 8 << 20); r.bind(("127.0.0.1", 0)); k.append(r)
    for _ in range(4): socket.socket(2, 2).sendto(bytes(60000), r.getsockname())
""",
    "files in /tmp": """
for n in range(20): open(f"/tmp/{n}", "wb").write(bytes(10 << 20))
""",
    "deleted files in /tmp that are open": """
k = []
for n in range(20):
    f = open("/tmp/x", "wb"); f.write(bytes(10 << 20)); f.flush(); os.unlink("/tmp/x"); k.append(f)
""",
    "files without anything in them in /tmp": """
for n in range(120000): os.close(os.open(f"/tmp/{n}", os.O_CREAT))
""",
}
BY_MAPPING = "; ".join(
    [
        "import mmap, os",
        'fd = os.open("1", os.O_CREAT | os.O_RDWR)',
        "os.ftruncate(fd, 30 << 20)",
        "m = mmap.mmap(fd, 0)",
        'm[:] = b"x" * len(m)',
    ]
)
COUNTED_OTHERWISE = {
    "threads": """
threading.stack_size(65536)
for n in range(300): threading.Thread(target=time.sleep, args=(60 if STAY else 1,), daemon=True).start()
""",
    "orphans in sessions of their own": """
for n in range(150):
    if not os.fork():
        os.setsid()
        if not os.fork(): time.sleep(60 if STAY else 2)
        os._exit(0)
    if os.wait()[1]: os._exit(1)
""",
}
ALLOW_ALL = struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF0000)  # a filter of one instruction
REFUSED = """
def tried(*args):
    return errno.errorcode[ctypes.get_errno()] if libc.syscall(*args) < 0 else "granted"
print(tried(319, b"x", 0), tried(447, 0), tried(278, 1, 0, 0, 0), end=" ")
print(tried(29, 0, 1 << 20, 0o1600), tried(29, 0, ctypes.c_size_t(1 << 32), 0o1600))
print(tried(68, 0, 0o1600), tried(64, 0, 1000, 0o600), tried(285, os.open("f", os.O_CREAT | os.O_RDWR), 0, 0, 4096))
"""
ON_THEIR_WAY = """
k = []
try:
    for n in range(3000):
        if n % 100 == 0: a, b = socket.socketpair(); k += [a, b]
        c, d = socket.socketpair(); a.sendmsg([b"x"], [(1, 1, array.array("i", [d.fileno()]))]); c.close(); d.close()
except OSError as error: print(errno.errorcode[error.errno], n <= 1025)
"""
START = "import array, ctypes, errno, mmap, os, socket, threading, time\nlibc = ctypes.CDLL(None, use_errno=True)\n"


def program(hoard: str, stay: bool) -> tuple[str, ...]:
    text = f"{START}{FILL}STAY = {stay}\n{hoard}\nprint('held', flush=True)\ntime.sleep(60 if STAY else 0)"
    return SYSTEM_PYTHON, "-c", text


async def outcomes(place: World, hoards: dict[str, str], limits: CommandLimits, stay: bool) -> dict[str, str]:
    """How each of these ended, all at once, or that it held what it wanted."""
    commands = place.commands()

    async def outcome(number: int, hoard: str) -> str:
        ended = await commands.run(context(number, f"t{number}"), place.job(*program(hoard, stay), limits=limits))
        return "held" if (ended.status, ended.code) == ("exited", 0) and "held" in ended.output else ended.status

    found = await asyncio.gather(*(outcome(number, text) for number, text in enumerate(hoards.values())))
    await commands.close()
    return dict(zip(hoards, found, strict=True))


@pytest.mark.parametrize("uid", USERS)
@pytest.mark.parametrize("way", WAYS)
class TestMemory:
    def hoards(self, way: str) -> dict[str, str]:
        return {**IN_BOTH_WAYS, **(IN_BUBBLEWRAP if way == "bwrap" else {})}

    async def test_wherever_it_is_held_it_counts(self, way: str, uid: int) -> None:
        with world(way, uid) as place:
            hoards = self.hoards(way)
            found = await outcomes(place, hoards, TIGHT, stay=True)
            if uid == 0 and found.get("datagrams") == "exited":  # in a control group the kernel may also refuse it
                del found["datagrams"], hoards["datagrams"]
            assert found == dict.fromkeys(hoards, "memory")

    async def test_and_as_much_as_is_allowed_may_be_held(self, way: str, uid: int) -> None:
        with world(way, uid) as place:
            hoards = self.hoards(way)
            assert await outcomes(place, hoards, AMPLE, stay=False) == dict.fromkeys(hoards, "held")


SMALL = CommandLimits(seconds=60, memory=24 << 20)
FULL_PIPE = """
def full_pipe():
    r, w = os.pipe(); os.set_blocking(w, False)
    try:
        while True: os.write(w, bytes(4096))
    except BlockingIOError: return r, w
"""
IN_PIPES = {
    "as they come": FULL_PIPE + "k = [full_pipe() for n in range(480)]",
    "that are on their way": FULL_PIPE
    + """
k = []
for n in range(480):
    if n % 50 == 0: a, b = socket.socketpair(); k += [a, b]
    r, w = full_pipe(); os.close(w); a.sendmsg([b"x"], [(1, 1, array.array("i", [r]))]); os.close(r)
""",
}
PIPE_SIZES = """
import fcntl
r, w = os.pipe()
for size in (1 << 20, 131072, 65537, 0xFFFFFFFF, 65536, 4096):
    try: print(fcntl.fcntl(w, 1031, size if size < 1 << 31 else size - (1 << 32)), end=" ")
    except OSError as error: print(errno.errorcode[error.errno], end=" ")
print(fcntl.fcntl(w, 1032), fcntl.fcntl(w, fcntl.F_GETFL) & os.O_WRONLY)
"""


@pytest.mark.parametrize("uid", USERS)
@pytest.mark.parametrize("way", WAYS)
class TestPipes:
    """They hold 30 MiB at their usual size, when not more than 24 are allowed in all."""

    async def test_count_with_what_they_can_hold(self, way: str, uid: int) -> None:
        with world(way, uid) as place:
            found = await outcomes(place, IN_PIPES, SMALL, stay=True)
            assert found == dict.fromkeys(IN_PIPES, "memory")

    async def test_and_as_many_as_are_allowed_may_be(self, way: str, uid: int) -> None:
        with world(way, uid) as place:
            found = await outcomes(place, IN_PIPES, structs.replace(SMALL, memory=160 << 20), stay=False)
            assert found == dict.fromkeys(IN_PIPES, "held")

    async def test_a_few_do_not_matter_where_little_is_allowed(self, way: str, uid: int) -> None:
        with world(way, uid) as place:
            few = {"few": FULL_PIPE + "k = [full_pipe() for n in range(60)]\ntime.sleep(0.5)"}
            assert await outcomes(place, few, structs.replace(SMALL, memory=32 << 20), stay=False) == {"few": "held"}

    async def test_do_not_grow_but_shrink(self, way: str, uid: int) -> None:
        with world(way, uid) as place:
            outcome = await run_once(place.commands(), place.job(SYSTEM_PYTHON, "-c", f"{START}{PIPE_SIZES}"))
            assert outcome.output == "EPERM EPERM EPERM EPERM 65536 4096 4096 1\n"

    async def test_grow_where_nothing_refuses_it(self, way: str, uid: int) -> None:
        with world(way, uid) as place:
            outcome = await run_once(place.commands("none"), place.job(SYSTEM_PYTHON, "-c", f"{START}{PIPE_SIZES}"))
            assert outcome.output.startswith("1048576 131072 131072 ")


# Looks at a process with many descriptors from when it is about to end until it has.
ENDING = """
import os, sys
sys.path.insert(0, sys.argv[1])
from everloop.tools.sandbox import usage
made_up = 0
for n in range(40):
    r, w = os.pipe()
    pid = os.fork()
    if not pid:
        for _ in range(450): os.pipe()
        os.write(w, b"x"); os._exit(0)
    os.read(r, 1); os.close(r); os.close(w)
    while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        made_up += any(link.startswith(f"socket:{pid}/") for link in usage._links(pid))
    os.waitpid(pid, 0)
print(made_up)
"""


def test_a_process_that_is_about_to_end_hides_nothing() -> None:
    """Where it cannot be looked into for a moment, which it cannot by any but root, nothing is made up."""
    with world("none", NOBODY) as place:
        argv = [*place.prefix(), SYSTEM_PYTHON, "-c", ENDING, str(place.base / "package")]
        assert subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout == "0\n"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of these calls are those of x86-64")
@pytest.mark.parametrize("uid", USERS)
class TestRefused:
    @pytest.mark.parametrize(
        ("way", "of_system_v"), [("bwrap", ("EINVAL EINVAL", "ENOSYS EINVAL")), ("landlock", ("EPERM EPERM",) * 2)]
    )
    async def test_what_nobody_could_count(self, way: str, uid: int, of_system_v: tuple[str, str]) -> None:
        with world(way, uid) as place:
            outcome = await run_once(place.commands(), place.job(SYSTEM_PYTHON, "-c", f"{START}{REFUSED}"))
            assert outcome.output == f"ENOSYS ENOSYS ENOSYS {of_system_v[0]}\n{of_system_v[1]} ENOTSUP\n"

    async def test_also_where_an_older_everloop_has_left_a_filter_that_refuses_less(self, uid: int) -> None:
        with world("bwrap", uid) as place:
            for name in ("filter", f"{NAME}.filter"):
                (place.spool / name).write_bytes(ALLOW_ALL)
                os.chown(place.spool / name, uid, uid)
            outcome = await run_once(place.commands(), place.job(SYSTEM_PYTHON, "-c", f"{START}{REFUSED}"))
            assert outcome.output.startswith("ENOSYS ENOSYS ENOSYS ")
            assert (place.spool / f"{NAME}.filter").read_bytes() != ALLOW_ALL

    async def test_but_not_a_little_system_v_memory_for_postgresql_needs_it(self, uid: int) -> None:
        text = f"{START}print(libc.shmget(0, 56, 0o1600) >= 0, libc.semget(0, 17, 0o1600) >= 0)"
        with world("bwrap", uid) as place:
            assert (await run_once(place.commands(), place.job(SYSTEM_PYTHON, "-c", text))).output == "True True\n"

    async def test_many_sockets_that_are_on_their_way_where_they_cannot_be_counted(self, uid: int) -> None:
        with world("landlock", uid) as place:
            outcome = await run_once(place.commands(), place.job(SYSTEM_PYTHON, "-c", f"{START}{ON_THEIR_WAY}"))
            assert outcome.output == "ETOOMANYREFS True\n"


@pytest.mark.parametrize("uid", USERS)
@pytest.mark.parametrize("way", WAYS)
class TestProcesses:
    async def test_threads_and_orphans_count(self, way: str, uid: int) -> None:
        with world(way, uid) as place:
            limits = CommandLimits(seconds=60, processes=60)
            found = await outcomes(place, COUNTED_OTHERWISE, limits, stay=True)
            assert set(found.values()) <= {"processes", "exited"}  # the latter where the kernel grants no more

    async def test_and_as_many_as_are_allowed_may_be(self, way: str, uid: int) -> None:
        with world(way, uid) as place:
            found = await outcomes(place, COUNTED_OTHERWISE, AMPLE, stay=False)
            assert found == dict.fromkeys(COUNTED_OTHERWISE, "held")


@contextmanager
def mounted(folder: Path, *mount: str) -> Iterator[None]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    if subprocess.run(["mount", *mount, str(folder)], capture_output=True).returncode:
        pytest.skip("no small file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def in_memory(place: World, options: str) -> AbstractContextManager[None]:
    """The workspace is a file system of its own, in memory."""
    return mounted(place.workspace, "-t", "tmpfs", "-o", f"{options},uid={place.uid}", "none")


@contextmanager
def on_a_disk(place: World) -> Iterator[None]:
    """The workspace is a small disk, for which the kernel says who has written."""
    image = place.base / "image"
    with image.open("wb") as file:
        file.truncate(256 << 20)
    if not shutil.which("mkfs.ext4") or subprocess.run(["mkfs.ext4", "-q", "-F", str(image)]).returncode:
        pytest.skip("there is no mkfs.ext4")
    with mounted(place.workspace, "-o", "loop", str(image)):
        os.chown(place.workspace, place.uid, place.uid)
        yield


@pytest.mark.parametrize("uid", USERS)
@pytest.mark.parametrize("way", WAYS)
class TestDisk:
    async def outcome(self, place: World, command: str, limits: CommandLimits) -> Outcome:
        return await run_once(place.commands(), place.job("/bin/bash", "-c", command, limits=limits))

    @pytest.mark.parametrize(
        ("options", "command", "status"),
        [
            ("size=256m", "for n in 1 2 3; do head -c 10M /dev/zero > $n; done; sleep 60", "growth"),
            ("size=256m", "fallocate -l 30M 1 || head -c 30M /dev/zero > 1; sleep 60", "growth"),
            ("size=256m", "(setsid head -c 30M /dev/zero > 1 &) ; sleep 60", "growth"),
            ("size=256m", "exec 3> 1; rm 1; head -c 30M /dev/zero >&3; sleep 60", "growth"),
            ("size=256m", "head -c 15M /dev/zero > 1; rm 1; head -c 15M /dev/zero > 1; echo done", "exited"),
            ("size=256m,nr_inodes=9000", "seq 3000 | xargs touch; sleep 60", "files"),
            ("size=256m,nr_inodes=9000", "seq 1500 | xargs touch; seq 1500 | xargs rm; echo done", "exited"),
            ("size=20m", "head -c 19500K /dev/zero > 1; sleep 60", "full"),
            ("size=256m,nr_inodes=1000", "seq 970 | xargs touch; sleep 60", "full"),
        ],
    )
    async def test_what_it_adds_is_bounded(self, way: str, uid: int, options: str, command: str, status: str) -> None:
        with world(way, uid) as place, in_memory(place, options):
            outcome = await self.outcome(place, command, CommandLimits(seconds=60, disk=20 << 20, files=2000))
            assert (outcome.status, outcome.output) == (status, "done\n" if status == "exited" else "")

    async def test_files_of_its_own_outside_of_the_workspace_count_too(self, way: str, uid: int) -> None:
        """In bubblewrap its /tmp is memory, else a folder of the spool."""
        with world(way, uid) as place:
            limits = CommandLimits(seconds=60, memory=20 << 20, disk=20 << 20)
            outcome = await self.outcome(place, "head -c 30M /dev/zero > $TMPDIR/x; sleep 60", limits)
            assert outcome.status == ("memory" if way == "bwrap" else "growth")

    async def test_in_the_background_as_well(self, way: str, uid: int) -> None:
        with world(way, uid) as place, in_memory(place, "size=256m"):
            commands = place.commands()
            limits = CommandLimits(seconds=0, disk=20 << 20)
            job = structs.replace(
                place.job("/bin/sh", "-c", "head -c 30M /dev/zero > 1; sleep 60", limits=limits), background=True
            )
            assert (await commands.run(context(), job)).status == "running"
            outcome, _ = await commands.output("t", "b1-0", 0, 100, 60)
            await commands.close()
            assert outcome.status == "growth"

    @pytest.mark.parametrize("command", ["head -c 30M /dev/zero > 1", f"{SYSTEM_PYTHON} -c '{BY_MAPPING}'"])
    async def test_however_it_writes_it_is_known_as_the_writer(self, way: str, uid: int, command: str) -> None:
        with world(way, uid) as place, on_a_disk(place):
            outcome = await self.outcome(place, f"{command}; sleep 60", CommandLimits(seconds=60, disk=20 << 20))
            assert outcome.status == "growth"

    async def test_what_others_add_does_not_count(self, way: str, uid: int) -> None:
        with world(way, uid) as place, on_a_disk(place):
            commands = place.commands()
            limits = CommandLimits(seconds=60, disk=20 << 20)
            wait = place.job("/bin/sh", "-c", "echo on; until [ -e go ]; do sleep 0.1; done; echo off", limits=limits)
            begun = asyncio.Event()
            idle = asyncio.create_task(commands.run(context(1, "a"), wait, lambda _: begun.set()))
            await begun.wait()
            (place.workspace / "of-another").write_bytes(bytes(60 << 20))
            write = place.job("/bin/sh", "-c", "head -c 30M /dev/zero > 1; sleep 60", limits=limits)
            assert (await commands.run(context(1, "b"), write)).status == "growth"  # so both have been looked at
            (place.workspace / "go").touch()
            assert ((await idle).status, (await idle).output) == ("exited", "on\noff\n")
            await commands.close()


@pytest.mark.parametrize(
    ("own", "foreign", "why"), [(400, 0, "files"), (10, 600, ""), (290, 600, ""), (310, 600, "files")]
)
def test_files_that_others_make_do_not_count(tmp_path: Path, own: int, foreign: int, why: str) -> None:
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=16m,nr_inodes=50000", "none"):
        workspace = tmp_path / "workspace"
        workspace.mkdir()
        disk = Disk([str(workspace)], workspace.stat().st_dev)
        for place, count in ((workspace / "own", own), (tmp_path / "others", foreign)):
            place.mkdir()
            for number in range(count):
                (place / str(number)).touch()
        looks = (disk.exceeded(1 << 40, 300, lambda: 0.0) for _ in range(50))
        assert next(filter(None, looks), "") == why


def disk(free: int, files: int = 500, size: int = 1 << 40) -> os.statvfs_result:
    """A file system of so many bytes, and of 1000 files, with so much free."""
    return os.statvfs_result((4096, 4096, size >> 12, free >> 12, free >> 12, 1000, files, files, 0, 255))


GIGA = 1 << 30


@pytest.mark.parametrize(
    ("began", "now", "written", "why"),
    [
        (disk(100 * GIGA), disk(97 * GIGA), 3 * GIGA, ""),
        (disk(100 * GIGA), disk(95 * GIGA), 5 * GIGA, "growth"),
        (disk(100 * GIGA), disk(95 * GIGA), 3 * GIGA, ""),  # others did the rest
        (disk(100 * GIGA), disk(105 * GIGA), 9 * GIGA, ""),
        (disk(4 * GIGA), disk(GIGA), 3 * GIGA, "full"),
        (disk(4 * GIGA), disk(GIGA), 1 << 20, ""),
        (disk(GIGA), disk(GIGA - (100 << 20)), 100 << 20, ""),  # what is small has room on a full disk too
        (disk(GIGA), disk(GIGA - (200 << 20)), 200 << 20, "full"),
    ],
)
def test_a_growth_is_too_much_by_what_is_left_and_who_did_it(
    began: os.statvfs_result, now: os.statvfs_result, written: int, why: str
) -> None:
    assert too_much(began, now, 4 * GIGA, lambda: float(written)) == why


@pytest.mark.parametrize(
    ("began", "now", "why"), [(900, 800, ""), (900, 690, "files"), (100, 40, "full"), (45, 44, ""), (100, 60, "")]
)
def test_files_are_too_many_by_their_number_and_by_how_many_are_left(began: int, now: int, why: str) -> None:
    assert too_many(disk(GIGA, began), disk(GIGA, now), began - now, 200) == why


class Memory(Machine):
    def __init__(self, available: int) -> None:
        self.memory, self.available, self.shared = 100, available, 0


def test_commands_go_first_when_memory_becomes_short_in_their_time() -> None:
    became = {(began, now): is_short_of_memory(Memory(began), Memory(now)) for began in (50, 6, 4) for now in (20, 4)}
    assert became == {(50, 20): False, (50, 4): True, (6, 20): False, (6, 4): False, (4, 20): False, (4, 4): False}


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ("memory", "ended because it used more than 2048 MiB of memory"),
        ("machine", "ended because the machine was running out of memory"),
        ("processes", "ended because it had more than 256 processes and threads"),
        ("disk", "ended because its output could not be kept: the disk is full"),
        ("growth", "ended because it added more than 4096 MiB to the disk; what it wrote is still there"),
        ("files", "ended because it made more than 200,000 files; they are still there"),
        ("full", "ended because it filled a disk that has little left; what it wrote is still there"),
    ],
)
def test_the_model_is_told_which_limit_it_was(status: Status, sentence: str) -> None:
    text = said(Outcome(status, 137, "on\n"), CommandLimits(), "1-0")
    assert text == f"[{sentence}]\non\n"
    assert len(sentence) <= len("ended ") + 100  # or a summary would not know it for a failure


def skip_unless_mounts_can_be_made() -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("only root can put another file in the place of one of /etc, in a namespace of its own")


class TestWhatCannotBeRead:
    def test_of_etc_is_copied_what_can_be(self, tmp_path: Path) -> None:
        etc, copy = tmp_path / "outside", tmp_path / "etc"
        (etc / "ssl/certs").mkdir(parents=True)
        (etc / "ssl/certs/a.pem").write_text("a")
        (etc / "ssl/certs/link.pem").symlink_to("a.pem")
        (etc / "hosts").write_text("localhost")
        (etc / "resolv.conf").symlink_to("/nowhere")
        os.mkfifo(etc / "services")
        assert spool.copy_etc(str(tmp_path), str(etc)) == [
            f"{etc}/resolv.conf: No such file or directory",
            f"{etc}/services: `{etc}/services` is a named pipe",
        ]
        assert {str(path.relative_to(copy)): path.read_text() for path in copy.rglob("*") if path.is_file()} == {
            "hosts": "localhost", "ssl/certs/a.pem": "a", "ssl/certs/link.pem": "a",
        }  # fmt: skip

    @pytest.mark.parametrize("way", WAYS)
    async def test_is_left_out_and_told_in_the_log_and_commands_run(self, way: str) -> None:
        skip_unless_mounts_can_be_made()
        with world(way, NOBODY) as place:
            secret = place.base / "unreadable"
            secret.touch(0o600)
            mount = 'mount --bind "$0" /etc/hosts && exec "$@"'
            python = ["unshare", "-m", "sh", "-c", mount, str(secret), *place.prefix(), SYSTEM_PYTHON]
            commands = place.commands(door=Door(place.spool, python, place.base / "package"))
            outcome = await run_once(commands, place.job("/bin/sh", "-c", "cat /etc/hosts; wc -l < /etc/passwd"))
            assert (outcome.status, outcome.code) == ("exited", 0)
            assert int(outcome.output) > 1
            log = (place.spool / f"{NAME}.log").read_text()
            assert log == "commands do not see /etc/hosts: Permission denied\n"

    async def test_a_folder_of_another_user_in_the_spool_does_not_matter(self) -> None:
        with world("landlock", NOBODY) as place:
            (place.spool / "of-root").mkdir(mode=0o700)
            assert (await run_once(place.commands(), place.job("/bin/echo", "on"))).output == "on\n"


class TestARunnerThatCannotStart:
    """The sentence says why."""

    async def sentence(self, door: Door) -> str:
        with pytest.raises(ToolError) as caught:
            async with door.talk({"do": "find"}):
                pass
        return str(caught.value)

    async def test_since_its_log_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / f"{NAME}.log").mkdir()
        assert await self.sentence(Door(tmp_path)) == (
            "the process that runs commands cannot be started: "
            f"IsADirectoryError: [Errno 21] Is a directory: '{tmp_path}/{NAME}.log'"
        )

    async def test_since_it_dies_later(self, tmp_path: Path) -> None:
        script = f'echo "OSError: no luck" > "$5/{NAME}.log"'
        assert await self.sentence(Door(tmp_path, ["/bin/sh", "-c", script])) == (
            "the process that runs commands cannot be started: OSError: no luck"
        )
