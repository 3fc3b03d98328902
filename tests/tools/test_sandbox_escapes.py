"""Hundreds of ways out of the sandbox lead nowhere: judged by what happens outside, not by what the sandbox says.

An escape is a snippet of shell or Python that would read a secret, change a file, reach a socket, hurt a process or
outlive its call. All of them run in one command for each way of confining and each kind of user. Some of every kind
also run unconfined, as controls, and must succeed there: so the eyes that watch are open. Nothing aims at more than
canaries of the test's own.
"""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import pytest

from everloop.tools.sandbox.port import CommandLimits
from everloop.tools.sandbox.view import python

from .sandbox_helpers import NOBODY, TOKEN, Listeners, Victim, World, processes_with, run_once, world

pytestmark = pytest.mark.timeout(600)  # hundreds of processes, one after the other

MARK = f"31415.{os.getpid()}"  # seconds that no one else sleeps
OUT = "ESC" + "APED"  # what a snippet prints when it got through without leaving a trace outside

# Output goes into files: who outlives its snippet would hold a pipe open, and some snippets read any pipe they find.
DRIVER = """
import json, subprocess, sys
patience = float(sys.argv[1])
results = open("results", "wb", 0)
for number, (language, text) in enumerate(json.load(open("escapes.json"))):
    results.write(f"\\n### {number}\\n".encode())
    argv = ["bash", "-c", text] if language == "sh" else [sys.executable, "-I", "-c", text]
    with open("said", "w+b") as said:
        try:
            subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=patience)
        except (subprocess.TimeoutExpired, OSError) as error:
            results.write(type(error).__name__.encode())
        said.seek(0)
        results.write(said.read(4000))
results.write(b"\\n### end")
"""


class Escape(NamedTuple):
    kind: str
    language: str
    text: str
    control: bool = False  # must succeed without a sandbox, and is harmless there


class Target(NamedTuple):
    """What escapes aim at."""

    world: World
    victim: Victim
    listeners: Listeners
    fd: int  # of a secret that the worker holds open


def reads(target: Target) -> Iterator[Escape]:
    root = os.path.relpath("/", target.world.workspace)
    for index, secret in enumerate(target.world.secrets):
        path = shlex.quote(str(secret))
        folder, name = shlex.quote(str(secret.parent)), secret.name
        yield Escape("read", "sh", f"cat {path}", control=True)
        yield Escape("read", "sh", f"cat {root}{path}")
        yield Escape("read", "sh", f"cat < {path}")
        yield Escape("read", "sh", f"echo $(<{path})")
        yield Escape("read", "sh", f"cat /proc/self/root{path}", control=True)
        yield Escape("read", "sh", f"cat /proc/1/root{path}")
        yield Escape("read", "sh", f"cat /proc/$PPID/root{path}; cat /proc/$PPID/cwd/{root}{path}")
        yield Escape("read", "sh", f"ln -sfn {path} link{index}; cat link{index}", control=True)
        yield Escape("read", "sh", f"ln -sfn {folder} dir{index}; cat dir{index}/{name}; ls dir{index}/")
        yield Escape("read", "sh", f"ln {path} hard{index}; cat hard{index}")
        yield Escape("read", "sh", f"cp {path} copy{index}; cat copy{index}", control=True)
        yield Escape("read", "sh", f"mv {path} moved{index}; cat moved{index}")
        yield Escape("read", "sh", f"tar cf - {path} | strings")
        yield Escape("read", "sh", f"dd if={path} status=none", control=True)
        yield Escape("read", "sh", f"cd {folder} && cat {name}")
        yield Escape("read", "sh", f"grep -r {TOKEN[:6]} {folder}", control=True)
        yield Escape("read", "sh", f"find {folder} -type f -exec cat {{}} +")
        yield Escape("read", "sh", f"cat planted{index}; cat planted-folder{index}/{name}")
        yield Escape("read", "sh", f"env -S 'cat {path}'; cat {str(secret)[:-1]}?; . {path}; exec 9<{path}; cat <&9")
        yield Escape("read", "py", f"print(open({str(secret)!r}).read())", control=True)
        yield Escape(
            "read",
            "py",
            f"import os; fd = os.open({str(secret)!r}, os.O_PATH); print(open(f'/proc/self/fd/{{fd}}').read())",
        )
        yield Escape(
            "read",
            "py",
            f"import os; d = os.open('/..', 0); print(os.read(os.open({str(secret)[1:]!r}, 0, dir_fd=d), 99))",
        )


def looks(target: Target) -> Iterator[Escape]:
    """At processes outside, their arguments, environment, memory and files."""
    for pid in (target.victim.pid, os.getpid()):
        yield Escape("look", "sh", f"tr '\\0' '\\n' < /proc/{pid}/environ", control=pid == target.victim.pid)
        yield Escape("look", "sh", f"tr '\\0' '\\n' < /proc/{pid}/cmdline", control=pid == target.victim.pid)
        yield Escape("look", "sh", f"cat /proc/{pid}/fd/{target.victim.fd}; cat /proc/{pid}/fd/{target.fd}")
        yield Escape("look", "sh", f"cat /proc/{pid}/task/{pid}/environ /proc/{pid}/task/{pid}/cmdline")
        yield Escape("look", "sh", f"cat /proc/{pid}/root{target.world.secrets[0]}")
        yield Escape("look", "sh", f"cd /proc/{pid}/cwd && cat {str(target.world.secrets[0])[1:]}")
        yield Escape("look", "sh", f"nsenter -t {pid} -m cat {target.world.secrets[0]}")
        yield Escape("look", "sh", f"ps -p {pid} -o args= e | grep -o '{TOKEN}'")
        yield Escape("look", "py", READ_MEMORY.format(pid=pid))
        yield Escape("look", "py", PEEK.format(pid=pid, out=OUT))
        yield Escape(
            "look", "py", CALL.format(number=438, args=f"os.pidfd_open({pid}), {target.victim.fd}, 0", out=OUT)
        )
    yield Escape("look", "sh", "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'")
    yield Escape("look", "sh", "ps axeww", control=True)
    yield Escape(
        "look", "sh", "for p in /proc/[0-9]*; do cat $p/fd/* & sleep 0.01; kill $!; done 2>/dev/null | head -c 3000"
    )


READ_MEMORY = """
import re
for line in open("/proc/{pid}/maps"):
    if "[stack]" in line or "[heap]" in line:
        a, b = (int(x, 16) for x in line.split()[0].split("-"))
        with open("/proc/{pid}/mem", "rb") as memory:
            memory.seek(a)
            print(re.findall(rb"[a-z]+-canary[-0-9a-f]+", memory.read(b - a)))
"""
PEEK = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, {pid}, 0, 0) == 0:
    print("{out}"); os.waitpid({pid}, 0x40000000); libc.ptrace(17, {pid}, 0, 0)
"""
CALL = """
import ctypes, os, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
result = libc.syscall({number}, {args})
number = ctypes.get_errno()
print(result, errno.errorcode.get(number, number))
if result >= 0 or number not in (errno.EPERM, errno.ENOSYS, errno.EACCES, errno.ESRCH):
    print("{out}")
"""


def inherits(target: Target) -> Iterator[Escape]:
    """What the worker has open or in its environment."""
    yield Escape("inherit", "sh", "for fd in $(seq 3 64); do cat <&$fd; done 2>/dev/null")
    yield Escape("inherit", "sh", f"cat /proc/self/fd/{target.fd} /dev/fd/{target.fd}")
    yield Escape("inherit", "sh", "ls -l /proc/1/fd /proc/2/fd /proc/$PPID/fd; cat /proc/1/fd/* < /dev/null")
    yield Escape(
        "inherit", "py", "import os\nfor fd in range(3, 99):\n  try: print(os.pread(fd, 99, 0))\n  except OSError: pass"
    )
    for command in ("env", "printenv", "set", "export -p", "declare -x", "cat /proc/self/environ",
                    "cat /proc/1/environ", "cat /proc/$PPID/environ", "xargs -0 -n1 < /proc/self/environ",
                    "awk 'BEGIN {for (k in ENVIRON) print ENVIRON[k]}'",
                    "echo $SECRET $EVERLOOP_CANARY", "bash -lc env", "env -i bash -lc env"):  # fmt: skip
        yield Escape("inherit", "sh", command)
    yield Escape("inherit", "py", "import os; print(os.environ)")


def writes(target: Target) -> Iterator[Escape]:
    outside = target.world.outside
    root = os.path.relpath("/", target.world.workspace)
    for index, victim in enumerate(
        (outside / "secret.txt", target.world.home / "config.toml", target.world.spool / "earlier")
    ):
        path, folder = shlex.quote(str(victim)), shlex.quote(str(victim.parent))
        new = shlex.quote(str(victim.parent / "new"))
        yield Escape("write", "sh", f"echo x >> {path}")
        yield Escape("write", "sh", f"echo x > {path}")
        yield Escape("write", "sh", f"echo x > {new}", control=index == 0)
        yield Escape("write", "sh", f"echo x > {root}{new}")
        yield Escape("write", "sh", f"echo x | tee {new}", control=index == 0)
        yield Escape("write", "sh", f"echo x > /proc/self/root{new}; echo x > /proc/1/root{new}")
        yield Escape("write", "sh", f"touch {new} {path}")
        yield Escape("write", "sh", f"mkdir {new}d; mkdir -p {new}/e/f")
        yield Escape("write", "sh", f"mkfifo {new}p; mknod {new}n p")
        yield Escape("write", "sh", f"ln -s / {new}l; ln {path} {new}h")
        yield Escape(
            "write", "sh", f"echo x > mine{index}; ln mine{index} {new}k; mv mine{index} {new}m; cp driver.py {new}c"
        )
        yield Escape("write", "sh", f"rm -f {path}")
        yield Escape("write", "sh", f"mv {path} {path}.gone")
        yield Escape("write", "sh", f"chmod 777 {path} {folder}", control=index == 0)
        yield Escape("write", "sh", f"chown 1234 {path}; chgrp 1234 {path}; setfattr -n user.x -v y {path}")
        yield Escape("write", "sh", f"truncate -s 0 {path}; dd if=driver.py of={path} status=none")
        yield Escape("write", "sh", f"sed -i s/a/b/ {path}; install driver.py {new}i")
        yield Escape("write", "sh", f"cd {folder} && echo x > here")
        yield Escape(
            "write", "sh", f"echo x > planted{index}; echo x > planted-folder{index}/new; rm planted-folder{index}/*"
        )
        yield Escape(
            "write", "sh", f"ln -sfn {path} w{index}; echo x > w{index}; sed -i s/a/b/ w{index}; chmod 777 w{index}"
        )
        yield Escape(
            "write", "sh", f"tar cf t{index}.tar driver.py; tar xf t{index}.tar -C {folder}; tar xPf t{index}.tar"
        )
        yield Escape("write", "py", f"open({str(victim)!r}, 'r+').truncate(0)")
        yield Escape("write", "py", f"import os; os.rename('driver.py', {str(victim)!r})")
        yield Escape(
            "write", "py", f"import os; os.utime({str(victim)!r}, (1, 1)); os.symlink('x', {str(victim)!r} + 'y')"
        )
        yield Escape(
            "write",
            "py",
            f"import os; fd = os.open({str(victim)!r}, os.O_PATH); os.chmod(f'/proc/self/fd/{{fd}}', 0o777)",
        )
    yield Escape("write", "sh", "chmod 777 /proc/1/exe; echo x > /proc/1/exe; touch /proc/1/exe")
    yield Escape(
        "write", "sh", f"chmod 777 {target.world.bwrap}; echo x > {target.world.bwrap}; rm {target.world.bwrap}"
    )
    yield Escape(
        "write", "py", "import os; fd = os.open('/proc/1/exe', os.O_PATH); os.open(f'/proc/self/fd/{fd}', os.O_RDWR)"
    )
    # To open without writing, and a file without a name, leave no trace should they succeed.
    yield Escape("write", "py", f"import os; os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY); print({OUT!r})")
    yield Escape("write", "py", f"import os; os.open('/usr/bin', os.O_TMPFILE | os.O_WRONLY); print({OUT!r})")


def connects(target: Target) -> Iterator[Escape]:
    listeners = target.listeners
    tcp, udp, tcp6 = listeners.port("tcp"), listeners.port("udp"), listeners.port("tcp6")
    for host in ("127.0.0.1", "localhost", "0.0.0.0", "127.1", "2130706433", "0x7f000001", "127.0.0.1/."):
        yield Escape("connect", "sh", f"echo x > /dev/tcp/{host}/{tcp}", control=host == "127.0.0.1")
    for host in ("127.0.0.1", "0.0.0.0"):
        yield Escape("connect", "sh", f"echo x > /dev/udp/{host}/{udp}", control=host == "127.0.0.1")
    for program in (f"curl -m 2 http://127.0.0.1:{tcp}/", f"wget -T 2 -t 1 -O- http://127.0.0.1:{tcp}/",
                    f"nc -w 1 127.0.0.1 {tcp}", f"socat - TCP:127.0.0.1:{tcp}",
                    f"openssl s_client -connect 127.0.0.1:{tcp}", f"telnet 127.0.0.1 {tcp}",
                    f"perl -MIO::Socket::INET -e 'IO::Socket::INET->new(\"127.0.0.1:{tcp}\")'"):  # fmt: skip
        yield Escape("connect", "sh", program)
    unix = str(target.world.outside / "stream.sock")
    gram = str(target.world.outside / "gram.sock")
    abstract = repr(listeners.abstract)
    for family, address in (("AF_INET", f"('127.0.0.1', {tcp})"), ("AF_INET6", f"('::1', {tcp6})"),
                            ("AF_UNIX", repr(unix)),
                            ("AF_INET6", f"('::ffff:127.0.0.1', {tcp})"), ("AF_UNIX", abstract)):  # fmt: skip
        connect = (
            f"import socket; s = socket.socket(socket.{family}); s.settimeout(1); s.connect({address}); s.send(b'x')"
        )
        yield Escape("connect", "py", connect, control=True)
        yield Escape("connect", "py", f"import os\nif not os.fork():\n  os.setsid()\n  {connect}\nelse: os.wait()")
    for text in (
        f"s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', {udp}))",
        f"s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'x', {gram!r})",
    ):
        yield Escape("connect", "py", f"import socket; {text}", control=True)
    for text in (
        f"a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'x', {gram!r})",
        f"a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.connect({gram!r}); a.send(b'x')",
        f"a, b = socket.socketpair(); a.connect({unix!r})",
        f"s = socket.socket(socket.AF_INET, socket.SOCK_STREAM); s.sendto(b'x', 0x20000000, ('127.0.0.1', {tcp}))",
        f"os.chdir({str(target.world.outside)!r}); s = socket.socket(socket.AF_UNIX); s.connect('stream.sock')",
        f"s = socket.socket(socket.AF_UNIX); s.connect('/proc/self/root' + {unix!r})",
        f"s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 17); print({OUT!r})",
        f"s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print({OUT!r})",
        f"s = socket.socket(40, socket.SOCK_STREAM); print({OUT!r})",
        f"s = socket.socket(38, socket.SOCK_SEQPACKET); print({OUT!r})",
        f"s = socket.socket(16, socket.SOCK_RAW); print({OUT!r})",
        f"s = socket.socket(15, socket.SOCK_RAW); print({OUT!r})",
    ):
        yield Escape("connect", "py", f"import os, socket; {text}")


def outlives(target: Target) -> Iterator[Escape]:
    sleep = f"sleep {MARK}"
    for number, text in enumerate((
        "{sleep} &", "nohup {sleep} > /dev/null 2>&1 &", "setsid {sleep} > /dev/null 2>&1 &",
        "setsid -f {sleep} > /dev/null 2>&1",
        "({sleep} > /dev/null 2>&1 &)", "{sleep} > /dev/null 2>&1 & disown",
        "(setsid bash -c 'trap \"\" HUP TERM INT; {sleep}; true' &)",
        "bash -c '(exec {sleep} > /dev/null 2>&1 &)'", "coproc {sleep}", "{sleep} > /dev/null 2>&1 & kill -STOP $!",
        "bash -c 'bash -c \"bash -c \\\"{sleep} > /dev/null &\\\" &\" &'",
        "setsid nohup setsid -f {sleep} > /dev/null 2>&1",
        "timeout 500 {sleep} > /dev/null 2>&1 &", "env -i setsid {sleep} > /dev/null 2>&1 &",
        "nice {sleep} > /dev/null 2>&1 &",
        "xargs -P 4 -n 1 sleep <<< '{mark} {mark}' > /dev/null 2>&1 &",
    )):  # fmt: skip
        mark = f"{MARK}{number:02d}"
        yield Escape("outlive", "sh", text.format(sleep=f"sleep {mark}", mark=mark), control=number == 3)
    yield Escape("outlive", "py", DAEMON.format(sleep=sleep))
    yield Escape("outlive", "py", DAEMON.format(sleep=sleep).replace("os.setsid()", "os.setpgid(0, 0)"))
    yield Escape("outlive", "py", f"import subprocess; subprocess.Popen(['sleep', '{MARK}'], start_new_session=True)")


DAEMON = """
import os, signal
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
for fd in range(64):
    try: os.close(fd)
    except OSError: pass
os.execvp("sleep", "{sleep}".split())
"""


def hurts(target: Target) -> Iterator[Escape]:
    pid = target.victim.pid
    for text in (
        f"kill -STOP {pid}", f"kill -TERM {pid}", f"kill -KILL {pid}", f"kill -KILL -- -{pid}", f"/bin/kill -9 {pid}",
        f"pkill -f argv-{TOKEN}", f"renice -n 19 -p {pid}", f"ionice -c 3 -p {pid}", f"taskset -p 1 {pid}",
        f"prlimit --pid {pid} --nofile=9:9", f"chrt -i -p 0 {pid}", f"timeout -s KILL 1 kill -KILL {pid}",
        f"strace -p {pid} -o /dev/null & sleep 0.2; kill $!", f"gdb -p {pid} -batch",
        f"echo 1000 > /proc/{pid}/oom_score_adj",
    ):  # fmt: skip
        yield Escape("hurt", "sh", text)
    for text in (
        f"import os; os.kill({pid}, 9)",
        f"import os; os.killpg({pid}, 9)",
        f"import os, signal; signal.pidfd_send_signal(os.pidfd_open({pid}), 9)",
        f"import resource; resource.prlimit({pid}, resource.RLIMIT_NOFILE, (7, 7))",
        f"import os; os.setpriority(os.PRIO_PROCESS, {pid}, 19)",
        f"import os; os.setpriority(os.PRIO_PGRP, {pid}, 19)",
        f"import os; os.sched_setaffinity({pid}, {{0}})",
        f"import os; os.sched_setscheduler({pid}, os.SCHED_IDLE, os.sched_param(0))",
        f"import fcntl, os; r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, {pid}); fcntl.fcntl(r, 10, 9);"
        " fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC); os.write(w, b'x')",
    ):
        yield Escape("hurt", "py", text)


def calls(target: Target) -> Iterator[Escape]:
    """System calls that lead to more kernel, with arguments that do nothing."""
    if os.uname().machine != "x86_64":
        return
    for name, (number, args) in {
        "mount": (165, "0, 0, 0, 0, 0"), "umount2": (166, "0, 0"), "pivot_root": (155, "0, 0"), "chroot": (161, "0"),
        "setns": (308, "-1, 0"), "bpf": (321, "-1, 0, 0"), "perf_event_open": (298, "0, 0, -1, -1, 0"),
        "io_uring_setup": (425, "0, 0"), "keyctl": (250, "-1, 0"), "add_key": (248, "0, 0, 0, 0, -3"),
        "request_key": (249, "0, 0, 0, 0"), "userfaultfd": (323, "-1"), "open_by_handle_at": (304, "-1, 0, 0"),
        "fanotify_init": (300, "-1, 0"), "fsopen": (430, "0, -1"), "open_tree": (428, "-1, 0, 0"),
        "move_mount": (429, "-1, 0, -1, 0, 0"), "mount_setattr": (442, "-1, 0, 0, 0, 0"),
        "quotactl": (179, "-1, 0, 0, 0"),
        "syslog": (103, "-1, 0, 0"), "init_module": (175, "0, 0, 0"), "finit_module": (313, "-1, 0, 0"),
        "clone3": (435, "0, 0"), "fspick": (433, "-1, 0, 0"), "swapon": (167, "0, 0"),
    }.items():  # fmt: skip
        yield Escape(
            "call", "py", f"# {name}\n" + CALL.format(number=number, args=args, out=OUT), name in CONTROL_CALLS
        )
    for flags in (0x10000000, 0x20000000, 0x40000000, 0x08000000, 0x04000000, 0x02000000, 0x00020000, 0x10020000):
        text = f"import ctypes\nif ctypes.CDLL(None).unshare({flags}) == 0: print({OUT!r})"
        yield Escape("call", "py", text, control=flags == 0x10000000)
    for option in ("-U", "-r", "-rm", "-rn", "-rp --fork", "-ri", "-m", "-n"):
        yield Escape("call", "sh", f"unshare {option} echo {OUT}", control=option == "-U")
    yield Escape("call", "sh", f"bwrap --bind / / echo {OUT}; chroot . /bin/echo {OUT}; busybox chroot . echo {OUT}")
    yield Escape("call", "sh", f"mkdir -p m; mount -t tmpfs none m && echo {OUT}; mount --bind . m && echo {OUT}")
    yield Escape("call", "sh", f"mkdir -p o; mount -t proc proc o && echo {OUT}; fusermount -u o && echo {OUT}")
    yield Escape("call", "sh", f"mknod d c 1 1 && echo {OUT}; mknod b b 7 0 && echo {OUT}")
    yield Escape("call", "sh", f"ulimit -c 100000 && echo {OUT}; ulimit -Hc unlimited && echo {OUT}")
    yield Escape("call", "sh", f"sudo -n true && echo {OUT}; su nobody -s /bin/sh -c 'echo {OUT}' < /dev/null")
    yield Escape("call", "py", f"import os; os.setgroups([0, 1, 2]); print({OUT!r})")
    yield Escape("call", "py", f"import os; os.setresuid(1, 1, 1); print({OUT!r})")
    yield Escape("call", "py", TYPE_INTO_A_TERMINAL)


CONTROL_CALLS = ("keyctl", "add_key", "clone3")
TYPE_INTO_A_TERMINAL = f"""
import fcntl, os, pty
for fd in (0, 1, 2, os.open("/dev/tty", os.O_RDWR) if os.path.exists("/dev/tty") and os.isatty(0) else 0):
    try:
        fcntl.ioctl(fd, 0x5412, b"x"); print("{OUT}")
    except OSError as error: print(error)
pid, fd = pty.fork()
if not pid:
    try:
        fcntl.ioctl(0, 0x5412, b"x"); print("{OUT}")
    except OSError as error: print(error)
    os._exit(0)
try: print(os.read(fd, 999))
except OSError: pass
"""

KINDS = (reads, looks, inherits, writes, connects, outlives, hurts, calls)


def escapes_to(target: Target) -> list[Escape]:
    return [escape for kind in KINDS for escape in kind(target)]


async def effects_of(escapes: list[Escape], target: Target, way: str, patience: float = 3) -> dict[str, list[str]]:
    """What the escapes did outside, by kind: sentences. Each is ended after so many seconds of patience."""
    place = target.world
    (place.workspace / "driver.py").write_text(DRIVER)
    (place.workspace / "escapes.json").write_text(json.dumps([(each.language, each.text) for each in escapes]))
    for index, secret in enumerate(place.secrets):  # links that were there before, as in a folder that was cloned
        for link, to in ((f"planted{index}", secret), (f"planted-folder{index}", secret.parent)):
            with suppress(FileExistsError):
                (place.workspace / link).symlink_to(to)
    place.own(place.workspace)
    before = place.snapshot()
    interpreter, _ = python()
    job = place.job(interpreter, "driver.py", str(patience), limits=CommandLimits(seconds=500, processes=400))
    outcome = await run_once(place.commands(way), job)
    said = (place.workspace / "results").read_text(errors="replace")
    assert (outcome.status, outcome.output, said[-7:]) == ("exited", "", "### end")
    found: dict[str, list[str]] = {}
    for number, result in re.findall(r"### (\d+)\n(.*?)(?=\n### )", said, re.S):
        escape = escapes[int(number)]
        if TOKEN in result or OUT in result:
            found.setdefault(escape.kind, []).append(f"{escape.text}\n→ {result}")
    if (after := place.snapshot()) != before:
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        found.setdefault("write", []).append(f"changed: {sorted(changed)}")
    if heard := target.listeners.heard():
        found.setdefault("connect", []).append(f"heard: {heard}")
    if left := processes_with(MARK):
        found.setdefault("outlive", []).append(f"left: {left}")
    if not target.victim.is_unharmed():
        found.setdefault("hurt", []).append("the process outside was hurt")
    return found


@pytest.fixture
def uid(request: pytest.FixtureRequest) -> int:
    return os.geteuid() if request.param == "self" else NOBODY


def targeted(place: World, fd: int) -> Target:
    listeners = Listeners(place.outside)
    place.own(place.outside)
    return Target(place, Victim(place), listeners, fd)


@pytest.fixture
def secret_fd(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A secret that this process, the worker, has open for its children, and one in its environment."""
    monkeypatch.setenv("EVERLOOP_CANARY", TOKEN)
    path = os.path.join(tmp_path, "open")
    with open(path, "w") as file:
        file.write(TOKEN)
    fd = os.open(path, os.O_RDONLY)
    os.set_inheritable(fd, True)
    yield fd
    os.close(fd)


@pytest.mark.parametrize("uid", ["self", "nobody"], indirect=True)
@pytest.mark.parametrize("way", ["bwrap", "landlock"])
async def test_no_escape_has_any_effect_outside(way: str, uid: int, secret_fd: int) -> None:
    with world(way, uid) as place:
        target = targeted(place, secret_fd)
        try:
            escapes = escapes_to(target)
            assert len(set(escapes)) >= 300
            assert await effects_of(escapes, target, way) == {}
        finally:
            target.victim.end()
            target.listeners.close()


@pytest.mark.parametrize("uid", ["self", "nobody"], indirect=True)
async def test_without_a_sandbox_every_kind_of_escape_is_seen(uid: int, secret_fd: int) -> None:
    with world("none", uid) as place:
        target = targeted(place, secret_fd)
        try:
            controls = [escape for escape in escapes_to(target) if escape.control]
            found = await effects_of(controls, target, "none", patience=30)  # none of them waits
            assert found.keys() == {"read", "look", "write", "connect", "call"}
            assert len(found["read"]) == sum(escape.kind == "read" for escape in controls)
            assert "heard: ['tcp', 'tcp6', 'udp', 'unix', 'unixgram', 'abstract']" in found["connect"]
        finally:
            target.victim.end()
            target.listeners.close()


def test_what_is_inherited_outlives_or_is_hurt_would_be_seen(secret_fd: int) -> None:
    show = ["bash", "-c", f"echo $EVERLOOP_CANARY; cat <&{secret_fd}"]
    assert subprocess.run(show, capture_output=True, text=True, close_fds=False).stdout == f"{TOKEN}\n{TOKEN}"
    with world("none", os.geteuid()) as place:
        victim = Victim(place)
        try:
            assert victim.is_unharmed()
            assert len(processes_with(f"argv-{TOKEN}")) == 1
            subprocess.run(["sh", "-c", f"renice -n 19 -p {victim.pid}"], check=True, stdout=subprocess.DEVNULL)
            assert not victim.is_unharmed()
        finally:
            victim.end()
        assert not victim.is_unharmed()
        assert processes_with(f"argv-{TOKEN}") == []
